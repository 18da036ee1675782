// Kernels in which some wait for others, and what can be wrong with how they do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/program.hpp"
#include "tests/support/tracing.hpp"

namespace palladium::test::waiting {

using lowered::Statement;
using lowered::Statements;

inline lowered::Program on(const graph::Graph& g, int compute_capability) {
  return cuda::lower(g, {.compute_capability = compute_capability});
}

struct Choice {
  std::optional<bool> specialize = {};
  bool persistent = false;
  int warps = 4, stages = 3, iterations = 12;
  std::vector<Dim> cluster = {};  // of rows and columns of tiles

  std::int64_t blocks_along(std::size_t axis) const {
    return cluster.empty() ? 1 : cluster[axis].value();
  }
  std::vector<std::string> cluster_names() const {
    return cluster.empty() ? std::vector<std::string>() : std::vector<std::string>{"row", "column"};
  }
};

// o = a b, an iteration for each part of K.
inline graph::Graph product(const Choice& c) {
  const int k = c.iterations * 32, rows = 16 * c.warps;
  const auto tile = [=](Index i, const char* axis, std::int64_t blocks) {
    return c.cluster.empty() ? i : Index(i * blocks + axis_index(axis));
  };
  const auto body = [=](Ref a, Ref b, Ref o) {
    const Value sum = loop(
        0, c.iterations,
        [&](Index i, Value before) {
          const Slice at = ds(i * 32, 32);
          return before + dot(a[{_, at}], b[{at, _}]);
        },
        zeros({rows, 64}, f32));
    o[_] = sum.astype(f16);
  };
  const std::int64_t m = 4 * rows * c.blocks_along(0), n = 64 * c.blocks_along(1);
  const auto row = [=](Index i) { return tile(i, "row", c.blocks_along(0)); };
  const auto column = [=] { return tile(0, "column", c.blocks_along(1)); };
  return traced(body,
                {.name = "product",
                 .out_type = ShapeDtype{{m, n}, f16},
                 .grid = {4},
                 .cluster = c.cluster,
                 .cluster_names = c.cluster_names(),
                 .in_specs = {{{rows, k},
                               [=](Index i) {
                                 return Indices{row(i), 0};
                               }},
                              {{k, 64},
                               [=](Index) {
                                 return Indices{0, column()};
                               }}},
                 .out_specs = {{{rows, 64},
                                [=](Index i) {
                                  return Indices{row(i), column()};
                                }}},
                 .compiler_params = {.num_warps = c.warps,
                                     .num_stages = c.stages,
                                     .warp_specialize = c.specialize,
                                     .persistent = c.persistent}},
                {array({m, k}, f16), array({k, n}, f16)});
}

// A loop of two products, of which the second one runs while the next iteration computes.
inline graph::Graph attention(const Choice& c) {
  const int keys = 32 * c.iterations;
  const auto body = [=](Ref q, Ref k, Ref v, Ref o) {
    const auto iteration = [&](Index i, Value top, Value total, Value acc) {
      const Value s = dot(q[_], k[{ds(i * 32, 32), _}], {.trans_b = true});
      const Value next = maximum(top, max(s, {.axis = {1}, .keepdims = true}));
      const Value p = exp2(s - next), shrink = exp2(top - next);
      return carry(next, total * shrink + pl::sum(p, {.axis = {1}, .keepdims = true}),
                   acc * shrink + dot(p.astype(f16), v[{ds(i * 32, 32), _}]));
    };
    auto [top, total, acc] = loop(0, c.iterations, iteration, full({64, 1}, -1e30f, f32),
                                  zeros({64, 1}, f32), zeros({64, 64}, f32));
    (void)top;
    o[_] = (acc / total).astype(f16);
  };
  const std::int64_t blocks = c.blocks_along(0) * c.blocks_along(1);
  const auto rows = [=](Index i) {
    return Indices{blocks > 1 ? Index(i * blocks + axis_index({"row", "column"})) : i, 0};
  };
  const auto all = [](Index) { return Indices{0, 0}; };
  return traced(body,
                {.name = "attention",
                 .out_type = ShapeDtype{{256 * blocks, 64}, f16},
                 .grid = {4},
                 .cluster = c.cluster,
                 .cluster_names = c.cluster_names(),
                 .in_specs = {{{64, 64}, rows}, {{keys, 64}, all}, {{keys, 64}, all}},
                 .out_specs = {{{64, 64}, rows}},
                 .compiler_params = {.num_stages = c.stages,
                                     .warp_specialize = c.specialize,
                                     .persistent = c.persistent}},
                {array({256 * blocks, 64}, f16), array({keys, 64}, f16), array({keys, 64}, f16)});
}

struct Subject {
  const char* name;
  graph::Graph graph;
  int compute_capability = 90;
};

inline std::vector<Subject> subjects() {
  return {
      {"copied by threads", product({}), 80},
      {"fetched", product({.specialize = false})},
      {"fetched, persistent", product({.specialize = false, .persistent = true})},
      {"produced", product({.specialize = true})},
      {"produced for two warpgroups", product({.specialize = true, .warps = 8})},
      {"produced, persistent", product({.specialize = true, .persistent = true})},
      {"pipelined", attention({.specialize = true})},
      {"pipelined, persistent", attention({.specialize = true, .persistent = true})},
      {"two rings", attention({.specialize = false})},
      {"produced, one operand shared", product({.specialize = true, .cluster = {2, 1}})},
      {"produced, both shared",
       product({.specialize = true, .warps = 8, .iterations = 5, .cluster = {2, 2}})},
  };
}

// ---- faults

using Check = std::function<void(const std::string& fault)>;

// Calls f for each list of statements.
inline void for_every_list(lowered::Program& l, const std::function<void(Statements&)>& f) {
  const std::function<void(Statements&)> visit = [&](Statements& list) {
    f(list);
    for (Statement& s : list) lowered::for_each_body(s, [&](Statements& body) { visit(body); });
  };
  for (lowered::Body& b : l.bodies)
    for (auto agent = b.agents.rbegin(); agent != b.agents.rend(); ++agent)
      visit(agent->statements);
}

template <class Kind>
void leave_out_each(lowered::Program& l, const std::string& word, const Check& check) {
  int number = 0;
  for_every_list(l, [&](Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!std::holds_alternative<Kind>(list[i].what)) continue;
      const Statement s = list[i];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      check("no " + word + " " + std::to_string(number++));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), s);
    }
  });
}

