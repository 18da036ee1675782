// What bodies that run over meshes do with their Refs, and the Refs that they captured.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/trace/recorder.hpp"

namespace palladium::trace {

/// CompileError where a body writes an array that was only passed, or accesses scratch of another
/// mesh; and, with `must_write`, at `at` where no body writes a Ref that it captured. Captured Refs
/// still stand behind all other parameters.
void check_accesses(const Recorder& recorder, const ScratchTypes& scratch, bool must_write,
                    Location at);

/// What is wrong with the mesh that scratch of a kernel over so many is said to be of; else "".
std::string mesh_problem(const Scoped& scratch, const std::string& who, std::size_t meshes);

/// Makes the parameters of captured array number `c` an input and an output of every body: behind
/// the graph's arguments, and behind its outputs.
void insert_captured(Recorder& recorder, std::size_t c, const Extents& extents);

/// Makes the recorder's globals outputs of the graph, behind all others, with their block mappings.
void add_globals(Recorder& recorder);
/// Forgets that waits go round an array of barriers for which others wait in any order.
void settle_turns(graph::Graph& g);
/// Makes memory that scopes share among threads scratch of the kernel.
void add_shared(Recorder& recorder);

}  // namespace palladium::trace
