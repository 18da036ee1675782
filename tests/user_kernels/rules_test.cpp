// What holds of the programs that are made of the kernels of benchmarks/user_kernels, as large as
// they are used.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "benchmarks/user_kernels/cases.hpp"
#include "codegen/base/format.hpp"
#include "codegen/cuda/lower.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/lowered/format.hpp"
#include "tests/support/differential.hpp"
#include "tests/support/full.hpp"
#include "tests/user_kernels/traced.hpp"

using namespace palladium;
using namespace palladium::test;
using namespace palladium::lowered;
using user_kernels::Case;
using user_kernels::Matmul;
using user_kernels::Sum;
using user_kernels::Tile;

namespace {

bool is_loop(const Statement& s) {
  const GridLoop* const grid = std::get_if<GridLoop>(&s.what);
  return repeats(s) && (grid == nullptr || grid->axis != programs_axis);
}

template <class F>
void visit(const Statements& list, const F& f) {
  for (const Statement& s : list) {
    f(s);
    for_each_body(s, [&](const Statements& body) { visit(body, f); });
  }
}

bool has_product(const Statements& list) {
  bool found = false;
  visit(list, [&](const Statement& s) { found = found || std::holds_alternative<Dot>(s.what); });
  return found;
}

// The innermost loops with products.
std::vector<const Statement*> product_loops(const Program& l) {
  std::vector<const Statement*> all;
  for_each_list(l, [&](const Statements& list) {
    visit(list, [&](const Statement& s) {
      if (!is_loop(s)) return;
      bool products = false, inner = false;
      for_each_body(s, [&](const Statements& body) {
        products = products || has_product(body);
        visit(body, [&](const Statement& x) {
          for_each_body(
              x, [&](const Statements& b) { inner = inner || (is_loop(x) && has_product(b)); });
        });
      });
      if (products && !inner) all.push_back(&s);
    });
  });
  return all;
}

const Statements& body_of(const Statement& s) {
  if (const While* const loop = std::get_if<While>(&s.what)) return loop->body;
  return *rotation_of(s).body;
}

// Barriers that copies complete which the iteration issues for itself, and for which it waits.
std::string awaited_at_once(const Statements& body) {
  std::set<BarrierId> issued;
  bool groups = false;
  std::string found;
  const std::function<void(const Statements&, bool)> walk = [&](const Statements& list,
                                                                bool ahead) {
    for (const Statement& s : list) {
      const Ahead* const a = std::get_if<Ahead>(&s.what);
      const bool later = ahead || (a != nullptr && a->iterations > 0);
      if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->completes && !later)
        issued.insert(c->completes);
      if (const LoopNest* const p = std::get_if<LoopNest>(&s.what))
        if (const Stage* const stage = std::get_if<Stage>(&p->sink))
          groups = groups || (stage->by.asynchronous && !later);
      if (const Wait* const w = std::get_if<Wait>(&s.what);
          w != nullptr && issued.contains(w->barrier))
        found += fmt::format(" m{}", w->barrier);
      if (const WaitGroup* const w = std::get_if<WaitGroup>(&s.what))
        if (groups && w->kind == device::Completion::cp_async_group && w->pending == 0)
          found += " a group";
      for_each_body(s, [&](const Statements& inner) { walk(inner, later); });
    }
  };
  walk(body, false);
  return found;
}

// Where a user would look for what is awaited: the lines of who reads it, of what becomes of it and
// of the product that takes that.
using Lines = std::set<int>;

Lines lines_of(const Program& l, const Statement& s, const Statements& body) {
  Lines lines{s.at.line};
  const LoopNest& p = std::get<LoopNest>(s.what);
  visit(body, [&](const Statement& other) {
    const Dot* const d = std::get_if<Dot>(&other.what);
    const StorageId filled = storage_filled(p.sink);
    if (d != nullptr && filled && (d->a == filled || d->b == filled)) lines.insert(other.at.line);
  });
  for (const lowered::Effect& e : effects(l, s))
    if (e.leaf != graph::no_value) lines.insert(l.graph.location(e.leaf).line);
  return lines;
}

