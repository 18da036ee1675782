// What statements cost: their instructions, bytes and products, by the speeds of the machine.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "codegen/lowered/program.hpp"
#include "codegen/lowered/protocol_model.hpp"
#include "codegen/thread/report.hpp"
#include "codegen/timeline/fluid.hpp"
#include "codegen/timeline/speeds.hpp"

namespace palladium::timeline {

using lowered::protocol::Act;

/// Of each thing that is done: what those who do it are busy with, and what goes on behind it.
class Costs {
 public:
  Costs(const lowered::Program& l, const thread::Program& p, const Speeds& speeds);
  /// With the work of statements given: for tests.
  Costs(const lowered::Program& l, std::map<int, thread::Work> works, const Speeds& speeds);

  const Speeds& speeds() const { return speeds_; }
  /// Of a warpgroup, or of one thread alone. `first`: the statement has not been counted yet.
  Cost of_threads(const Act& act, int warpgroups, bool is_one_thread, bool first) const;
  /// Of a product, a copy by TMA or by threads, or a send, which goes on by itself.
  Cost of_flight(const Act& act) const;

 private:
  Cost of_work(const thread::Work& w, const Act& act, bool is_one_thread) const;
  double blocks_of(const lowered::Statement& s) const;
  void move(Cost& cost, double bytes, const lowered::Statement& s) const;
  bool is_read_once(const lowered::Statement& s) const;
  double bytes_of(const std::vector<lowered::protocol::Act::Read>& reads) const;
  const thread::Work& work(const lowered::Statement& s) const;

  const lowered::Program& l_;
  const Speeds& speeds_;
  std::map<int, thread::Work> works_;
  std::set<int> ahead_;       // for iterations to come, which is not awaited where it stands
  std::set<int> read_again_;  // in iterations of loops around
};

/// The statements that others stand in.
std::set<int> with_bodies(const lowered::Program& l);

}  // namespace palladium::timeline
