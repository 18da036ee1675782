// The layout pass and the program of a thread give one answer on what an access is.
#include <catch2/catch_test_macros.hpp>

#include <random>

#include "codegen/layout/constructors.hpp"
#include "codegen/passes/access_model.hpp"
#include "tests/passes/lowering.hpp"

using namespace palladium;
using namespace palladium::test;

namespace {

// Accesses that a thread makes in a kernel of one load and one store: in the model, and in the
// program.
struct Counts {
  std::vector<std::int64_t> modelled, made;
  int width = 1;  // of the load
};

// In a list, which a thread goes through so many times, the first load and the first store.
void find_accesses(const thread::Exprs& exprs, const thread::Statements& list, std::int64_t times,
                   std::vector<std::int64_t>& loads, std::vector<std::int64_t>& stores) {
  for (const thread::Statement& s : list) {
    if (std::holds_alternative<thread::Load>(s.what)) loads.push_back(times);
    if (std::holds_alternative<thread::Store>(s.what)) stores.push_back(times);
    std::int64_t trips = 1;
    if (const auto* loop = std::get_if<thread::For>(&s.what))
      trips = (exprs[loop->high].number - exprs[loop->low].number) / loop->step;
    if (const thread::Statements* body = thread::body_of(s))
      find_accesses(exprs, *body, times * trips, loads, stores);
  }
}

int width_of_first_load(const thread::Statements& list) {
  for (const thread::Statement& s : list) {
    if (const auto* load = std::get_if<thread::Load>(&s.what)) return load->access.width;
    const thread::Statements* body = thread::body_of(s);
    if (const int inside = body == nullptr ? 0 : width_of_first_load(*body); inside > 0)
      return inside;
  }
  return 0;
}

Counts accesses_of(const std::string& text) {
  const lowered::Program l = cuda::lower(graph_of(text), {.compute_capability = 90});
  passes::AccessModel model(l);
  Counts counts;
  for (const lowered::Statement& s : l.bodies[0].agents[0].statements) {
    const auto* ways = std::get_if<lowered::IfWhole>(&s.what);
    const auto* nest =
        std::get_if<lowered::LoopNest>(ways == nullptr ? &s.what : &ways->bodies[0][0].what);
    const auto* store = nest == nullptr ? nullptr : std::get_if<lowered::Store>(&nest->sink);
    if (store == nullptr) continue;
    model.enter(*nest, nest->layout);
    const lowered::DimMap all = lowered::identity_map(nest->layout.rank());
    for (const graph::ValueId access : {nest->value, store->inst}) {
      const auto cost = model.cost(l.graph[access].args[0], all, nest->layout);
      counts.modelled.push_back(cost ? cost->accesses : nest->layout.registers());
    }
  }
  const thread::Program program = cuda::thread_program(l);
  std::vector<std::int64_t> loads, stores;
  find_accesses(program.exprs, program.body, 1, loads, stores);
  counts.made = {loads.front(), stores.front()};
  counts.width = width_of_first_load(program.body);
  return counts;
}

// A copy of a random slice of a random array, at a start that is static, or a multiple of something
// that the grid or the class of a size gives.
std::string random_copy(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto one_of = [&](std::vector<int> list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  };
  const std::string type = std::vector<std::string>{"u8", "f16", "f32", "f64"}[below(4)];
  const int rows = one_of({1, 2, 8}), columns = one_of({96, 100, 128, 250, 256});
  const int width = one_of({64, 66, 80, 92}), start = below(5);
  const int stride = columns >= 2 * width + start ? one_of({1, 1, 2}) : 1;
  const std::string in = type + "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  const std::string out = type + "[" + std::to_string(rows) + "," + std::to_string(width) + "]";
  const std::string slice = std::to_string(start) + "," + std::to_string(width) +
                            (stride > 1 ? "," + std::to_string(stride) : "");
  const bool whole_array = below(2) == 0;
  const std::string map = R"(
    { %0: i32[]
      %1: i32[] = constant 0
      yield %1, %0
    }
)";
  const int extent = one_of({3 * columns, 3 * columns - 1, 3 * columns - 4});
  const std::string array =
      whole_array ? in : type + "[" + std::to_string(rows) + "," + std::to_string(extent) + "]";
  const std::string to = type + "[" + std::to_string(rows) + "," + std::to_string(3 * width) + "]";
  std::string text = "kernel k\n  grid" + std::string(whole_array ? "" : " 3") + "\n";
  const auto block = [&](const std::string& origin, const std::string& whole,
                         const std::string& part) {
    text += "  " + origin + ": " + whole + " in blocks " + part.substr(part.find('[')) +
            (whole_array ? "\n" : map);
  };
  block("args[0]", array, in);
  block("outputs[0]", whole_array ? out : to, out);
  return text + "{ %0: ref block " + in + " %1: ref block " + out + "\n  %2: ref block " + out +
         " = at %0 [ds(0," + std::to_string(rows) + "), ds(" + slice + ")]\n  %3: " + out +
         " = load %2\n  store %1, %3\n}\n";
}

}  // namespace

TEST_CASE("accesses are as many as the layout pass took them to be") {
  std::mt19937 random(20261122);
  int wide = 0;
  for (int n = 0; n < 300; ++n) {
    const std::string text = random_copy(random);
    INFO(text);
    const Counts counts = accesses_of(text);
    REQUIRE(counts.modelled.size() == 2);
    CHECK(counts.modelled == counts.made);
    wide += counts.width > 1;
  }
  CHECK(wide > 50);
}

TEST_CASE("a layout is weighed by the sectors that its accesses touch") {
  // Columns of the source are rows of the result: 32 lanes along the source touch 4 sectors, along
  // the result 32.
  const lowered::Program l = cuda::lower(graph_of(whole({"f32[128,128]"}, {"f32[128,128]"}, R"(
  %2: ref block f32[128,128] = ref_transpose %0 [1,0]
  %3: f32[128,128] = load %2
  store %1, %3)")),
                                         {.compute_capability = 90});
  passes::AccessModel model(l);
  const auto& nest = std::get<lowered::LoopNest>(l.bodies[0].agents[0].statements.back().what);
  const layout::Layout rows = layout::strided({128, 128}, 1);
  model.enter(nest, rows);
  const auto of = [&](graph::ValueId access) {
    return *model.cost(l.graph[access].args[0], {0, 1}, rows);
  };
  const auto& store = std::get<lowered::Store>(nest.sink);
  CHECK(of(store.inst).sectors == 128 * 128 / 8);
  CHECK(of(nest.value).sectors == 128 * 128);
  CHECK(of(nest.value).load > of(store.inst).load);
}
