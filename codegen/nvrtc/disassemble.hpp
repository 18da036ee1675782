// Cubin to machine code as text, by a program of NVIDIA's that this process starts.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace palladium::nvrtc {

/// What PALLADIUM_NVDISASM names, whether it is there or not; else that of $CUDA_HOME, of
/// /usr/local/cuda, of PATH, or of .deps beside this library or in up to two folders above it (what
/// scripts/setup, or `pip install --target`, makes of the nvidia-cuda-nvdisasm wheel). "" if there is
/// none.
std::string find_nvdisasm();

/// How to get one.
std::string missing_nvdisasm_message();

/// What `program` prints of the cubin. CudaError where it cannot be started, fails, or is not done
/// after so many seconds; then it is ended, with all that it has started.
std::string disassemble(const std::string& program, std::span<const std::byte> cubin,
                        double seconds = 60);

}  // namespace palladium::nvrtc