template <class Kind, class F>
void change_each(lowered::Program& l, const std::string& word, const F& change,
                 const Check& check) {
  int number = 0;
  for_every_list(l, [&](Statements& list) {
    for (Statement& s : list) {
      Kind* const kind = std::get_if<Kind>(&s.what);
      if (kind == nullptr) continue;
      const Kind was = *kind;
      if (change(*kind)) check(word + " " + std::to_string(number++));
      std::get<Kind>(s.what) = was;
    }
  });
}

inline bool frees(const Statement& s) {
  const auto* const a = std::get_if<lowered::Arrive>(&s.what);
  return a != nullptr && a->bytes == 0;
}
inline bool is_wait(const Statement& s) { return std::holds_alternative<lowered::Wait>(s.what); }
inline bool is_advance(const Statement& s) {
  return std::holds_alternative<lowered::Advance>(s.what);
}
// For which somebody waits before.
inline bool is_begun(const Statement& s) {
  return std::holds_alternative<lowered::Dot>(s.what) ||
         std::holds_alternative<lowered::Copy>(s.what);
}

// Each statement that is `late` stands behind the next one that is `meant`.
template <class Late, class Meant>
void delay_each(lowered::Program& l, const std::string& word, const Late& late, const Meant& meant,
                const Check& check) {
  int number = 0;
  for_every_list(l, [&](Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto at = list.begin() + static_cast<std::ptrdiff_t>(i);
      const auto found = std::find_if(at + 1, list.end(), meant);
      if (!late(*at) || found == list.end()) continue;
      const Statements was = list;
      std::rotate(at, at + 1, found + 1);
      check(word + " " + std::to_string(number++));
      list = was;
    }
  });
}

inline void for_each_fault(lowered::Program& l, const Check& check) {
  const lowered::Program whole = l;
  leave_out_each<lowered::Wait>(l, "wait", check);
  leave_out_each<lowered::Arrive>(l, "arrive", check);
  leave_out_each<lowered::Advance>(l, "advance", check);
  leave_out_each<lowered::WaitGroup>(l, "wait for a group", check);
  leave_out_each<lowered::Close>(l, "close", check);
  leave_out_each<lowered::Copy>(l, "copy", check);
  leave_out_each<lowered::Lead>(l, "lead", check);
  change_each<lowered::Arrive>(
      l, "fewer bytes", [](lowered::Arrive& a) { return a.bytes > 0 && (a.bytes -= 16) > 0; },
      check);
  change_each<lowered::Arrive>(
      l, "more bytes", [](lowered::Arrive& a) { return a.bytes > 0 && (a.bytes += 16) > 0; },
      check);
  change_each<lowered::WaitGroup>(
      l, "one more pending", [](lowered::WaitGroup& w) { return ++w.pending > 0; }, check);
  change_each<lowered::Sync>(
      l, "a block for the cluster",
      [](lowered::Sync& s) {
        return std::exchange(s.of, lowered::Sync::Of::block) == lowered::Sync::Of::cluster;
      },
      check);
  for (const lowered::BarrierId b : l.barriers.ids()) {
    const std::vector<std::int64_t> along = l.barriers[b].along;
    for (std::size_t i = 0; i < along.size(); ++i) {
      l.barriers[b].along.erase(l.barriers[b].along.begin() + static_cast<std::ptrdiff_t>(i));
      check(fmt::format("blocks {} not told for m{}", i, b.number()));
      const int arrivals = l.barriers[b].arrivals;
      l.barriers[b].arrivals =
          arrivals / lowered::blocks_told(whole, b) * lowered::blocks_told(l, b);
      check(fmt::format("blocks {} not counted for m{}", i, b.number()));
      l.barriers[b].arrivals = arrivals;
      l.barriers[b].along = along;
    }
  }
  for (const lowered::BarrierId b : l.barriers.ids())
    for (const int more : {1, -1}) {
      l.barriers[b].arrivals += more;
      check(fmt::format("{} arrival for m{}", more > 0 ? "one more" : "one less", b.number()));
      l.barriers[b].arrivals -= more;
    }
  delay_each(l, "late wait", is_wait, is_begun, check);
  delay_each(l, "product behind its slot", is_begun, frees, check);
  delay_each(l, "product behind the next slot", is_begun, is_advance, check);
}

}  // namespace palladium::test::waiting
