// Where NVRTC runs: in helper processes, else in this one.
#pragma once

#include <string>

#include "codegen/nvrtc/pool.hpp"

namespace palladium::runtime {

/// As PALLADIUM_COMPILE says; where no helper can be started, in this process with one warning in
/// the life of it. The outcome is never `unavailable`; in this process it is always a result.
nvrtc::Pool::Outcome run_nvrtc(const nvrtc::Request& request, const nvrtc::Toolchain& toolchain,
                               const nvrtc::Pool::Stopped& stopped = {});

/// How many compiles may run at once: what set_compile_jobs() said, else PALLADIUM_COMPILE_JOBS,
/// else the number of cores.
int compile_jobs();
/// As palladium::set_compile_jobs().
void choose_compile_jobs(int jobs);

/// Which helper there is and what keeps it from working, or "": asks it.
struct HelperCheck {
  std::string path;
  std::string problem;
};
HelperCheck check_helper();

}  // namespace palladium::runtime
