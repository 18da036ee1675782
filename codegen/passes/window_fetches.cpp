// Has TMA bring windows to shared memory that lie there as they do in their array.
//
// Precondition: pad_staged_rows, choose_copies. What threads copy stays what it is: rows that lie
// apart for the sake of banks, blocks that begin between multiples of 16 bytes.
#include "codegen/base/format.hpp"
#include "codegen/passes/fetches.hpp"
#include "codegen/passes/passes.hpp"

namespace palladium::passes {
namespace {

constexpr std::int64_t box_alignment = 128;  // of boxes in shared memory

class WindowFetches {
 public:
  explicit WindowFetches(Program& l) : l_(l), fetches_(l) {}

  void run() {
    for_each_list(l_, [&](Statements& list) { visit(list); });
  }

 private:
  void visit(Statements& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for_each_body(list[i], [&](Statements& body) { visit(body); });
      const LoopNest* const p = std::get_if<LoopNest>(&list[i].what);
      const Fill* const f = p == nullptr ? nullptr : std::get_if<Fill>(&p->sink);
      if (f == nullptr || !f->by.asynchronous) continue;
      const BoxId box = box_of(f->window, list[i].at);
      if (!box) continue;
      Shared& s = l_.storages[f->storage].shared();
      s.fetched = true;
      s.alignment = box_alignment;
      list[i].what = Copy{.from = {.window = f->window},
                          .to = {.storage = f->storage},
                          .box = box,
                          .completes = l_.add_barriers()};
    }
  }

  BoxId box_of(WindowId window, Location at) {
    const Window& w = l_.windows[window];
    std::string why;
    std::optional<TensorBox> found;
    if (l_.warpgroups > 1)
      why = "several warpgroups run bodies of their own";
    else
      found = fetches_.box_of_window(w, why);
    const BoxId box = found ? number_of(l_, *found, why) : BoxId();
    if (!box)
      l_.remarks.push_back({at, fmt::format("{}: copied by threads, not by TMA, because {}",
                                            description_of(l_.graph, w.root), why)});
    return box;
  }

  Program& l_;
  Fetches fetches_;
};

}  // namespace

void fetch_windows(Program& l) {
  if (l.machine.has_tma()) WindowFetches(l).run();
}

}  // namespace palladium::passes
