#include "cache/entry.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "palladium/error.hpp"

namespace palladium::cache {
namespace {

static_assert(std::endian::native == std::endian::little);

// The first byte is no text, the last shows a transfer that translated line ends.
constexpr char magic[8] = {'\x89', 'P', 'L', 'K', 'R', 'N', '\r', '\n'};

// Texts are read by people, seldom: the fastest level, a third of the time of the default.
constexpr int zstd_level = 1;

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t header_bytes;
  std::uint8_t key[32];
  char toolchain[16];
  std::uint64_t metadata_bytes;
  std::uint64_t cubin_bytes;
  std::uint64_t ptx_bytes;
  std::uint64_t ptx_text_bytes;
  std::uint64_t source_bytes;
  std::uint64_t source_text_bytes;
};
static_assert(sizeof(Header) == 112);

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

std::string compressed(std::string_view text) {
  if (text.empty()) return "";
  // To make one takes longer than to compress the text of a kernel.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compressCCtx(context.get(), bytes.data(), bytes.size(), text.data(),
                                             text.size(), zstd_level);
  if (ZSTD_isError(size))
    throw InternalError(std::string("cache entry: zstd: ") + ZSTD_getErrorName(size));
  bytes.resize(size);
  return bytes;
}

bool decompress(std::span<const std::byte> bytes, std::uint64_t text_bytes, std::string& text) {
  if (bytes.empty() && text_bytes == 0) return true;
  if (text_bytes > most_entry_bytes) return false;
  // Asked first, so that nothing is allocated for a size that the frame does not confirm.
  if (ZSTD_getFrameContentSize(bytes.data(), bytes.size()) != text_bytes) return false;
  text.resize(text_bytes);
  return ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size()) == text_bytes;
}

/// "4 arch6 sm_90a4 name...": each behind its length.
std::string joined(const std::map<std::string, std::string>& texts) {
  std::string all;
  for (const auto& [name, text] : texts)
    for (const std::string* each : {&name, &text}) {
      all += std::to_string(each->size());
      all += ' ';
      all += *each;
    }
  return all;
}

bool take(std::string_view& all, std::string& text) {
  std::size_t size = 0;
  const auto [rest, bad] = std::from_chars(all.data(), all.data() + all.size(), size);
  all.remove_prefix(static_cast<std::size_t>(rest - all.data()));
  if (bad != std::errc() || !all.starts_with(' ') || size > all.size() - 1) return false;
  text = all.substr(1, size);
  all.remove_prefix(size + 1);
  return true;
}

/// False for what joined() has not made.
bool split(std::string_view all, std::map<std::string, std::string>& texts) {
  std::string name;
  while (!all.empty())
    if (!take(all, name) || !take(all, texts[name])) return false;
  return true;
}

