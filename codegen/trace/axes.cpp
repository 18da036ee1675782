// Where in the grid, the cluster and the block a body runs.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "codegen/trace/recorder.hpp"
#include "palladium/error.hpp"
#include "palladium/ops.hpp"

namespace palladium::trace {
namespace {

using graph::AxisKind;

int axis_number(const Recorder& recorder, int axis, const char* what, Location at) {
  const std::vector<GridAxis>& axes = recorder.grid_axes;
  const int rank = static_cast<int>(axes.size());
  const int positive = axis < 0 ? axis + rank : axis;
  if (positive >= 0 && positive < rank) return positive;
  std::string sizes;
  for (const GridAxis& a : axes) sizes += (sizes.empty() ? "" : ",") + to_string(a.size);
  throw CompileError(at, std::string(what) + ": axis " + std::to_string(axis) +
                             " is out of bounds for grid [" + sizes + "]");
}

/// The body whose thread axis it is, this one's before others'; -1 if there is none.
int body_with_threads(const Recorder& recorder, const std::string& name) {
  if (recorder.threads.empty()) return -1;
  if (recorder.threads[recorder.body].name == name) return static_cast<int>(recorder.body);
  const auto it = std::ranges::find(recorder.threads, name, &Threads::name);
  return it == recorder.threads.end() ? -1 : static_cast<int>(it - recorder.threads.begin());
}

}  // namespace

NamedAxis axis_named(const Recorder& recorder, const char* name, const char* what, Location at) {
  if (!name) throw CompileError(at, std::string(what) + ": the name is a null pointer");
  const std::optional<std::string>& warps = recorder.warp_axis;
  if (warps && !warps->empty() && *warps == name) return {AxisKind::warp, 0};
  const graph::Graph& g = recorder.graph;
  std::vector<std::string> list;
  const auto find = [&](const std::vector<std::string>& names) {
    list.insert(list.end(), names.begin(), names.end());
    const auto it = std::ranges::find(names, name);
    return it == names.end() || it->empty() ? -1 : static_cast<int>(it - names.begin());
  };
  std::vector<std::string> of_grid;
  for (const GridAxis& a : recorder.grid_axes) of_grid.push_back(a.name);
  if (const int i = find(of_grid); i >= 0) return {AxisKind::grid, i};
  std::erase(list, std::string());
  if (const int i = find(g.cluster_names); i >= 0) return {AxisKind::cluster, i};
  if (name[0] != '\0')
    if (const int i = body_with_threads(recorder, name); i >= 0) return {AxisKind::thread, i};
  if (warps && !warps->empty()) list.push_back(*warps);
  for (const Threads& threads : recorder.threads)
    if (!threads.name.empty() && std::ranges::find(list, threads.name) == list.end())
      list.push_back(threads.name);
  std::string names;
  for (const std::string& n : list) names += (names.empty() ? "'" : ", '") + n + "'";
  throw CompileError(
      at, std::string(what) + ": no axis is named '" + name + "'; " +
              (names.empty() ? "none has a name: .grid = {{\"i\", n}}" : "there are: " + names));
}

namespace {

// The size as a C++ number where the grid is static.
std::optional<Value> static_size(const Recorder& recorder, const NamedAxis& axis) {
  const graph::Graph& g = recorder.graph;
  const auto number = static_cast<std::size_t>(axis.number);
  if (axis.kind == AxisKind::thread) return Value(recorder.threads[number].count);
  if (axis.kind == AxisKind::cluster) return Value(g.cluster[number]);
  if (axis.kind == AxisKind::warp) return Value(graph::num_warps);
  const GridAxis& of_grid = recorder.grid_axes[number];
  if (of_grid.has_static_size) return Value(of_grid.size.value());
  return {};
}

Value index_along(Recorder& recorder, const NamedAxis& axis, const char* name, Location at) {
  const bool is_thread = axis.kind == AxisKind::thread;
  if (is_thread && axis.number != static_cast<int>(recorder.body))
    throw CompileError(at, std::string("axis_index: '") + name +
                               "' is the thread axis of another body of this kernel; here only its "
                               "axis_size is known");
  Attr attr{{static_cast<std::int64_t>(axis.kind), is_thread ? 0 : axis.number}, 0};
  const Value index =
      recorder.value(recorder.builder().add(Op::AxisIndex, {}, std::move(attr), {}, at));
  const int first = is_thread ? recorder.threads[recorder.body].first : 0;
  return first == 0 ? index : elementwise(Op::Sub, {index, Value(first)}, at);
}

Value size_along(Recorder& recorder, const NamedAxis& axis, Location at) {
  if (const auto size = static_size(recorder, axis)) return *size;
  Attr attr{{static_cast<std::int64_t>(axis.kind), axis.number}, 0};
  return recorder.value(recorder.builder().add(Op::AxisSize, {}, std::move(attr), {}, at));
}

void expect_names(std::size_t count, const char* what, Location at) {
  if (count == 0) throw CompileError(at, std::string(what) + ": no axis is named");
}

}  // namespace
}  // namespace palladium::trace

namespace palladium {

using trace::Attr;
using trace::Op;
using trace::Recorder;

Value program_id(int axis, Location at) {
  Recorder& recorder = Recorder::current("program_id", at);
  const int number = trace::axis_number(recorder, axis, "program_id", at);
  return recorder.value(recorder.builder().add(Op::ProgramId, {}, Attr{{number}, 0}, {}, at));
}

Value num_programs(int axis, Location at) {
  Recorder& recorder = Recorder::current("num_programs", at);
  const int number = trace::axis_number(recorder, axis, "num_programs", at);
  if (const auto size = trace::static_size(recorder, {graph::AxisKind::grid, number})) return *size;
  return recorder.value(recorder.builder().add(Op::NumPrograms, {}, Attr{{number}, 0}, {}, at));
}

Value axis_index(const char* name, Location at) {
  Recorder& recorder = Recorder::current("axis_index", at);
  return trace::index_along(recorder, trace::axis_named(recorder, name, "axis_index", at), name,
                            at);
}

Value axis_index(std::initializer_list<const char*> names, Location at) {
  Recorder& recorder = Recorder::current("axis_index", at);
  trace::expect_names(names.size(), "axis_index", at);
  Value index;
  for (const char* name : names) {
    const trace::NamedAxis axis = trace::axis_named(recorder, name, "axis_index", at);
    const Value along = trace::index_along(recorder, axis, name, at);
    if (name == *names.begin()) {
      index = along;
      continue;
    }
    const Value scaled =
        trace::elementwise(Op::Mul, {index, trace::size_along(recorder, axis, at)}, at);
    index = trace::elementwise(Op::Add, {scaled, along}, at);
  }
  return index;
}

Value axis_size(const char* name, Location at) {
  Recorder& recorder = Recorder::current("axis_size", at);
  return trace::size_along(recorder, trace::axis_named(recorder, name, "axis_size", at), at);
}

Value axis_size(std::initializer_list<const char*> names, Location at) {
  trace::expect_names(names.size(), "axis_size", at);
  Value size = 1;
  for (const char* name : names)
    size = trace::elementwise(Op::Mul, {size, axis_size(name, at)}, at);
  return size;
}

}  // namespace palladium
