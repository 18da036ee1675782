#include "codegen/lowered/verify.hpp"

#include <algorithm>
#include <concepts>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "codegen/base/format.hpp"
#include "codegen/lowered/effects.hpp"
#include "codegen/lowered/fields.hpp"
#include "codegen/lowered/format.hpp"
#include "codegen/lowered/lives.hpp"
#include "codegen/lowered/order.hpp"
#include "codegen/lowered/signals.hpp"

namespace palladium::lowered {

std::string where(const Statement& s) {
  const std::string word = std::holds_alternative<LoopNest>(s.what)
                               ? sink_words[std::get<LoopNest>(s.what).sink.index()]
                               : statement_words[s.what.index()];
  return s.at.line > 0 ? fmt::format("{} of line {}", word, s.at.line) : word;
}

namespace {

// ---- ids

class Ids {
 public:
  explicit Ids(const Program& l) : l_(l) {}

  std::string run() {
    for (const Storage& s : l_.storages)
      if (s.in_shared()) within(s.shared().within.storage);
    for_each_list(l_, [&](const Statements& list) { visit(list); });
    return found_;
  }

 private:
  void within(StorageId s) {
    if (s && std::cmp_greater_equal(s.number(), count(s)) && found_.empty())
      found_ = fmt::format("ids: a storage lies within s{}, which there is not", s);
  }

