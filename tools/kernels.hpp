// The kernels that `show` and `warm` are asked for: shipped ones for their default types, and those
// of manifests.
#pragma once

#include <string>
#include <vector>

#include "palladium/record.hpp"

namespace palladium::tools {

struct NamedKernel {
  std::string name;  // "softmax", or "kernels.json#3"
  Lowered kernel;
  std::vector<std::string> archs = {};      // that it was recorded for
  std::vector<std::string> arguments = {};  // as recorded, for people
  std::string location = {};
  bool reached = true;  // by a call, as recorded
};

struct Kernels {
  std::vector<NamedKernel> kernels;
  /// Lines of a manifest that cannot be used: "kernels.json:7" and why.
  struct Damage {
    std::string at;
    std::string what;
  };
  std::vector<Damage> damages;
};

/// Whether a name is that of a manifest, or of one of its kernels: no shipped kernel's name has a
/// dot or a slash.
bool names_manifest(const std::string& name);

/// The shipped kernel of that name, all kernels of a manifest, or with "kernels.json#3" its third.
/// CompileError if there is no such thing.
Kernels kernels_of(const std::string& name);
/// The same, and of a shipped kernel also the one for arrays of fewer than 2^31 elements, and that
/// of them for sizes that are multiples of 16 bytes, where these are others: the first serves all
/// that they cannot. `any_size`: also those that calls run whose sizes are other numbers, up to
/// the power of two above these, of any and of multiples of 16 bytes.
Kernels kernels_to_warm(const std::string& name, bool any_size);

}  // namespace palladium::tools
