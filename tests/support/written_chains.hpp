// Kernels as users write them in whose loops products are made of what is computed of others.
#pragma once

#include <string>
#include <vector>

#include "tests/support/block_loop.hpp"

namespace palladium::test {

struct WrittenChain {
  std::string name;
  std::vector<std::int64_t> own;  // widths, as in BlockLoop
  std::vector<BlockLoop::Walked> walked;
  std::vector<BlockLoop::Sum> sums;
  std::function<void(BlockStep&)> body;
  bool shares = false;  // a block that products read of which one adds up what is made of another

  /// The same in another place: `loop` says all but these.
  BlockLoop in(BlockLoop loop) const;
};

/// Rows have `d` numbers, blocks of an iteration `columns` rows.
std::vector<WrittenChain> written_chains(DType t, std::int64_t d = 32, std::int64_t columns = 32);

}  // namespace palladium::test