std::string metadata_to_json(const Metadata& metadata) {
  const Resources& used = metadata.resources;
  const nlohmann::json json = {
      {"kernel", metadata.kernel},
      {"function", metadata.function},
      {"arch", metadata.arch},
      {"nvrtc", {metadata.nvrtc_major, metadata.nvrtc_minor}},
      {"resources",
       {{"registers", used.registers},
        {"shared_bytes", used.shared_bytes},
        {"stack_bytes", used.stack_bytes},
        {"spill_store_bytes", used.spill_store_bytes},
        {"spill_load_bytes", used.spill_load_bytes},
        {"barriers", used.barriers},
        {"warnings", used.warnings}}},
      {"built_at", metadata.built_at},
      {"compile_ms", metadata.compile_ms},
      {"location", metadata.location},
      {"launch", metadata.launch},
      // One text, which whoever wants the kernel alone need not take apart.
      {"components", joined(metadata.components)},
  };
  // A path need not be UTF-8; for people to read, a replacement character will do.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool metadata_from_json(std::span<const std::byte> bytes, Parts parts, Metadata& metadata) {
  const char* text = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json json = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (json.is_discarded()) return false;
  try {
    json.at("kernel").get_to(metadata.kernel);
    json.at("function").get_to(metadata.function);
    json.at("arch").get_to(metadata.arch);
    json.at("nvrtc").at(0).get_to(metadata.nvrtc_major);
    json.at("nvrtc").at(1).get_to(metadata.nvrtc_minor);
    const nlohmann::json& used = json.at("resources");
    used.at("registers").get_to(metadata.resources.registers);
    used.at("shared_bytes").get_to(metadata.resources.shared_bytes);
    used.at("stack_bytes").get_to(metadata.resources.stack_bytes);
    used.at("spill_store_bytes").get_to(metadata.resources.spill_store_bytes);
    used.at("spill_load_bytes").get_to(metadata.resources.spill_load_bytes);
    used.at("barriers").get_to(metadata.resources.barriers);
    used.at("warnings").get_to(metadata.resources.warnings);
    json.at("built_at").get_to(metadata.built_at);
    json.at("compile_ms").get_to(metadata.compile_ms);
    json.at("location").get_to(metadata.location);
    json.at("launch").get_to(metadata.launch);
    // People do without where a replacement character stands: lengths are wrong there.
    if (const auto found = json.find("components");
        parts == Parts::all && found != json.end() && found->is_string() &&
        !split(found->get_ref<const std::string&>(), metadata.components))
      metadata.components.clear();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

/// Cuts sections off a file in order; a section that does not fit ends it.
class Sections {
 public:
  explicit Sections(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) {
      overrun_ = true;
      size = rest_.size();
    }
    const std::span<const std::byte> section = rest_.first(size);
    rest_ = rest_.subspan(size);
    return section;
  }
  bool are_exact() const { return !overrun_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool overrun_ = false;
};

}  // namespace

std::vector<std::byte> encode(const Entry& entry) {
  if (entry.toolchain.size() != sizeof Header::toolchain)
    throw InternalError("cache entry: toolchain id '" + entry.toolchain + "' is not 16 digits");
  const std::string metadata = metadata_to_json(entry.metadata);
  const std::string ptx = compressed(entry.ptx);
  const std::string source = compressed(entry.source);

  Header header = {};
  std::memcpy(header.magic, magic, sizeof magic);
  header.format = entry_format;
  header.header_bytes = sizeof header;
  std::memcpy(header.key, entry.key.bytes.data(), sizeof header.key);
  std::memcpy(header.toolchain, entry.toolchain.data(), sizeof header.toolchain);
  header.metadata_bytes = metadata.size();
  header.cubin_bytes = entry.cubin.size();
  header.ptx_bytes = ptx.size();
  header.ptx_text_bytes = entry.ptx.size();
  header.source_bytes = source.size();
  header.source_text_bytes = entry.source.size();

  std::vector<std::byte> bytes;
  bytes.reserve(sizeof header + metadata.size() + entry.cubin.size() + ptx.size() + source.size() +
                sizeof(Digest));
  const auto append = [&bytes](const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  };
  append(&header, sizeof header);
  append(metadata.data(), metadata.size());
  append(entry.cubin.data(), entry.cubin.size());
  append(ptx.data(), ptx.size());
  append(source.data(), source.size());
  const Digest check = digest(bytes);
  append(check.bytes.data(), check.bytes.size());
  return bytes;
}

std::optional<Entry> decode(std::span<const std::byte> bytes, Parts parts, std::string& defect) {
  const auto refuse = [&defect](std::string why) {
    defect = std::move(why);
    return std::nullopt;
  };
  Header header;
  if (bytes.size() < sizeof header + sizeof(Digest))
    return refuse("truncated to " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) return refuse("not a cache entry");
  if (header.format != entry_format)
    return refuse("format " + std::to_string(header.format) + ", this library reads " +
                  std::to_string(entry_format));
  if (header.header_bytes != sizeof header) return refuse("header of the wrong size");

  Sections sections(bytes.first(bytes.size() - sizeof(Digest)).subspan(sizeof header));
  const auto metadata = sections.take(header.metadata_bytes);
  const auto cubin = sections.take(header.cubin_bytes);
  const auto ptx = sections.take(header.ptx_bytes);
  const auto source = sections.take(header.source_bytes);
  if (!sections.are_exact())
    return refuse("truncated or extended: " + std::to_string(bytes.size()) +
                  " bytes are not what its header announces");
  const Digest expected = digest(bytes.first(bytes.size() - sizeof(Digest)));
  if (std::memcmp(expected.bytes.data(), bytes.data() + bytes.size() - sizeof(Digest),
                  sizeof(Digest)) != 0)
    return refuse("its digest does not match its content");

  Entry entry;
  std::copy(std::begin(header.key), std::end(header.key), entry.key.bytes.begin());
  entry.toolchain.assign(header.toolchain, sizeof header.toolchain);
  if (!metadata_from_json(metadata, parts, entry.metadata)) return refuse("unreadable metadata");
  entry.cubin.assign(cubin.begin(), cubin.end());
  if (parts == Parts::all && (!decompress(ptx, header.ptx_text_bytes, entry.ptx) ||
                              !decompress(source, header.source_text_bytes, entry.source)))
    return refuse("unreadable text");
  return entry;
}

}  // namespace palladium::cache
