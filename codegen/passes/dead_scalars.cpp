// Leaves out scalars that nobody reads: conditions of guards that are left out, and what a first
// iteration knows that stands apart.
//
// Precondition: build_statements; no pass behind takes readers away.
#include "codegen/lowered/effects.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

using lowered::Effect;
using lowered::Effects;
using lowered::Scalar;
using lowered::Statement;
using lowered::Statements;

class Scalars {
 public:
  explicit Scalars(Program& l) : l_(l) {}

  void run() {
    do {
      read_ = Table<StorageId, bool>(l_.storages.size());
      found_ = false;
      for_each_list(l_, [&](const Statements& list) { look(list); });
      for_each_list(l_, [&](Statements& list) { leave_out(list); });
    } while (found_);  // what only they read
  }

 private:
  void look(const Statements& list) {
    for (const Statement& s : list) {
      for (const Effect& e : lowered::effects(l_, s))
        if (e.storage && e.reads()) read_[e.storage] = true;
      lowered::for_each_body(s, [&](const Statements& body) { look(body); });
    }
  }

  void leave_out(Statements& list) {
    found_ |= std::erase_if(list, [&](const Statement& s) {
                const auto* const scalar = std::get_if<Scalar>(&s.what);
                return scalar != nullptr && !read_[scalar->storage];
              }) > 0;
    for (Statement& s : list) lowered::for_each_body(s, [&](Statements& body) { leave_out(body); });
  }

  Program& l_;
  Table<StorageId, bool> read_;
  bool found_ = false;
};

}  // namespace

void eliminate_dead_scalars(Program& l) { Scalars(l).run(); }

}  // namespace palladium::passes
