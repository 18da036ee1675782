// Where the text of a kernel is kept while only its cubin travels: the NVRTC that keeps texts
// (tests/fake_nvrtc/keeping.cpp) writes there, the fake driver reads.
#pragma once

#include <elf.h>
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace fake_cuda {

/// Bytes of an ELF image, as its header tells; 0 for anything else.
inline std::size_t image_size(const void* data) {
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  return std::max<std::size_t>(header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr),
                               header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr));
}

/// The file for the text of this cubin, in the folder that FAKE_CUDA_TEXTS names; "" without.
inline std::string text_file(const void* image) {
  const char* folder = ::getenv("FAKE_CUDA_TEXTS");
  if (folder == nullptr) return {};
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = static_cast<const unsigned char*>(image);
  for (std::size_t i = 0, n = image_size(image); i < n; ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.cu", static_cast<unsigned long long>(hash));
  return folder + std::string(name);
}

}  // namespace fake_cuda