// What an iteration reads of global memory, but for what it copies: threads wait for that where
// they use it; and the copies for which it waits itself.
std::vector<Lines> awaited(const Program& l, const Statements& body) {
  std::vector<Lines> all;
  std::map<BarrierId, int> issued;
  const std::function<void(const Statements&)> walk = [&](const Statements& list) {
    for (const Statement& s : list) {
      if (std::holds_alternative<Ahead>(s.what) || std::holds_alternative<Lead>(s.what)) continue;
      if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->completes)
        issued[c->completes] = s.at.line;
      if (const Wait* const w = std::get_if<Wait>(&s.what); w != nullptr)
        if (const auto found = issued.find(w->barrier); found != issued.end())
          all.push_back({found->second});
      if (std::holds_alternative<LoopNest>(s.what) &&
          std::ranges::any_of(effects(l, s), [](const lowered::Effect& e) {
            return e.window && e.reads() && e.on == device::Completion::none;
          }))
        all.push_back(lines_of(l, s, body));
      for_each_body(s, walk);
    }
  };
  walk(body);
  return all;
}

// Of what is said alike of several lines, a remark names all.
bool has_remark(const Program& l, const Lines& lines) {
  return std::ranges::any_of(l.remarks, [&](const Remark& r) {
    const std::size_t at = r.text.rfind(" (lines ");
    const std::string others = at == std::string::npos ? "" : r.text.substr(at);
    return std::ranges::any_of(lines, [&](int line) {
      return r.at.line == line || others.find(std::to_string(line)) != std::string::npos;
    });
  });
}

// Storages that a copy or a stage fills and nobody reads.
std::string filled_for_nobody(const Program& l) {
  std::set<StorageId> filled, read;
  for_each_list(l, [&](const Statements& list) {
    visit(list, [&](const Statement& s) {
      const Copy* const c = std::get_if<Copy>(&s.what);
      const LoopNest* const p = std::get_if<LoopNest>(&s.what);
      if (c != nullptr && c->to.storage) filled.insert(c->to.storage);
      if (p != nullptr && std::holds_alternative<Stage>(p->sink))
        filled.insert(storage_filled(p->sink));
      for (const lowered::Effect& e : effects(l, s))
        if (e.storage && e.reads()) read.insert(e.storage);
    });
  });
  std::string found;
  for (const StorageId s : filled)
    if (!read.contains(s)) found += fmt::format(" s{}", s);
  return found;
}

// Loads that an iteration brings to shared memory more than once.
std::string fetched_twice(const Statements& body) {
  std::map<std::pair<graph::ValueId, WindowId>, std::set<StorageId>> filled;
  visit(body, [&](const Statement& s) {
    if (const Copy* const c = std::get_if<Copy>(&s.what); c != nullptr && c->to.storage)
      filled[{c->of, c->from.window}].insert(c->to.storage);
  });
  std::string found;
  for (const auto& [of, storages] : filled)
    if (of.first != graph::no_value && storages.size() > 1)
      found += fmt::format(" %{}", graph::index(of.first));
  return found;
}

// How many statements of each kind there are; what is ahead counts as such.
std::map<std::string, int> kinds(const Statements& body) {
  std::map<std::string, int> count;
  visit(body, [&](const Statement& s) {
    if (std::holds_alternative<lowered::Scalar>(s.what) ||
        std::holds_alternative<EnterWindow>(s.what))
      return;
    ++count[statement_words[s.what.index()]];
  });
  return count;
}

std::map<std::string, int> kinds_of(const Program& l) {
  std::map<std::string, int> all;
  for (const Statement* const loop : product_loops(l))
    for (const auto& [kind, n] : kinds(body_of(*loop))) all[kind] += n;
  return all;
}

Program lowered_of_case(const user_kernels::UserKernel& k, const std::string& arch) {
  return cuda::lower(graph_of(k), {.compute_capability = compute_capability_of(arch)});
}

constexpr const char* is_narrow = " at a time, not 16, because ";

// Whether a thread makes several accesses of a row where one of 16 bytes could do, and all lanes
// take what stands together.
bool could_be_wider(const AccessReport& a) {
  constexpr int wide = 16, lanes = 32;
  const bool adds = a.function.starts_with("atomic");
  return !a.shared && !adds && a.bytes < wide && a.times * a.bytes >= wide &&
         a.useful_bytes > lanes / 2 * a.bytes && a.moved_bytes <= 2 * a.useful_bytes;
}

}  // namespace