  void visit(const Statements& list) {
    for (const Statement& s : list) {
      at_ = &s;
      std::visit([&](const auto& what) { members(what); }, s.what);
      for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  template <class T>
  void members(const T& x) {
    fields(x, [&](const char*, const auto& value) { check(value); });
  }

  std::size_t count(StorageId) const { return l_.storages.size(); }
  std::size_t count(WindowId) const { return l_.windows.size(); }
  std::size_t count(RingId) const { return l_.rings.size(); }
  std::size_t count(BarrierId) const { return l_.barriers.size(); }
  std::size_t count(BoxId) const { return l_.tensor_boxes.size(); }
  std::size_t count(LayoutVariableId) const { return l_.pinned.size(); }

  template <class Kind>
  void check(Id<Kind> id) {
    if (id && std::cmp_greater_equal(id.number(), count(id)) && found_.empty())
      found_ = fmt::format("ids: {} names {}{}, which there is not", where(*at_), letter_of<Kind>,
                           id.number());
  }
  template <class Kind>
  void check(const std::vector<Id<Kind>>& ids) {
    for (const Id<Kind> id : ids) check(id);
  }
  void check(const Sink& sink) {
    std::visit([&](const auto& to) { members(to); }, sink);
  }
  void check(const Place& p) {
    check(p.storage);
    check(p.window);
  }
  void check(const Redirects& redirects) {
    for (const auto& [from, redirect] : redirects) {
      check(from);
      check(redirect.storage);
    }
  }
  void check(const auto&) {}

  const Program& l_;
  const Statement* at_ = nullptr;
  std::string found_;
};

// ---- chosen

/// Which of several barriers, slots and blocks a statement means.
class Chosen {
 public:
  explicit Chosen(const Program& l) : l_(l) {}

  std::string run() {
    for_each_list(l_, [&](const Statements& list) { visit(list); });
    return found_;
  }

 private:
  void visit(const Statements& list) {
    for (const Statement& s : list) {
      at_ = &s;
      std::visit([&](const auto& what) { look(what); }, s.what);
      for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  void look(const Wait& w) {
    one_of(w.barrier, w.slot);
    const Barriers& all = l_.barriers[w.barrier];
    if (std::holds_alternative<OfIteration>(w.phase))
      return require(bool(all.ring), "waits for an iteration at a barrier of no ring");
    const bool in_turn = std::holds_alternative<InTurn>(w.phase);
    require(in_turn || count(all) <= most_tracked,
            "waits for one of more barriers than a thread has bits");
    require(goes_round_.try_emplace(w.barrier, in_turn).first->second == in_turn,
            "waits in turn at barriers for which others wait in any order");
  }
  void look(const Arrive& a) {
    one_of(a.barrier, a.slot);
    require(a.block == graph::no_value || a.bytes == 0, "expects bytes in another block");
    require(a.back == 0 || (l_.barriers[a.barrier].ring && a.slot == graph::no_value),
            "arrives for an iteration before at a barrier of no ring");
  }
  void look(const Dot& d) {
    const RingId ring = d.b ? l_.storages[d.b].ring() : RingId();
    require(d.back == 0 || (ring && l_.rings[ring].slots > d.back),
            "multiplies by what is in no slot of an iteration before");
  }
  void look(const Copy& c) {
    require(l_.machine.has_tma(), "is a copy by TMA, which the machine does not have");
    if (c.completes) one_of(c.completes, c.slot);
    require(c.completes || c.slot == graph::no_value, "chooses of barriers and completes none");
    for (const Place& p : {c.from, c.to})
      require(p.slot == graph::no_value || (p.storage && l_.storages[p.storage].ring()),
              "chooses a slot of no ring");
    const bool moves = c.from.storage && c.to.storage;
    require(moves == (c.to.block != graph::no_value) && c.from.block == graph::no_value,
            "copies between storages of one block, or what is none of another");
    require(!moves || c.completes, "fills another block, which nobody tells");
    require(c.multicast == graph::no_value || (c.completes && !moves),
            "fills several blocks, and brings nothing to shared memory");
  }
  void look(const auto&) {}

  std::int64_t count(const Barriers& all) const { return l_.storages[all.storage].shape[0]; }
  void one_of(BarrierId barrier, ValueId slot) {
    const Barriers& all = l_.barriers[barrier];
    require(all.ring || count(all) == 1 || slot != graph::no_value,
            "does not say which of several barriers it means");
  }
  void require(bool holds, const char* what) {
    if (!holds && found_.empty()) found_ = fmt::format("chosen: {} {}", where(*at_), what);
  }

  const Program& l_;
  const Statement* at_ = nullptr;
  std::map<BarrierId, bool> goes_round_;  // of those that are awaited
  std::string found_;
};

// ---- filled

class Filled {
 public:
  explicit Filled(const Program& l) : l_(l), others_(l.storages.size()) {
    for (const Window& w : l_.windows)
      if (w.storage()) others_[w.storage()] = true;
    for (const Barriers& b : l_.barriers) others_[b.storage] = true;
  }

  std::string run() {
    for_each_list(l_, [&](const Statements& list) {
      Known known(l_.storages.size());
      for_each_list(l_, [&](const Statements& other) {
        if (&other != &list) shared_by(other, known);
      });
      visit(list, known);
    });
    return found_;
  }

 private:
  using Known = Table<StorageId, bool>;

  // What another agent fills, barriers know.
  void shared_by(const Statements& list, Known& known) const {
    for (const Statement& s : list) {
      for (const Effect& e : effects(l_, s))
        if (e.writes() && e.storage && l_.storages[e.storage].in_shared()) known[e.storage] = true;
      for_each_body(s, [&](const Statements& body) { shared_by(body, known); });
    }
  }

  void visit(const Statements& list, Known& known) {
    for (const Statement& s : list) {
      if (const While* const loop = std::get_if<While>(&s.what)) visit(loop->test, known);
      const Effects all = effects(l_, s);
      if (!std::holds_alternative<WaitGroup>(s.what))
        for (const Effect& e : all) require(e, known, s);
      for (const Effect& e : all)
        if (e.writes() && e.storage) known[e.storage] = true;
      inside(s, known);
    }
  }

  void require(const Effect& e, const Known& known, const Statement& s) {
    if (!e.reads() || !e.storage || e.role == Effect::Role::scratch || !found_.empty()) return;
    const Storage& storage = l_.storages[e.storage];
    if (others_[e.storage] || storage.ring() || known[e.storage]) return;
    found_ = fmt::format("filled: {} reads s{}, which nobody has filled on some way there",
                         where(s), e.storage);
  }

  // What is filled inside is so behind it where it is sure to have run.
  void inside(const Statement& s, Known& known) {
    if (const auto* const two = std::get_if<IfWhole>(&s.what)) return branches(two->bodies, known);
    if (const Switch* const several = std::get_if<Switch>(&s.what))
      return branches(several->bodies, known);
    const bool runs = std::holds_alternative<Scope>(s.what) ||
                      std::holds_alternative<Warps>(s.what) ||
                      std::holds_alternative<Elected>(s.what);
    if (const While* const loop = std::get_if<While>(&s.what)) {
      Known within = known;
      return visit(loop->body, within);
    }
    Known within = known;
    if (const Lead* const lead = std::get_if<Lead>(&s.what); lead && lead->loop != graph::no_value)
      within[l_.storage_of[l_.graph[graph::LoopView::of(l_.graph[lead->loop]).body].params[0]]] =
          true;
    for_each_body(s, [&](const Statements& body) { visit(body, within); });
    if (runs) known = std::move(within);
    // Behind the loop, of which there may be no iteration, nobody reads them.
    if (const Lead* const lead = std::get_if<Lead>(&s.what))
      for (const StorageId kept : lead->kept) known[kept] = true;
  }

  void branches(const std::vector<Statements>& bodies, Known& known) {
    std::vector<Known> behind;
    for (const Statements& body : bodies) visit(body, behind.emplace_back(known));
    for (const StorageId s : l_.storages.ids())
      known[s] = known[s] || (!behind.empty() && std::ranges::all_of(behind, [&](const Known& k) {
                   return bool(k[s]);
                 }));
  }

  const Program& l_;
  Known others_;  // whose contents other rules know
  std::string found_;
};

// ---- does, used, awaited, fenced

/// What statements do for one another, wherever they stand.
class Purposes {
 public:
  Purposes(const Program& l, Behind passes)
      : l_(l), behind_(passes), read_(l.storages.size()), barriers_(l.storages.size()) {}

  std::string run() {
    for_each_list(l_, [&](const Statements& list) { visit(list); });
    for (const auto& [storage, by] : filled_)
      if (!read_[storage])
        refuse("used", *by, fmt::format("fills s{}, which nobody reads", storage));
    for (const Barriers& b : l_.barriers)
      if (b.by_hand) barriers_[b.storage] = {};
    if (behind_.waits)
      for (const StorageId s : l_.storages.ids()) judge(s, barriers_[s]);
    if (fence_ != nullptr && !reads_stored_ && !fills_stored() && !graph::has_async_ops(l_.graph))
      refuse(
          "fenced", *fence_,
          "orders nothing: no copy and no product reads what threads store, nor fills its place");
    return found_;
  }

 private:
  /// The first statements that do such with an mbarrier.
  struct Counted {
    const Statement *awaits = nullptr, *expects = nullptr, *arrives = nullptr, *completes = nullptr;
  };
  using Of = device::Effects::Role;

  void visit(const Statements& list) {
    for (const Statement& s : list) {
      const Effects all = effects(l_, s);
      if (!decides(s) && !lasts(s) && !does(all)) refuse("does", s, "does nothing");
      if (std::holds_alternative<IfWhole>(s.what) && all.all.empty())
        refuse("does", s, "asks of no block");
      if (all.fences) fence_ = &s;
      for (const Effect& e : all) note(e, s);
      for_each_body(s, [&](const Statements& body) { visit(body); });
    }
  }

  // Whether it is there for what stands inside of it.
  static bool decides(const Statement& s) {
    return std::visit(
        []<class T>(const T&) {
          return std::same_as<T, When> || std::same_as<T, IfWhole> || std::same_as<T, IfMasked> ||
                 std::same_as<T, While> || std::same_as<T, Loop> || std::same_as<T, Scope> ||
                 std::same_as<T, Warps> || std::same_as<T, Elected> || std::same_as<T, Switch> ||
                 std::same_as<T, GridLoop>;
        },
        s.what);
  }
  // Whether it is there for the time that it takes, or gives others.
  bool lasts(const Statement& s) const {
    if (std::holds_alternative<SetRegisters>(s.what) || std::holds_alternative<Inline>(s.what))
      return true;
    if (const auto* const copy = std::get_if<Copy>(&s.what); copy != nullptr && brings_near(*copy))
      return true;
    const auto* const waits = std::get_if<Semaphore>(&s.what);
    return waits != nullptr && l_.graph[waits->inst].op == graph::Op::Delay;
  }
  static bool does(const Effects& all) {
    return all.syncs || all.meets_warpgroups || all.fences || all.tells ||
           std::ranges::any_of(all, [](const Effect& e) {
             return e.writes() || e.completion == Of::closes || e.completion == Of::awaits;
           });
  }

  void note(const Effect& e, const Statement& s) {
    if (e.role == Effect::Role::scratch) {
      if (l_.storages[e.storage].in_shared()) stored_.insert(e.storage);
      return;
    }
    if (e.role == Effect::Role::barrier) return note_barrier(e, s);
    if (e.on == device::Completion::mbarrier && e.completion == Of::completes) {
      if (!e.barrier) return refuse("awaited", s, "completes no barrier");
      barriers_[e.barrier].completes = &s;
    }
    if (e.storage && e.reads()) read_[e.storage] = true;
    if (e.storage && e.replaces) read_[e.replaces] = true;
    if (e.storage && e.proxy == device::Proxy::async && e.reads()) reads_stored_ = true;
    if (e.storage && e.writes() && l_.storages[e.storage].in_shared())
      (e.proxy == device::Proxy::async ? brought_ : stored_).insert(e.storage);
    if (e.storage && e.access == Effect::Access::write && must_be_read(e.storage, s))
      filled_.emplace_back(e.storage, &s);
  }

  // Whether copies fill memory in which threads store something else.
  bool fills_stored() const {
    const auto place = [&](StorageId s) {
      while (l_.storages[s].shared().within.storage) s = l_.storages[s].shared().within.storage;
      const RingId ring = l_.storages[s].ring();
      const Storage& placed = ring ? l_.storages[l_.rings[ring].storage] : l_.storages[s];
      return std::pair(placed.shared().offset,
                       placed.shared().offset + shared_bytes(placed).value());
    };
    return behind_.offsets && std::ranges::any_of(stored_, [&](StorageId a) {
             return std::ranges::any_of(brought_, [&](StorageId b) {
               return place(a).first < place(b).second && place(b).first < place(a).second;
             });
           });
  }

  // What a kernel computes and does not use may be filled, too; of scalars passes leave it out.
  bool must_be_read(StorageId storage, const Statement& s) const {
    if (std::holds_alternative<Scalar>(s.what)) return behind_.offsets;
    if (l_.storages[storage].in_shared() && l_.storages[storage].shared().sent) return true;
    return std::ranges::any_of(l_.windows, [&](const Window& w) {
      return w.storage() == storage && w.mapping >= l_.graph.mapping.num_inputs;
    });
  }

  void note_barrier(const Effect& e, const Statement& s) {
    Counted& uses = barriers_[e.storage];
    if (e.completion == Of::awaits)
      uses.awaits = &s;
    else if (!e.elected)
      refuse("awaited", s, "arrives with every thread");
    else
      (e.completion == Of::completes ? uses.arrives : uses.expects) = &s;
  }

  void judge(StorageId storage, const Counted& u) {
    const auto missing = [&](const Statement* is, const Statement* other, const char* words) {
      if (is != nullptr && other == nullptr)
        refuse("awaited", *is, fmt::format("{} s{}", words, storage));
    };
    missing(u.completes, u.expects, "completes bytes that nobody expects on");
    missing(u.expects, u.completes, "expects bytes that nobody copies on");
    missing(u.expects, u.awaits, "expects bytes for which nobody waits on");
    missing(u.arrives, u.awaits, "arrives where nobody waits on");
    if (u.arrives == nullptr) missing(u.awaits, u.completes, "waits for what nobody does on");
  }

  void refuse(const char* rule, const Statement& s, const std::string& what) {
    if (found_.empty()) found_ = fmt::format("{}: {} {}", rule, where(s), what);
  }

  const Program& l_;
  Behind behind_;
  Table<StorageId, bool> read_;
  Table<StorageId, Counted> barriers_;
  std::vector<std::pair<StorageId, const Statement*>> filled_;
  const Statement* fence_ = nullptr;
  std::set<StorageId> stored_, brought_;  // in shared memory, by threads and by copies
  bool reads_stored_ = false;
  std::string found_;
};

// ---- over, ordered

std::string words_of(const std::string& who, const Need& need) {
  if (need.groups.empty())
    return fmt::format("ordered: {} touches {}", who,
                       need.fence ? "asynchronously what threads store, without a fence"
                                  : "what other threads do, without a barrier");
  const device::Completion kind = need.groups.begin()->first;
  return fmt::format("over: {} begins before {} is over", who,
                     kind == device::Completion::wgmma_group  ? "a product"
                     : kind == device::Completion::bulk_group ? "a copy to global memory"
                                                              : "a copy by threads");
}

// The first of what is missing.
std::string first_of(const Needed& needed, const Statements& list) {
  for (const Statement& s : list) {
    if (const auto found = needed.before.find(&s); found != needed.before.end())
      return words_of(where(s), found->second);
    std::string inside;
    for_each_body(s, [&](const Statements& body) {
      if (inside.empty()) inside = first_of(needed, body);
    });
    if (!inside.empty()) return inside;
  }
  const auto behind = needed.behind.find(&list);
  return behind == needed.behind.end() ? "" : words_of("the end of a body", behind->second);
}

std::string missing(const Program& l, Order::Ask asked) {
  std::string found;
  for_each_list(l, [&](const Statements& list) {
    if (found.empty()) found = first_of(Order(l, asked, true).missing(list), list);
  });
  return found;
}

// ---- bytes

// Members of a union stand under other rules than that of whose bytes are whose.
std::string union_defect(const Program& l) {
  for (const StorageId s : l.storages.ids()) {
    if (!l.storages[s].in_shared() || !l.storages[s].shared().within.storage) continue;
    const Within& within = l.storages[s].shared().within;
    const Storage& room = l.storages[within.storage];
    const char* why = nullptr;
    if (!room.in_shared() || l.room_of(within.storage) != within.storage || l.storages[s].ring())
      why = "which has no bytes of its own";
    else if (within.offset < 0 ||
             within.offset + shared_bytes(l.storages[s]).value() > shared_bytes(room).value())
      why = "which has not so many bytes";
    else if (within.offset % shared_alignment(l.storages[s]) != 0 ||
             shared_alignment(room) % shared_alignment(l.storages[s]) != 0)
      why = "where it is not aligned";
    if (why != nullptr)
      return fmt::format("bytes: s{} lies within s{}, {}", s, within.storage, why);
  }
  return "";
}

std::string shared_bytes_defect(const Program& l) {
  struct Span {
    StorageId storage;
    std::int64_t begin = 0, end = 0;
  };
  const Lives lives(l);
  std::vector<Span> spans;
  for (const StorageId s : l.storages.ids()) {
    const Storage& x = l.storages[s];
    if (!x.in_shared() || l.room_of(s) != s || !lives.has(s)) continue;
    if (x.shared().offset % shared_alignment(x) != 0)
      return fmt::format("bytes: s{} lies at {}, where it is not aligned", s, x.shared().offset);
    const std::int64_t copies = (x.shared().per_warpgroup ? l.warpgroups : 1) *
                                (x.shared().per_warp ? graph::num_warps : 1);
    const std::int64_t bytes = shared_bytes(x).value() * copies;
    if (bytes > 0) spans.push_back({s, x.shared().offset, x.shared().offset + bytes});
  }
  std::ranges::sort(spans, {}, &Span::begin);
  for (std::size_t i = 0; i < spans.size(); ++i)
    for (std::size_t k = i + 1; k < spans.size() && spans[k].begin < spans[i].end; ++k)
      if (lives.meet(spans[i].storage, spans[k].storage))
        return fmt::format("bytes: s{} and s{} hold something at once, and share bytes",
                           spans[i].storage, spans[k].storage);
  return "";
}

}  // namespace

std::string defect(const Program& l, Behind passes) {
  if (std::string what = Ids(l).run(); !what.empty()) return what;
  if (std::string what = Chosen(l).run(); !what.empty()) return what;
  if (std::string what = union_defect(l); !what.empty()) return what;
  if (std::string what = Filled(l).run(); !what.empty()) return what;
  if (std::string what = Purposes(l, passes).run(); !what.empty()) return what;
  if (const SignalDefect d = passes.waits ? signal_defect(l) : SignalDefect(); !d.what.empty())
    return fmt::format("signalled: {} {}", where(*d.at), d.what);
  if (std::string what = passes.waits ? missing(l, Order::Ask::groups) : ""; !what.empty())
    return what;
  if (std::string what = passes.offsets ? shared_bytes_defect(l) : ""; !what.empty()) return what;
  return passes.order ? missing(l, Order::Ask::threads) : "";
}

}  // namespace palladium::lowered
