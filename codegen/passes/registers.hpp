// What a thread has of registers, and what products take of them: the model stands in
// registers.cpp.
#pragma once

#include <cstdint>

#include "codegen/passes/passes.hpp"

namespace palladium::passes {

/// Registers that each thread of a block of so many can have.
std::int64_t registers_of_thread(std::int64_t threads);
/// Those that each thread of the program can have, without a warpgroup that fetches beside it.
std::int64_t registers_of_thread(const Program& l);

/// Whether a thread can have so many registers of accumulators of wgmma, and what stands beside
/// them, were a Pallas thread of the program so many threads.
bool holds_wgmma(const Program& l, std::int64_t accumulators, int threads);
/// Whether a thread can have the accumulators of a product of wgmma, an A in registers and, beside
/// them, the next A while it is computed.
bool holds_next(const Program& l, ValueId dot);
/// Whether so many registers of values leave as much where a producer takes its share.
bool holds_beside_producer(const Program& l, std::int64_t values);
/// The same of the program as it stands, with a producer or without.
bool holds_beside_products(const Program& l, std::int64_t values);
/// What all values take at once, of each thread, as the program stands.
std::int64_t most_held(const Program& l);

/// By how many parts of its columns a product of wgmma_promoted is made, so that what tensor cores
/// add up has room beside the sum: a power of two.
std::int64_t parts_of_promoted(const Program& l, const Dot& d);

}  // namespace palladium::passes
