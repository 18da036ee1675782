// How a test gets at the fake driver, and cubins that only it would take.
#pragma once

#include <elf.h>
#include <stdlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/support/paths.hpp"

namespace palladium::test {

inline std::string fake_libcuda() { return binary_dir() + "/tests/fake/libcuda.so.1"; }

/// Makes the fake this process's driver and forgets what earlier tests told it. The first call must
/// come before anything asks for the driver; `devices` counts in that one only.
inline fake_cuda::State& fake_driver(int devices = 2) {
  static fake_cuda::State& state = [devices]() -> fake_cuda::State& {
    ::setenv("PALLADIUM_LIBCUDA", fake_libcuda().c_str(), 1);
    fake_cuda::State& fresh = fake_cuda::state(fake_libcuda());
    fresh.devices.resize(static_cast<std::size_t>(devices));
    return fresh;
  }();
  state.reset();
  return state;
}

/// A cubin's outside: an ELF file with a section for the kernel's code and one for its arguments.
inline std::vector<std::byte> fake_cubin(const std::string& kernel,
                                         const std::vector<std::size_t>& argument_sizes = {}) {
  std::string info;
  const auto append = [&info](auto value) {
    info.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::size_t offset = 0;
  for (std::size_t i = 0; i < argument_sizes.size(); ++i) {
    append(std::uint8_t{4});     // sized
    append(std::uint8_t{0x17});  // KPARAM_INFO
    append(std::uint16_t{12});
    append(std::uint32_t{0});
    append(static_cast<std::uint16_t>(i));
    append(static_cast<std::uint16_t>(offset));
    append(static_cast<std::uint32_t>(argument_sizes[i] << 18));
    offset += argument_sizes[i];
  }
  const std::string contents[] = {"", "code", info,
                                  std::string(1, '\0') + ".text." + kernel + '\0' + ".nv.info." +
                                      kernel + '\0' + ".shstrtab" + '\0'};
  const std::size_t names[] = {0, 1, 1 + 6 + kernel.size() + 1,
                               1 + 6 + kernel.size() + 1 + 9 + kernel.size() + 1};
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  std::string bytes(sizeof header, '\0');
  Elf64_Shdr sections[4] = {};
  for (std::size_t i = 1; i < 4; ++i) {
    sections[i].sh_name = static_cast<Elf64_Word>(names[i]);
    sections[i].sh_type = i == 3 ? SHT_STRTAB : SHT_PROGBITS;
    sections[i].sh_offset = bytes.size();
    sections[i].sh_size = contents[i].size();
    bytes += contents[i];
  }
  header.e_shoff = bytes.size();
  bytes.append(reinterpret_cast<const char*>(sections), sizeof sections);
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

}  // namespace palladium::test