TEST_CASE("what is moved by less than 16 bytes, and need not, has a remark that says why") {
  int seen = 0;
  for (const Case& c : user_kernels::cases()) {
    const Report report =
        cuda::report(graph_of(c.make()), {.compute_capability = compute_capability_of(c.arch)}, 1);
    for (const AccessReport& a : report.accesses) {
      if (!could_be_wider(a)) continue;
      INFO(c.name << ", line " << a.at.line << ": " << a.function << " of " << a.bytes);
      CHECK(std::ranges::any_of(report.remarks, [&](const Remark& r) {
        return r.at.line == a.at.line && r.text.find(is_narrow) != std::string::npos;
      }));
      ++seen;
    }
  }
  CHECK(seen > 8);
}

TEST_CASE("banks make no thread wait that converts weights for a product") {
  int seen = 0;
  for (const Case& c : user_kernels::cases()) {
    if (c.name.find("weights") == std::string::npos) continue;
    const Report report =
        cuda::report(graph_of(c.make()), {.compute_capability = compute_capability_of(c.arch)}, 1);
    for (const AccessReport& a : report.accesses) {
      if (!a.shared || a.bytes < 16) continue;
      INFO(c.name << ", line " << a.at.line << ": " << a.function);
      CHECK(a.touched == a.needed);
      ++seen;
    }
  }
  CHECK(seen > 8);
}

TEST_CASE("no iteration with a product waits for its own copies") {
  for (const Case& c : user_kernels::cases()) {
    const Program l = lowered_of_case(c.make(), c.arch);
    INFO(c.name);
    std::string found;
    for (const Statement* const loop : product_loops(l)) found += awaited_at_once(body_of(*loop));
    CHECK(found == "");
  }
}

TEST_CASE("what a loop with a product awaits in the iteration that asks for it has a remark") {
  int seen = 0;
  for (const Case& c : user_kernels::cases()) {
    const Program l = lowered_of_case(c.make(), c.arch);
    INFO(c.name);
    for (const Statement* const loop : product_loops(l))
      for (const Lines& lines : awaited(l, body_of(*loop))) {
        CAPTURE(lines);
        CHECK(has_remark(l, lines));
        ++seen;
      }
  }
  CHECK(seen > 0);
}

TEST_CASE("kernels that copy all ahead hear nothing of their loops") {
  const std::set<std::string> fine = {"matmul_256_carry",
                                      "matmul_128_regs_bias_gelu",
                                      "matmul_128_smem_trans_a",
                                      "matmul_128_output_symbolic",
                                      "matmul_tf32_trans_b",
                                      "sm80_matmul_smem",
                                      "grouped_grid",
                                      "swiglu_loop",
                                      "swiglu_grid",
                                      "low_rank_adapter",
                                      "attention_128_causal_op",
                                      "attention_128_full_op",
                                      "attention_128_window"};
  std::size_t seen = 0;
  for (const Case& c : user_kernels::cases()) {
    if (!fine.contains(c.name)) continue;
    ++seen;
    INFO(c.name);
    for (const Remark& r : lowered_of_case(c.make(), c.arch).remarks) {
      if (r.text.find(is_narrow) != std::string::npos) continue;  // of what is stored behind
      CHECK(r.at.line == 0);  // how wide the kernel is, and in which order programs go
    }
  }
  CHECK(seen == fine.size());
}

TEST_CASE("nothing is copied for nobody, nor twice for several products") {
  for (const Case& c : user_kernels::cases()) {
    const Program l = lowered_of_case(c.make(), c.arch);
    INFO(c.name);
    CHECK(filled_for_nobody(l) == "");
    for (const Statement* const loop : product_loops(l)) CHECK(fetched_twice(body_of(*loop)) == "");
  }
}

TEST_CASE("all spellings of a product have the same loop") {
  for (const Tile& tile : {Tile{128, 256, 64}, Tile{128, 128, 64}})
    for (const char* const arch : {"sm_90a", "sm_80"}) {
      const auto of = [&](Sum sum) {
        return kinds_of(lowered_of_case(user_kernels::matmul({.tile = tile, .sum = sum}), arch));
      };
      INFO(tile.n << " columns on " << arch);
      const std::map<std::string, int> carry = of(Sum::carry);
      CHECK(carry.at("dot") >= 1);
      CHECK(of(Sum::registers) == carry);
      CHECK(of(Sum::shared) == carry);
      CHECK(of(Sum::output) == carry);
    }
}
