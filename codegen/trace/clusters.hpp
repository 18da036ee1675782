// What blocks of a cluster say of each other.
#pragma once

#include <string>
#include <vector>

#include "codegen/trace/recorder.hpp"
#include "palladium/block_spec.hpp"

namespace palladium::trace {

/// Cluster axes, by number: along each group of them blocks stand as along one.
using ClusterGroups = std::vector<std::vector<std::size_t>>;
/// Of a ClusterBarrier. CompileError for what is no axis of the cluster, or stands there twice.
ClusterGroups cluster_groups(const Recorder& recorder, const Scoped& barrier, Location at);
/// How many complete a barrier: those of one block for each that arrives there.
int arrivals_of(const Recorder& recorder, const Scoped& barrier, Location at);
/// The ranks of the other blocks at whose barrier a block arrives.
std::vector<ValueId> ranks_told(Recorder& recorder, const ClusterGroups& groups, Location at);

/// barrier_wait for the barriers of an array one after the other, round and round: where all waits
/// of a thread for this array are such, one number says the phase of all.
void wait_in_turn(const Ref& barrier, const char* what, Location at);

/// A bit for each of these cluster axes.
std::int64_t cluster_axes(const Recorder& recorder, const std::vector<std::string>& names,
                          const char* what, Location at);
/// CompileError where other blocks cannot know the memory: one thread's own, in a run_scoped.
void expect_of_block(const Recorder& recorder, ValueId view, const char* what, Location at);

}  // namespace palladium::trace
