// Artefacts on disk, for people: what PALLADIUM_DUMP asks for, and the text of a failed compile.
#pragma once

#include <string>

#include "runtime/build/program.hpp"
#include "runtime/call/specialization.hpp"

namespace palladium::runtime {

/// Writes what PALLADIUM_DUMP names of graph, passes, cuda, ptx, as
/// $PALLADIUM_DUMP_DIR/<kernel>.<key>.<what>; of passes also what each of them left, as
/// <kernel>.<key>.attempt-<warps>/<number>-<pass>.txt, where the folder of the attempt that became
/// the kernel ends in .chosen. Trouble is a log line.
void dump(const Specialization& s, const Program& program);

/// The same of a kernel that is not compiled, since a target on the CPU runs it: as an architecture
/// would get it, which a line in the log names. What keeps a kernel from being lowered stands in
/// the files.
void dump(const Specialization& s, const std::string& arch, const char* target);

/// Writes the emitted text, and beside it the same with the device library before it; the path.
std::string dump_text(const graph::Graph& g, const cache::Key& key, const std::string& text);

}  // namespace palladium::runtime
