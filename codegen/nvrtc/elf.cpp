#include "codegen/nvrtc/elf.hpp"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "codegen/base/files.hpp"

namespace palladium::nvrtc {
namespace {

// A library has a dozen segments and under a kilobyte of notes; more is not worth believing.
constexpr std::size_t most_segments = 256;
constexpr std::size_t most_note_bytes = 1 << 16;

std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

std::string hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15u];
  }
  return text;
}

/// The build-id among the notes of one segment.
std::string build_id_in(std::span<const std::byte> notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes = notes.subspan(sizeof note);
    const std::size_t name = padded(note.n_namesz);
    const std::size_t content = padded(note.n_descsz);
    if (name > notes.size() || note.n_descsz > notes.size() - name) return "";
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data(), "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) return hex(notes.subspan(name, note.n_descsz));
    if (content > notes.size() - name) return "";
    notes = notes.subspan(name + content);
  }
  return "";
}

}  // namespace

std::string build_id(const std::string& path) {
  std::vector<std::byte> bytes;
  Elf64_Ehdr header;
  if (!files::read_at(path, 0, sizeof header, bytes)) return "";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > most_segments)
    return "";
  if (!files::read_at(path, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), bytes)) return "";
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  std::memcpy(segments.data(), bytes.data(), bytes.size());
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > most_note_bytes) continue;
    if (!files::read_at(path, segment.p_offset, segment.p_filesz, bytes)) return "";
    if (std::string id = build_id_in(bytes); !id.empty()) return id;
  }
  return "";
}

}  // namespace palladium::nvrtc
