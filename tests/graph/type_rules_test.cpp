// What every op accepts, what it refuses and in which words.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <set>

#include "tests/graph/kernel.hpp"

using namespace palladium;
using namespace palladium::graph;
using Catch::Matchers::ContainsSubstring;

namespace {

const Location user{"user/attention.cpp", 41};

struct Fixture {
  HandMade k{
      {{{4, 8}, f32}, {{4, 8}, i32}, {{4, 8}, bool_}, {{4, 8}, f16}, {{8, 16}, f16}}, {}, {2, 3}};
  ValueId f = k.b.load(k.refs[0]), i = k.b.load(k.refs[1]), c = k.b.load(k.refs[2]),
          h = k.b.load(k.refs[3]), w = k.b.load(k.refs[4]);
  ValueId e = k.b.constant(f8e4m3, 1.0, {4, 8});
  ValueId s = k.b.constant(i32, 1), t = k.b.constant(bool_, 1);
  ValueId ref = k.refs[0], iref = k.refs[1], bref = k.refs[2];
  ValueId sem = k.g.add({.op = Op::Param, .type = Type::ref(i32, {}, Space::semaphore)});
  ValueId sems = k.g.add({.op = Op::Param, .type = Type::ref(i32, {3}, Space::semaphore)});
  ValueId bars = k.g.add({.op = Op::Param, .type = Type::ref(u64, {3}, Space::barrier, 2)});
  ValueId array = k.g.add({.op = Op::Param, .type = Type::ref(f32, {4, 8}, Space::gmem)});
  ValueId room = k.g.add({.op = Op::Param, .type = Type::ref(f32, {4, 8}, Space::smem)});
  ValueId room_of_bytes = k.g.add({.op = Op::Param, .type = Type::ref(u8, {2048}, Space::smem)});
  ValueId wide = k.g.add({.op = Op::Param, .type = Type::ref(f64, {4, 8}, Space::smem)});
  ValueId acc = k.g.add({.op = Op::Param, .type = Type::ref(f32, {64, 16}, Space::accumulator)});
  ValueId a_smem = k.g.add({.op = Op::Param, .type = Type::ref(f16, {64, 32}, Space::smem)});
  ValueId b_smem = k.g.add({.op = Op::Param, .type = Type::ref(f16, {32, 16}, Space::smem)});
  ValueId bytes = k.g.add({.op = Op::Param, .type = Type::ref(i8, {64, 32}, Space::smem)});
  ValueId held = k.g.add({.op = Op::Param, .type = Type::value(f16, {64, 32})});
  ValueId flat = k.g.add({.op = Op::Param, .type = Type::ref(f32, {32}, Space::smem)});
};

struct Case {
  Op op;
  std::function<std::vector<ValueId>(Fixture&)> args;
  Attr attr;
  Type given;
  const char* expected;  // the type's text, or part of the error
};

#define ARGS(...)                          \
  [](Fixture& x) -> std::vector<ValueId> { \
    (void)x;                               \
    return {__VA_ARGS__};                  \
  }

std::vector<std::int64_t> at(std::initializer_list<SubscriptDim> dims) {
  return graph::Subscript{dims}.encode();
}
const SubscriptDim all4{.size = 4}, all8{.size = 8};

// clang-format off
const std::vector<Case> accepted = {
    {Op::Param, ARGS(), {}, Type::ref(f32, {3}, Space::smem), "ref smem f32[3]"},
    {Op::Constant, ARGS(), {{}, 255}, Type::value(u8, {2}), "u8[2]"},
    {Op::Iota, ARGS(), {{1}, 0}, Type::value(i32, {2, 3}), "i32[2,3]"},
    {Op::ProgramId, ARGS(), {{1}, 0}, {}, "i32[]"},
    {Op::NumPrograms, ARGS(), {{0}, 0}, {}, "i32[]"},
    {Op::AxisIndex, ARGS(), {{2, 0}, 0}, {}, "i32[]"},
    {Op::AxisSize, ARGS(), {{0, 1}, 0}, {}, "i32[]"},
    {Op::DimValue, ARGS(), {{0}, 0}, {}, "i32[]"},
    {Op::Neg, ARGS(x.i), {}, {}, "i32[4,8]"},
    {Op::Abs, ARGS(x.h), {}, {}, "f16[4,8]"},
    {Op::Sign, ARGS(x.f), {}, {}, "f32[4,8]"},
    {Op::Not, ARGS(x.c), {}, {}, "bool[4,8]"},
    {Op::PopulationCount, ARGS(x.i), {}, {}, "i32[4,8]"},
    {Op::CountLeadingZeros, ARGS(x.i), {}, {}, "i32[4,8]"},
#define PALLADIUM_MATH(Name, ...) {Op::Name, ARGS(x.h), {}, {}, "f16[4,8]"},
#define PALLADIUM_MATH2(Name, ...) {Op::Name, ARGS(x.f, x.f), {}, {}, "f32[4,8]"},
#include "palladium/math.def"
    {Op::IsFinite, ARGS(x.f), {}, {}, "bool[4,8]"},
    {Op::Cast, ARGS(x.f), {}, Type::value(i8), "i8[4,8]"},
    {Op::Bitcast, ARGS(x.f), {}, Type::value(u32), "u32[4,8]"},
    {Op::Bitcast, ARGS(x.h), {}, Type::value(bf16), "bf16[4,8]"},
    {Op::Add, ARGS(x.f, x.f), {}, {}, "f32[4,8]"},
    {Op::Sub, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::Mul, ARGS(x.h, x.h), {}, {}, "f16[4,8]"},
    {Op::Div, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::Rem, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::Max, ARGS(x.c, x.c), {}, {}, "bool[4,8]"},
    {Op::Min, ARGS(x.f, x.f), {}, {}, "f32[4,8]"},
    {Op::And, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::Or, ARGS(x.c, x.c), {}, {}, "bool[4,8]"},
    {Op::Xor, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::ShiftLeft, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::ShiftRight, ARGS(x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::Eq, ARGS(x.c, x.c), {}, {}, "bool[4,8]"},
    {Op::Ne, ARGS(x.f, x.f), {}, {}, "bool[4,8]"},
    {Op::Lt, ARGS(x.i, x.i), {}, {}, "bool[4,8]"},
    {Op::Le, ARGS(x.h, x.h), {}, {}, "bool[4,8]"},
    {Op::Gt, ARGS(x.s, x.s), {}, {}, "bool[]"},
    {Op::Ge, ARGS(x.f, x.f), {}, {}, "bool[4,8]"},
    {Op::Fma, ARGS(x.f, x.f, x.f), {}, {}, "f32[4,8]"},
    {Op::Select, ARGS(x.c, x.i, x.i), {}, {}, "i32[4,8]"},
    {Op::MultipleOf, ARGS(x.s), {{8}, 0}, {}, "i32[]"},
    {Op::MaxContiguous, ARGS(x.i), {{1, 8}, 0}, {}, "i32[4,8]"},
    {Op::Reshape, ARGS(x.f), {}, Type::value({}, {2, 16}), "f32[2,16]"},
    {Op::Broadcast, ARGS(x.f), {{0, 2}, 0}, Type::value({}, {4, 5, 8}), "f32[4,5,8]"},
    {Op::Transpose, ARGS(x.f), {{1, 0}, 0}, {}, "f32[8,4]"},
    {Op::Slice, ARGS(x.f), {{3, 1, -1, 2}, 0}, Type::value({}, {4, 4}), "f32[4,4]"},
    {Op::Slice, ARGS(x.s), {}, Type::value({}), "i32[]"},
    {Op::Concatenate, ARGS(x.f, x.f, x.f), {{1}, 0}, {}, "f32[4,24]"},
    {Op::Concatenate, ARGS(x.c), {{0}, 0}, {}, "bool[4,8]"},
    {Op::DynamicSlice, ARGS(x.f, x.s, x.s), {}, Type::value({}, {4, 3}), "f32[4,3]"},
    {Op::DynamicUpdateSlice, ARGS(x.i, x.k.b.add(Op::Slice, {x.i}, {{0, 0, 1, 1}, 0}, Type::value({}, {2, 8})), x.s, x.s), {}, {}, "i32[4,8]"},
    {Op::TakeAlong, ARGS(x.f, x.i), {{1}, 0}, {}, "f32[4,8]"},
    {Op::TakeAlong, ARGS(x.h, x.k.b.constant(i32, 2, {9, 8})), {{0}, 0}, {}, "f16[9,8]"},
    {Op::ReduceSum, ARGS(x.f), {{0, 1}, 0}, {}, "f32[]"},
    {Op::ReduceProd, ARGS(x.h), {{0}, 0}, {}, "f16[8]"},
    {Op::ReduceMax, ARGS(x.c), {{1}, 0}, {}, "bool[4]"},
    {Op::ReduceMin, ARGS(x.i), {{0}, 0}, {}, "i32[8]"},
    {Op::CumSum, ARGS(x.h), {{1, 1}, 0}, {}, "f16[4,8]"},
    {Op::CumProd, ARGS(x.i), {{0, 0}, 0}, {}, "i32[4,8]"},
    {Op::CumMax, ARGS(x.f), {{0, 1}, 0}, {}, "f32[4,8]"},
    {Op::CumMin, ARGS(x.f), {{1, 0}, 0}, {}, "f32[4,8]"},
    {Op::Dot, ARGS(x.h, x.w), {{0, 0, 0}, 0}, {}, "f32[4,16]"},
    {Op::Dot, ARGS(x.f, x.f), {{0, 1, 1}, 0}, {}, "f32[4,4]"},
    {Op::At, ARGS(x.ref, x.s), {at({{.is_slice = false, .dynamic = true}, {.start = 1, .size = 3, .stride = 3}}), 0}, {}, "ref block f32[3]"},
    {Op::RefReshape, ARGS(x.ref), {}, Type::ref({}, {32}, {}), "ref block f32[32]"},
    {Op::RefTranspose, ARGS(x.ref), {{1, 0}, 0}, {}, "ref block f32[8,4]"},
    {Op::RefBitcast, ARGS(x.ref), {}, Type::ref(i16, {}, {}), "ref block i16[4,16]"},
    {Op::RefBitcast, ARGS(x.ref), {}, Type::ref(f64, {}, {}), "ref block f64[4,4]"},
    {Op::Load, ARGS(x.ref, x.c, x.f), {{1, 1}, 0}, {}, "f32[4,8]"},
    {Op::Store, ARGS(x.ref, x.f, x.c), {{1, 0}, 0}, {}, ""},
    {Op::Swap, ARGS(x.ref, x.f), {{0, 0}, 0}, {}, "f32[4,8]"},
    {Op::SemaphoreRead, ARGS(x.sem), {}, {}, "i32[]"},
    {Op::SemaphoreSignal, ARGS(x.sem, x.s), {}, {}, ""},
    {Op::SemaphoreWait, ARGS(x.sem, x.s), {{1}, 0}, {}, ""},
    {Op::Delay, ARGS(x.s), {}, {}, ""},
    {Op::BarrierArrive, ARGS(x.bars, x.s), {}, {}, ""},
    {Op::BarrierArrive, ARGS(x.bars, x.s, x.s), {}, {}, ""},
    {Op::BarrierWait, ARGS(x.bars, x.s), {}, {}, ""},
    {Op::RefPart, ARGS(x.room_of_bytes), {{1024}, 0}, Type::ref(f32, {16, 16}, Space::smem), "ref smem f32[16,16]"},
    {Op::RefPeer, ARGS(x.room, x.s), {}, {}, "ref smem f32[4,8]"},
    {Op::BarrierTest, ARGS(x.bars, x.s), {}, {}, "bool[]"},
    {Op::CopyToShared, ARGS(x.array, x.room, x.bars, x.s), {}, {}, ""},
    {Op::CopyToShared, ARGS(x.array, x.room, x.bars, x.s), {{0, 2}, 0}, {}, ""},
    {Op::CopyToGlobal, ARGS(x.array, x.room), {}, {}, ""},
    {Op::CopyToGlobal, ARGS(x.array, x.room), {{3}, 0}, {}, ""},
    {Op::ReduceToGlobal, ARGS(x.array, x.room), {{0, 0, 0}, 0}, {}, ""},
    {Op::FetchToShared, ARGS(x.array, x.room), {}, {}, ""},
    {Op::AwaitFetches, ARGS(), {{1}, 0}, {}, ""},
    {Op::Prefetch, ARGS(x.array), {}, {}, ""},
    {Op::CommitShared, ARGS(), {}, {}, ""},
    {Op::CloseCopies, ARGS(), {}, {}, ""},
    {Op::AwaitCopies, ARGS(), {{2, 1}, 0}, {}, ""},
    {Op::Wgmma, ARGS(x.acc, x.a_smem, x.b_smem), {{0, 0, 1}, 0}, {}, ""},
    {Op::WgmmaHeld, ARGS(x.acc, x.held, x.b_smem), {{0, 0, 1}, 0}, {}, ""},
    {Op::AwaitProducts, ARGS(), {{1}, 0}, {}, ""},
    {Op::SetMaxRegisters, ARGS(), {{40, 0}, 0}, {}, ""},
    {Op::GridDependencyWait, ARGS(), {}, {}, ""},
    {Op::LaunchDependents, ARGS(), {}, {}, ""},
    {Op::LayoutCast, ARGS(x.f), {{2, 0}, 0}, {}, "f32[4,8]"},
    {Op::PrintLayout, ARGS(x.f), {{0}, 0, "{}"}, {}, ""},
    {Op::ScopeEvent, ARGS(), {{0, 1, 8, 0, 1}, 0, "load"}, {}, ""},
    {Op::InlineCuda, ARGS(x.f, x.ref, x.s), {{0, 0, 0, 2, 0, 0, 0, 1, 8, 0}, 0, "text x y n -> z:f16\nz[0] = n;"}, {}, ""},
    {Op::Get, ARGS(x.k.b.add(Op::InlineCuda, {}, Attr{{0, 2, 4, 8, 0, 0, 0}, 0, "text -> a:f16 b:i32\n"})), {{0}, 0}, {}, "f16[4,8]"},
    {Op::Atomic, ARGS(x.ref, x.f, x.c), {{1, 0, 0}, 0}, {}, "f32[4,8]"},
    {Op::Atomic, ARGS(x.iref, x.i, x.i), {{0, 1, 7}, 0}, {}, "i32[4,8]"},
    {Op::At, ARGS(x.ref, x.i), {at({{.is_slice = false, .dynamic = true, .array = true}, all8}), 0}, {}, "ref block f32[4,8,8]"},
    {Op::At, ARGS(x.ref, x.i), {at({{.start = 3, .size = 2}, {.is_slice = false, .dynamic = true, .array = true}}), 0}, {}, "ref block f32[2,4,8]"},
    {Op::At, ARGS(x.ref), {at({all4, {.start = 5, .size = 4}}), 0}, {}, "ref block f32[4,4]"},
    {Op::DebugPrint, ARGS(x.s, x.t), {{1}, 0, "{} and {}"}, {}, ""},
    {Op::DebugPrint, ARGS(x.f), {{1}, 0, "{}"}, {}, ""},
    {Op::DebugCheck, ARGS(x.t), {{2}, 0, "it holds"}, {}, ""},
    {Op::When, ARGS(x.t), {}, {}, ""},
    {Op::Loop, ARGS(x.s, x.s, x.f), {{2, 4}, 0}, {}, ""},
    {Op::While, ARGS(x.s, x.f), {}, {}, ""},
    {Op::Switch, ARGS(x.s), {}, {}, ""},
    {Op::Switch, ARGS(x.t), {}, {}, ""},
    {Op::Scoped, ARGS(), {}, {}, ""},
    {Op::Warps, ARGS(), {}, {}, ""},
    {Op::AxisIndex, ARGS(), {{3, 0}, 0}, {}, "i32[]"},
    {Op::At, ARGS(x.ref), {at({{.size = 100, .stride = 0}, all8}), 0}, {}, "ref block f32[100,8]"},
    {Op::Iota, ARGS(), {{1}, 0}, Type::value(u8, {2, 3}), "u8[2,3]"},
    {Op::Cast, ARGS(x.f), {}, Type::value(i4), "i4[4,8]"},
    {Op::RefBitcast, ARGS(x.iref), {}, Type::ref(u4, {}, Space::automatic), "ref block u4[4,64]"},
    {Op::Get, ARGS(x.k.b.add(Op::Loop, {x.s, x.s, x.f, x.h}, Attr{{1, 1}, 0})), {{1}, 0}, {}, "f16[4,8]"},
    {Op::Get, ARGS(x.k.b.add(Op::While, {x.s, x.h}, Attr{})), {{1}, 0}, {}, "f16[4,8]"},
    {Op::Get, ARGS(x.k.b.add(Op::Switch, {x.s}, std::vector<RegionId>{x.k.region([&](Builder& b) { b.yield({x.f, x.h}); })})), {{1}, 0}, {}, "f16[4,8]"},
};

const std::vector<Case> refused = {
    {Op::Constant, ARGS(), {{}, 256}, Type::value(u8), "constant: expected a number of dtype u8, given bits beyond it"},
    {Op::Constant, ARGS(), {}, {}, "constant: expected a type, given none"},
    {Op::Constant, ARGS(), {}, Type::value(f32, {0}), "constant: expected extents of at least 1, given f32[0]"},
    {Op::Constant, ARGS(), {}, Type::value(f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "constant: expected at most 8 dimensions"},
    {Op::Constant, ARGS(), {}, Type::value(f32, {1 << 20, 1 << 20, 1 << 30}), "constant: expected at most 2147483647 elements"},
    {Op::Iota, ARGS(), {{2}, 0}, Type::value(i32, {2, 3}), "iota: expected a dimension of i32[2,3], given 2"},
    {Op::Iota, ARGS(), {{0}, 0}, Type::value(bool_, {2}), "iota: expected a number's dtype, given bool"},
    {Op::ProgramId, ARGS(), {{2}, 0}, {}, "program_id: expected a grid axis below 2, given 2"},
    {Op::NumPrograms, ARGS(), {{-1}, 0}, {}, "num_programs: expected a grid axis below 2, given -1"},
    {Op::AxisIndex, ARGS(), {{1, 0}, 0}, {}, "axis_index: expected a cluster axis below 0, given 0"},
    {Op::DimValue, ARGS(), {{-1}, 0}, {}, "dim_value: expected a symbol's number, given"},
    {Op::AxisSize, ARGS(), {{4, 0}, 0}, {}, "axis_size: expected a grid, cluster, thread or warp axis"},
    {Op::Iota, ARGS(), {{0}, 0}, Type::value(f8e5m2, {2}), "iota: expected f32 to count in, given f8e5m2[2]"},
    {Op::Add, ARGS(x.e, x.e), {}, {}, "add: expected operands converted to f32, as which f8e4m3 is computed, given f8e4m3[4,8] and f8e4m3[4,8]"},
    {Op::Exp, ARGS(x.e), {}, {}, "exp: expected operands converted to f32"},
    {Op::Lt, ARGS(x.e, x.e), {}, {}, "lt: expected operands converted to f32"},
    {Op::ReduceMax, ARGS(x.e), {{0}, 0}, {}, "reduce_max: expected operands converted to f32"},
    {Op::CumSum, ARGS(x.e), {{0, 0}, 0}, {}, "cumsum: expected operands converted to f32"},
    {Op::Neg, ARGS(x.c), {}, {}, "neg: expected numbers, given bool[4,8]"},
    {Op::Neg, ARGS(x.ref), {}, {}, "neg: expected a value as operand 0, given ref block f32[4,8]; did you forget to load it: x[_] ?"},
    {Op::Not, ARGS(x.f), {}, {}, "not: expected integers or bools, given f32[4,8]"},
    {Op::PopulationCount, ARGS(x.c), {}, {}, "population_count: expected integers, given bool[4,8]"},
    {Op::CountLeadingZeros, ARGS(x.f), {}, {}, "clz: expected integers, given f32[4,8]"},
#define PALLADIUM_MATH(Name, name, ...) {Op::Name, ARGS(x.i), {}, {}, #name ": expected floating-point operands, given i32[4,8]"},
#define PALLADIUM_MATH2(Name, name, ...) {Op::Name, ARGS(x.i, x.i), {}, {}, #name ": expected floating-point operands, given i32[4,8] and i32[4,8]"},
#include "palladium/math.def"
    {Op::IsFinite, ARGS(x.i), {}, {}, "is_finite: expected a floating-point operand, given i32[4,8]"},
    {Op::Cast, ARGS(x.f), {}, {}, "cast: expected a dtype to convert to, given none"},
    {Op::Bitcast, ARGS(x.f), {}, {}, "bitcast: expected a dtype, given none"},
    {Op::Bitcast, ARGS(x.f), {}, Type::value(i16), "bitcast: expected a dtype of 32 bits for f32[4,8], given i16"},
    {Op::Bitcast, ARGS(x.c), {}, Type::value(i8), "bitcast: expected dtypes other than bool, given bool[4,8] to i8"},
    {Op::Add, ARGS(x.f, x.i), {}, {}, "add: expected operands of one dtype and shape, given f32[4,8] and i32[4,8]"},
    {Op::Add, ARGS(x.f), {}, {}, "add: expected 2 operands, given 1"},
    {Op::Add, ARGS(x.h, x.w), {}, {}, "add: expected operands of one dtype and shape, given f16[4,8] and f16[8,16]"},
    {Op::Fma, ARGS(x.i, x.i, x.i), {}, {}, "fma: expected floating-point operands, given i32[4,8], i32[4,8] and i32[4,8]"},
    {Op::ShiftLeft, ARGS(x.c, x.c), {}, {}, "shift_left: expected integers"},
    {Op::Eq, ARGS(x.f, x.h), {}, {}, "eq: expected operands of one dtype and shape"},
    {Op::Select, ARGS(x.i, x.f, x.f), {}, {}, "select: expected a condition bool[4,8], given i32[4,8]"},
    {Op::Select, ARGS(x.c, x.f, x.h), {}, {}, "select: expected two choices of one dtype and shape"},
    {Op::MultipleOf, ARGS(x.f), {{1, 8}, 0}, {}, "multiple_of: expected integers, given f32[4,8]"},
    {Op::MultipleOf, ARGS(x.i), {{8}, 0}, {}, "multiple_of: expected 2 numbers for i32[4,8], one per dimension, given [8]"},
    {Op::MultipleOf, ARGS(x.s), {{8, 8}, 0}, {}, "multiple_of: expected one number for i32[], given [8,8]"},
    {Op::MultipleOf, ARGS(x.s), {{0}, 0}, {}, "multiple_of: expected numbers from 1, given [0]"},
    {Op::MultipleOf, ARGS(x.s), {}, {}, "multiple_of: expected one number for i32[], given []"},
    {Op::MaxContiguous, ARGS(x.s), {{8}, 0}, {}, "max_contiguous: expected a value of at least one dimension, given i32[]"},
    {Op::MaxContiguous, ARGS(x.i), {{8, -1}, 0}, {}, "max_contiguous: expected numbers from 1, given [8,-1]"},
    {Op::Reshape, ARGS(x.f), {}, Type::value({}, {5}), "reshape: expected a shape of 32 elements for f32[4,8], given [5]"},
    {Op::Broadcast, ARGS(x.f), {{0, 1}, 0}, Type::value({}, {5, 8}), "broadcast: cannot broadcast f32[4,8] to shape [5,8]"},
    {Op::Broadcast, ARGS(x.f), {{1, 0}, 0}, Type::value({}, {8, 4}), "broadcast: expected ascending dimensions of the result [8,4], given [1,0]"},
    {Op::Transpose, ARGS(x.f), {{0, 0}, 0}, {}, "transpose: expected a permutation of the 2 dimensions of f32[4,8], given [0,0]"},
    {Op::ReduceSum, ARGS(x.c), {{0}, 0}, {}, "reduce_sum: expected numbers, given bool[4,8]"},
    {Op::ReduceProd, ARGS(x.c), {{0}, 0}, {}, "reduce_prod: expected numbers, given bool[4,8]"},
    {Op::Slice, ARGS(x.f), {{0, 0, 1, 1}, 0}, Type::value({}, {4}), "slice: expected a shape of 2 dimensions for f32[4,8], given [4]"},
    {Op::Slice, ARGS(x.f), {{0, 0, 1}, 0}, Type::value({}, {4, 8}), "slice: expected 4 integers as attributes, given 3"},
    {Op::Slice, ARGS(x.f), {{0, 5, 1, 1}, 0}, Type::value({}, {4, 4}), "slice: slice of start 5, size 4, stride 1 is out of bounds for dimension 1 of f32[4,8]"},
    {Op::Slice, ARGS(x.f), {{0, 2, 1, -1}, 0}, Type::value({}, {4, 4}), "slice of start 2, size 4, stride -1 is out of bounds"},
    {Op::Slice, ARGS(x.f), {{0, 0, 1, 0}, 0}, Type::value({}, {4, 4}), "slice of start 0, size 4, stride 0 is out of bounds"},
    {Op::Slice, ARGS(x.f), {{-1, 0, 1, 1}, 0}, Type::value({}, {4, 8}), "slice of start -1, size 4, stride 1 is out of bounds"},
    {Op::Concatenate, ARGS(x.f, x.h), {{0}, 0}, {}, "concatenate: expected operands of one dtype, and of one shape but for dimension 0, given f32[4,8] and f16[4,8]"},
    {Op::Concatenate, ARGS(x.h, x.w), {{0}, 0}, {}, "concatenate: expected operands of one dtype, and of one shape but for dimension 0, given f16[4,8] and f16[8,16]"},
    {Op::Concatenate, ARGS(x.s, x.s), {{0}, 0}, {}, "concatenate: expected a dimension of i32[], given 0"},
    {Op::Concatenate, ARGS(x.f, x.s), {{1}, 0}, {}, "concatenate: expected operands of one dtype, and of one shape but for dimension 1, given f32[4,8] and i32[]"},
    {Op::DynamicSlice, ARGS(x.f, x.s), {}, Type::value({}, {4, 3}), "dynamic_slice: expected a start for each dimension of f32[4,8], given 1"},
    {Op::DynamicSlice, ARGS(x.f, x.s, x.i), {}, Type::value({}, {4, 3}), "dynamic_slice: expected i32[] as a start, given i32[4,8]"},
    {Op::DynamicSlice, ARGS(x.f, x.s, x.s), {}, Type::value({}, {4, 9}), "dynamic_slice: a part of shape [4,9] does not fit into f32[4,8]"},
    {Op::DynamicUpdateSlice, ARGS(x.f, x.h, x.s, x.s), {}, {}, "dynamic_update_slice: expected operands of one dtype"},
    {Op::DynamicUpdateSlice, ARGS(x.h, x.w, x.s, x.s), {}, {}, "dynamic_update_slice: a part of shape [8,16] does not fit into f16[4,8]"},
    {Op::TakeAlong, ARGS(x.f, x.f), {{0}, 0}, {}, "take_along_axis: expected indices i32 of the operand's shape but for dimension 0, given f32[4,8] and f32[4,8]"},
    {Op::TakeAlong, ARGS(x.w, x.i), {{0}, 0}, {}, "take_along_axis: expected indices i32 of the operand's shape but for dimension 0, given f16[8,16] and i32[4,8]"},
    {Op::TakeAlong, ARGS(x.f, x.i), {{2}, 0}, {}, "take_along_axis: expected a dimension of f32[4,8], given 2"},
    {Op::ReduceMax, ARGS(x.f), {{1, 0}, 0}, {}, "reduce_max: expected ascending dimensions of f32[4,8], given [1,0]"},
    {Op::ReduceMin, ARGS(x.f), {}, {}, "reduce_min: expected at least one dimension of f32[4,8], given none"},
    {Op::CumSum, ARGS(x.c), {{0, 0}, 0}, {}, "cumsum: expected numbers, given bool[4,8]"},
    {Op::CumMax, ARGS(x.c), {{0, 0}, 0}, {}, "cummax: expected numbers, given bool[4,8]"},
    {Op::CumSum, ARGS(x.f), {{2, 0}, 0}, {}, "cumsum: expected a dimension of f32[4,8], given 2"},
    {Op::CumSum, ARGS(x.f), {{-1, 0}, 0}, {}, "cumsum: expected a dimension of f32[4,8], given -1"},
    {Op::CumSum, ARGS(x.s), {{0, 0}, 0}, {}, "cumsum: expected a dimension of i32[], given 0"},
    {Op::CumSum, ARGS(x.f), {{0, 2}, 0}, {}, "cumsum: expected 0 or 1 for the direction, given 2"},
    {Op::CumSum, ARGS(x.f), {{0}, 0}, {}, "cumsum: expected 2 integers as attributes, given 1"},
    {Op::CumSum, ARGS(x.ref), {{0, 0}, 0}, {}, "cumsum: expected a value as operand 0, given ref block f32[4,8]; did you forget to load it: x[_] ?"},
    {Op::Dot, ARGS(x.h, x.w), {{0, 1, 0}, 0}, {}, "dot: inner sizes differ: f16[4,8] has 8, f16[8,16] transposed has 16"},
    {Op::Dot, ARGS(x.s, x.s), {{0, 0, 0}, 0}, {}, "dot: operands must be 2D, given i32[] and i32[]"},
    {Op::Dot, ARGS(x.f, x.w), {{0, 0, 0}, 0}, {}, "dot: expected operands of one dtype, given f32[4,8] and f16[8,16]"},
    {Op::Dot, ARGS(x.c, x.c), {{0, 1, 0}, 0}, {}, "dot: expected f16, bf16, f32, f64, i8, u8, i16 or i32 operands"},
    {Op::Dot, ARGS(x.h, x.w), {{0, 0, 1}, 0}, {}, "dot: expected f32 operands for precision tf32"},
    {Op::At, ARGS(x.ref), {at({all4}), 0}, {}, "at: expected one subscript per dimension of ref block f32[4,8], given 1"},
    {Op::At, ARGS(x.ref), {at({all4, all8}), 0}, {}, "at: a subscript that selects everything is no view"},
    {Op::At, ARGS(x.ref), {at({{.is_slice = false, .start = 4}, all8}), 0}, {}, "at: index 4 is out of bounds for dimension 0 of ref block f32[4,8]"},
    {Op::At, ARGS(x.ref), {at({all4, {.start = 5, .size = INT32_MAX, .stride = 2}}), 0}, {}, "at: a slice in dimension 1 of ref block f32[4,8] reaches over 2^31"},
    {Op::At, ARGS(x.ref, x.f), {at({{.is_slice = false, .dynamic = true, .array = true}, all8}), 0}, {}, "at: expected an array of i32 as the index of dimension 0 of ref block f32[4,8], given f32[4,8]"},
    {Op::Atomic, ARGS(x.ref, x.f), {{0, 0, 3}, 0}, {}, "atomic: atomic_and does not support f32, but i8, u8, i16, u16, i32, u32, i64, u64"},
    {Op::Atomic, ARGS(x.iref, x.i), {{0, 0, 7}, 0}, {}, "atomic: expected a value to compare with for atomic_cas alone"},
    {Op::Atomic, ARGS(x.iref, x.i), {{0, 0, 10}, 0}, {}, "atomic: there is no update 10"},
    {Op::At, ARGS(x.ref, x.i), {at({{.is_slice = false, .dynamic = true}, all8}), 0}, {}, "at: an index must be a scalar, given i32[4,8]"},
    {Op::At, ARGS(x.f), {at({all4, all8}), 0}, {}, "at: expected a Ref as operand 0, given f32[4,8]"},
    {Op::RefReshape, ARGS(x.ref), {}, Type::ref({}, {31}, {}), "ref_reshape: expected a shape of 32 elements"},
    {Op::RefTranspose, ARGS(x.ref), {{0}, 0}, {}, "ref_transpose: expected a permutation"},
    {Op::RefBitcast, ARGS(x.bref), {}, Type::ref(u8, {}, {}), "ref_bitcast: expected dtypes other than bool"},
    {Op::RefBitcast, ARGS(x.k.b.at(x.ref, graph::Subscript{{{.size = 4}, {.size = 3}}})), {}, Type::ref(f64, {}, {}), "ref_bitcast: expected a last dimension whose bytes are a multiple of those of f64"},
    {Op::Load, ARGS(x.f), {{0, 0}, 0}, {}, "load: expected a Ref as operand 0, given f32[4,8]"},
    {Op::Load, ARGS(x.ref, x.t), {{1, 0}, 0}, {}, "load: expected a mask bool[4,8], given bool[]"},
    {Op::Load, ARGS(x.ref, x.c, x.i), {{1, 1}, 0}, {}, "load: expected `other` of type f32[4,8], given i32[4,8]"},
    {Op::Load, ARGS(x.ref, x.f), {{0, 1}, 0}, {}, "load: expected a mask with `other`"},
    {Op::Load, ARGS(x.ref, x.c), {{0, 0}, 0}, {}, "load: expected 1 operands, given 2"},
    {Op::Store, ARGS(x.ref, x.i), {{0, 0}, 0}, {}, "store: expected a value f32[4,8], given i32[4,8]"},
    {Op::Store, ARGS(x.ref, x.iref), {{0, 0}, 0}, {}, "store: expected a value f32[4,8], given ref block i32[4,8]; to copy a Ref write o[_] = x[_]"},
    {Op::Swap, ARGS(x.iref, x.f), {{0, 0}, 0}, {}, "swap: expected a value i32[4,8], given f32[4,8]"},
    {Op::When, ARGS(x.s), {}, {}, "when: expected bool[] as the condition, given i32[]"},
    {Op::Loop, ARGS(x.s, x.t), {{1, 1}, 0}, {}, "loop: expected i32[] as the upper bound, given bool[]"},
    {Op::Loop, ARGS(x.s, x.s), {{0, 1}, 0}, {}, "loop: expected a step of at least 1, given 0"},
    {Op::Loop, ARGS(x.s, x.s, x.ref), {{1, 1}, 0}, {}, "loop: expected a value as operand 2, given ref block f32[4,8]"},
    {Op::SemaphoreRead, ARGS(x.sems), {}, {}, "semaphore_read: expected one semaphore, given ref semaphore i32[3]"},
    {Op::BarrierWait, ARGS(x.sem, x.s), {}, {}, "barrier_wait: expected a barrier as operand 0, given ref semaphore i32[]"},
    {Op::BarrierArrive, ARGS(x.bars, x.t), {}, {}, "barrier_arrive: expected i32[] as the number of the barrier, given bool[]"},
    {Op::BarrierArrive, ARGS(x.bars, x.s, x.t), {}, {}, "barrier_arrive: expected i32[] as the rank of the block, given bool[]"},
    {Op::RefPart, ARGS(x.room), {{0}, 0}, Type::ref(f32, {16}, Space::smem), "ref_part: expected bytes of SMEM, given ref smem f32[4,8]"},
    {Op::RefPart, ARGS(x.room_of_bytes), {{0}, 0}, Type::ref(f32, {16}, Space::regs), "ref_part: expected a Ref in SMEM within them"},
    {Op::RefPart, ARGS(x.room_of_bytes), {{1024}, 0}, Type::ref(f32, {16, 17}, Space::smem), "ref_part: ref smem f32[16,17] from byte 1024 on does not lie in"},
    {Op::RefPart, ARGS(x.room_of_bytes), {{16}, 0}, Type::ref(f32, {16}, Space::smem), "from a multiple of 1024"},
    {Op::CopyToShared, ARGS(x.array, x.room, x.bars, x.s), {{0, 3}, 0}, {}, "copy_gmem_to_smem: there is no way 3 to bring what is out of bounds"},
    {Op::CopyToGlobal, ARGS(x.array, x.room), {{1}, 0}, {}, "copy_smem_to_gmem: what is out of bounds is dropped, or is not there, given"},
    {Op::RefPeer, ARGS(x.array, x.s), {}, {}, "cluster_ref: expected a Ref in SMEM, which alone blocks of a cluster see of each other, given ref gmem f32[4,8]"},
    {Op::RefPeer, ARGS(x.room, x.t), {}, {}, "cluster_ref: expected i32[] as the rank of the block, given bool[]"},
    {Op::CopyToShared, ARGS(x.array, x.k.b.add(Op::RefPeer, {x.room, x.s}), x.bars, x.s), {}, {}, "copy_gmem_to_smem: memory of another block of the cluster is loaded and stored to, and no more"},
    {Op::CopyToShared, ARGS(x.array, x.room, x.bars, x.s), {{1}, 0}, {}, "copy_gmem_to_smem: expected a bit for each of 0 cluster axes, given 1"},
    {Op::CopyToShared, ARGS(x.array, x.wide, x.bars, x.s), {}, {}, "copy_gmem_to_smem: expected dtypes to match, given a source ref gmem f32[4,8] and a destination ref smem f64[4,8]"},
    {Op::CopyToShared, ARGS(x.array, x.flat, x.bars, x.s), {}, {}, "copy_gmem_to_smem: expected source shape to be [32] as the destination's, given [4,8]"},
    {Op::CopyToShared, ARGS(x.room, x.room, x.bars, x.s), {}, {}, "copy_gmem_to_smem: expected a Ref in GMEM, given ref smem f32[4,8]"},
    {Op::CopyToGlobal, ARGS(x.array, x.array), {}, {}, "copy_smem_to_gmem: expected a Ref in SMEM, given ref gmem f32[4,8]"},
    {Op::ReduceToGlobal, ARGS(x.array, x.room), {{0, 0, 3}, 0}, {}, "copy_smem_to_gmem_reduce: atomic_and does not support f32"},
    {Op::ReduceToGlobal, ARGS(x.array, x.room), {{0, 0, 7}, 0}, {}, "copy_smem_to_gmem_reduce: there is no reduction 7"},
    {Op::FetchToShared, ARGS(x.room, x.room), {}, {}, "copy_gmem_to_smem_group: expected a Ref in GMEM, given ref smem f32[4,8]"},
    {Op::AwaitFetches, ARGS(), {{-1}, 0}, {}, "wait_gmem_to_smem: expected 0 or more copies, given -1"},
    {Op::Prefetch, ARGS(x.room), {}, {}, "async_prefetch: expected a Ref in GMEM, given ref smem f32[4,8]"},
    {Op::AwaitCopies, ARGS(), {{-1, 0}, 0}, {}, "wait_smem_to_gmem: expected 0 or more groups, given -1"},
    {Op::SetMaxRegisters, ARGS(), {{41, 1}, 0}, {}, "set_max_registers: expected a multiple of 8 registers, from 24 to 256, given 41"},
    {Op::SetMaxRegisters, ARGS(), {{40, 2}, 0}, {}, "set_max_registers: expected a flag 0 or 1, given [40,2]"},
    {Op::Wgmma, ARGS(x.room, x.a_smem, x.b_smem), {{0, 0, 1}, 0}, {}, "wgmma: expected an accumulator as operand 0, given ref smem f32[4,8]; accumulators are scratch of a plgpu::kernel, plgpu::ACC({m, n})"},
    {Op::Wgmma, ARGS(x.acc, x.array, x.b_smem), {{0, 0, 1}, 0}, {}, "wgmma: expected A in SMEM, given ref gmem f32[4,8]"},
    {Op::Wgmma, ARGS(x.acc, x.bytes, x.b_smem), {{0, 0, 1}, 0}, {}, "wgmma: mixed input dtypes for matrix multiplication unsupported, given i8 and f16"},
    {Op::Wgmma, ARGS(x.acc, x.bytes, x.bytes), {{0, 1, 1}, 0}, {}, "wgmma: expected an accumulator of i32 for operands of i8 and i8, given f32"},
    {Op::Wgmma, ARGS(x.acc, x.a_smem, x.a_smem), {{0, 0, 1}, 0}, {}, "wgmma: incompatible shapes for matrix multiplication: A is [64,32], B is [64,32], the accumulator [64,16]"},
    {Op::WgmmaHeld, ARGS(x.acc, x.a_smem, x.b_smem), {{0, 0, 1}, 0}, {}, "wgmma_held: expected a value as operand 1, given ref smem f16[64,32]; did you forget to load it: x[_] ?"},
    {Op::AwaitProducts, ARGS(), {{-1}, 0}, {}, "wgmma_wait: expected 0 or more products that may be under way, given -1"},
    {Op::LayoutCast, ARGS(x.f), {{2}, 0}, {}, "layout_cast: a layout is malformed"},
    {Op::LayoutCast, ARGS(x.s), {{2, 0}, 0}, {}, "layout_cast: expected an array, given i32[]"},
    {Op::PrintLayout, ARGS(x.f), {{-1}, 0}, {}, "print_layout: expected a text with {}, given \"\""},
    {Op::ScopeEvent, ARGS(), {{0, 2, 8, 0, 1}, 0, "load"}, {}, "named_scope: expected the number of a scope, whether it ends, and of how many, given [0,2,8,0,1]"},
    {Op::InlineCuda, ARGS(x.f), {{0, 0}, 0, "text x"}, {}, "inline_cuda: it is malformed"},
    {Op::InlineCuda, ARGS(x.f), {{0, 0, 2}, 0, "text x\n"}, {}, "inline_cuda: it is malformed"},
    {Op::InlineCuda, ARGS(x.f), {{0, 0, 0, 0}, 0, "text x\n"}, {}, "inline_cuda: it is malformed"},
    {Op::InlineCuda, ARGS(x.f), {{0, 4, 0}, 0, "text x\n"}, {}, "inline_cuda: it is malformed"},
    {Op::InlineCuda, ARGS(x.f), {{0, 1, 0}, 0, "text x\n"}, {}, "inline_cuda: expected a Ref as 'x', given f32[4,8]"},
    {Op::InlineCuda, ARGS(x.ref), {{0, 0, 0}, 0, "text x\n"}, {}, "inline_cuda: expected a value as 'x', given ref block f32[4,8]"},
    {Op::InlineCuda, ARGS(x.acc), {{0, 1, 0}, 0, "text x\n"}, {}, "inline_cuda: expected a Ref of global or shared memory as 'x', given ref accumulator f32[64,16]"},
    {Op::InlineCuda, ARGS(x.f), {{1, 0, 0}, 0, "text x\nmov $y, $x;"}, {}, "inline_cuda: '$y' is the name of no operand and of no result"},
    {Op::Get, ARGS(x.k.b.add(Op::InlineCuda, {}, Attr{{0}, 0, "text\n"})), {{0}, 0}, {}, "get: expected a result below 0, given 0"},
    {Op::SemaphoreSignal, ARGS(x.iref, x.s), {}, {}, "semaphore_signal: expected a semaphore, given ref block i32[4,8]"},
    {Op::SemaphoreWait, ARGS(x.sem, x.t), {{1}, 0}, {}, "semaphore_wait: expected i32[] as what is waited for, given bool[]"},
    {Op::Delay, ARGS(x.f), {}, {}, "delay: expected i32[] as the nanoseconds, given f32[4,8]"},
    {Op::DebugPrint, ARGS(x.s), {{1}, 0, "{} {}"}, {}, "debug_print: the format string expects 2 values, given 1"},
    {Op::DebugPrint, ARGS(x.s), {{-1}, 0, "{}"}, {}, "debug_print: expected the number of a site, given -1"},
    {Op::DebugPrint, ARGS(x.ref), {{1}, 0, "{}"}, {}, "debug_print: expected a value as operand 0, given ref block f32[4,8]"},
    {Op::DebugCheck, ARGS(x.c), {{1}, 0, "x"}, {}, "debug_check: expected bool[] as the condition, given bool[4,8]"},
    {Op::Load, ARGS(x.sem), {{0, 0}, 0}, {}, "load: ref semaphore i32[] is read by pl::semaphore_read"},
    {Op::While, ARGS(x.ref), {}, {}, "while: expected a value as operand 0, given ref block f32[4,8]"},
    {Op::Switch, ARGS(x.f), {}, {}, "switch: expected i32[] or bool[] as the index, given f32[4,8]"},
    {Op::Warps, ARGS(), {{1}, 0}, {}, "warps: expected 0 integers as attributes, given 1"},
    {Op::AxisIndex, ARGS(), {{3, 1}, 0}, {}, "axis_index: expected a warp axis below 1, given 1"},
    {Op::Iota, ARGS(), {{0}, 0}, Type::value(i4, {2}), "iota: expected i8 to count in, given i4[2]"},
    {Op::Store, ARGS(x.k.b.at(x.ref, {{{.size = 4, .stride = 0}, all8}}), x.f), {{0, 0}, 0}, {}, "store: expected a view without a slice of stride 0"},
    {Op::Scoped, ARGS(), {{1}, 0}, {}, "run_scoped: expected 0 integers as attributes, given 1"},
    {Op::Get, ARGS(x.k.b.add(Op::Scoped, {}, Attr{})), {{0}, 0}, {}, "get: the run_scoped has no region"},
    {Op::Get, ARGS(x.k.b.add(Op::Switch, {x.s}, Attr{})), {{0}, 0}, {}, "get: the switch has no region"},
    {Op::Get, ARGS(x.k.b.add(Op::Switch, {x.s}, std::vector<RegionId>{x.k.region([&](Builder& b) { b.yield({x.f}); })})), {{1}, 0}, {}, "get: expected a result below 1, given 1"},
    {Op::Get, ARGS(x.f), {{0}, 0}, {}, "get: expected a loop or a switch, given load"},
    {Op::Get, ARGS(x.k.b.add(Op::Loop, {x.s, x.s, x.f}, Attr{{1, 1}, 0})), {{1}, 0}, {}, "get: expected a carry below 1, given 1"},
};
// clang-format on

}  // namespace

TEST_CASE("every op gives the type of its rule") {
  std::set<Op> seen;
  for (const Case& c : accepted) {
    Fixture x;
    const std::vector<ValueId> args = c.args(x);
    INFO(info(c.op).name);
    CHECK(to_string(infer(x.k.g, c.op, c.attr, args, c.given, user)) == c.expected);
    seen.insert(c.op);
  }
  for (int i = 0; i < num_ops; ++i) {
    INFO(info(static_cast<Op>(i)).name);
    CHECK(seen.count(static_cast<Op>(i)) == 1);
  }
}

TEST_CASE("every wrong combination is a CompileError at the user's line [E12] [E15] [E26]") {
  for (const Case& c : refused) {
    Fixture x;
    const std::vector<ValueId> args = c.args(x);
    try {
      infer(x.k.g, c.op, c.attr, args, c.given, user);
      FAIL("accepted: " << c.expected);
    } catch (const CompileError& e) {
      CHECK_THAT(e.what(), ContainsSubstring(c.expected));
      CHECK_THAT(e.what(), ContainsSubstring("\n  at attention.cpp:41"));
      CHECK(e.at() == user);
    }
  }
}

TEST_CASE(
    "an operation says what it does with each Ref that it takes, unless it makes a view of it") {
  for (const Case& c : accepted) {
    Fixture x;
    const std::vector<ValueId> args = c.args(x);
    const graph::Effects effects = graph::effects(Inst{c.op, {}, c.attr, args, {}});
    INFO(info(c.op).name);
    if (c.op == Op::Prefetch) continue;  // which stays where it is, and reads nothing
    for (std::size_t i = 0; i < args.size(); ++i) {
      INFO("operand " << i);
      const Type& type = x.k.g[args[i]].type;
      const bool viewed =
          (info(c.op).op_class == OpClass::view && i == 0) || (effects.completes == i && i > 0);
      const auto says = std::ranges::count(effects.on_operands(), i, &graph::Effect::operand);
      CHECK(says == (type.is_ref() && !viewed ? 1 : 0));
      const bool meets = type.space == Space::semaphore || type.space == Space::barrier;
      if (type.is_ref() && !effects.is_async) CHECK(effects.syncs == meets);
    }
  }
}

TEST_CASE("an operand with a name is called by it") {
  Fixture x;
  x.k.g.names.resize(x.k.g.insts.size());
  x.k.g.names[index(x.ref)] = "q";
  const ValueId args[] = {x.ref};
  CHECK_THROWS_WITH(infer(x.k.g, Op::Exp, {}, args, {}, user),
                    ContainsSubstring("as operand 0 (q), given ref"));
}

TEST_CASE("elementwise operands broadcast as in numpy") {
  HandMade k({{{4, 1}, f32}, {{8}, f32}, {{3}, f32}});
  const ValueId x = k.b.load(k.refs[0]), y = k.b.load(k.refs[1]), z = k.b.load(k.refs[2]);
  CHECK(to_string(k.g[k.b.elementwise(Op::Add, {x, y})].type) == "f32[4,8]");
  CHECK(to_string(k.g[k.b.elementwise(Op::Fma, {y, x, k.b.constant(f32, 1.0)})].type) ==
        "f32[4,8]");
  CHECK_THROWS_WITH(
      k.b.elementwise(Op::Mul, {y, z}, user),
      "mul: expected operands whose shapes can be broadcast to one, given f32[8] and f32[3]\n"
      "  at attention.cpp:41");
  CHECK_THROWS_WITH(k.b.broadcast_to(x, {4}, user),
                    ContainsSubstring("broadcast: expected a shape of at least 2 dimensions"));
}

TEST_CASE("nothing is recorded by an op that is refused") {
  Fixture x;
  const std::size_t insts = x.k.g.insts.size(), listed = x.k.g.regions[0].insts.size();
  CHECK_THROWS_AS(x.k.b.add(Op::Add, {x.f, x.i}), CompileError);
  CHECK(x.k.g.insts.size() == insts);
  CHECK(x.k.g.regions[0].insts.size() == listed);
}
