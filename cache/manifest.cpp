#include "cache/manifest.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/key.hpp"
#include "codegen/base/format.hpp"
#include "codegen/base/log.hpp"

namespace palladium::cache {
namespace {

using Json = nlohmann::json;

constexpr auto replace = Json::error_handler_t::replace;

/// Calls `each` with the lines of a text, without their newlines; the last may lack one.
template <class Each>
void for_lines(std::string_view text, const Each& each) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    each(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// What a parser that builds a tree could not survive: text nested without end.
class DepthLimit {
 public:
  bool operator()(int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) throw TooDeep();
    return true;
  }
  struct TooDeep {};

 private:
  static constexpr int deepest = 300;
};

Json parse(std::string_view line) {
  try {
    return Json::parse(line, DepthLimit(), false);
  } catch (const DepthLimit::TooDeep&) {
    return Json(Json::value_t::discarded);
  }
}

std::optional<Record> record_of(const Json& json, std::string& defect) {
  Record record;
  json.at("arch").get_to(record.arch);
  json.at("kernel").get_to(record.kernel);
  json.at("arguments").get_to(record.arguments);
  json.at("location").get_to(record.location);
  record.reached = !json.value("reachable", false);
  const auto id = parse_key(json.at("id").get_ref<const std::string&>());
  const auto expected = parse_key(json.at("digest").get_ref<const std::string&>());
  record.graph = json.at("graph").dump(-1, ' ', false, replace);
  if (!id || !expected || digest(record.graph) != *expected) {
    defect = "its digest does not match its graph";
    return std::nullopt;
  }
  record.id = *id;
  return record;
}

}  // namespace

std::string to_line(const Record& record) {
  nlohmann::ordered_json head = {{"palladium_manifest", manifest_version},
                                 {"id", record.id.hex()},
                                 {"arch", record.arch},
                                 {"kernel", record.kernel},
                                 {"arguments", record.arguments},
                                 {"location", record.location}};
  if (!record.reached) head["reachable"] = true;
  head["digest"] = digest(record.graph).hex();
  std::string line = head.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  line.pop_back();  // the graph comes in before the brace
  return line + ",\"graph\":" + record.graph + "}\n";
}

std::optional<Record> from_line(std::string_view line, std::string& defect) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const Json json = parse(line);
  if (!json.is_object()) {
    defect = "it is cut short or no JSON object";
    return std::nullopt;
  }
  const auto version = json.find("palladium_manifest");
  if (version == json.end() || !version->is_number_integer()) {
    defect = "it is no line of a manifest";
    return std::nullopt;
  }
  if (*version != manifest_version) {
    defect = fmt::format("version {}, this library reads {}", version->dump(), manifest_version);
    return std::nullopt;
  }
  try {
    return record_of(json, defect);
  } catch (const Json::exception& error) {
    defect = error.what();
    return std::nullopt;
  }
}

Manifest parse_manifest(std::string_view text) {
  Manifest manifest;
  std::map<std::pair<Digest, std::string>, std::size_t> places;
  std::size_t number = 0;
  for_lines(text, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    std::string defect;
    auto record = from_line(line, defect);
    if (!record) {
      manifest.damages.push_back({number, std::move(defect)});
      return;
    }
    const auto [place, is_new] =
        places.try_emplace({record->id, record->arch}, manifest.records.size());
    if (!is_new) {
      manifest.records[place->second].reached |= record->reached;
      return;
    }
    record->line = number;
    manifest.records.push_back(std::move(*record));
  });
  return manifest;
}

files::Outcome read_manifest(const std::string& path, Manifest& manifest) {
  std::string text;
  const files::Outcome outcome = files::read(path, most_manifest_bytes, text);
  if (outcome) manifest = parse_manifest(text);
  return outcome;
}

bool ManifestWriter::has(const Digest& id, const std::string& arch, bool reached) const {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find({id, arch});
  return known != names_.end() && (known->second || !reached);
}

/// Learns what the file got since the last look.
files::Outcome ManifestWriter::look() {
  files::Info info;
  if (const files::Outcome outcome = files::info(path_, info); !outcome) {
    if (!outcome.is_missing()) return outcome;
    info.size = 0;
  }
  if (info.size < seen_) {  // another file
    names_.clear();
    seen_ = 0;
    ends_in_line_ = false;
  }
  if (info.size > most_manifest_bytes) return {EFBIG, "stat"};
  if (info.size == seen_) return {};
  std::vector<std::byte> bytes;
  const files::Outcome outcome =
      files::read_at(path_, seen_, static_cast<std::size_t>(info.size) - seen_, bytes);
  if (!outcome) return outcome;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for_lines(text, [this](std::string_view line) {
    std::string ignored;
    if (const auto record = from_line(line, ignored))
      names_[{record->id, record->arch}] |= record->reached;
  });
  seen_ = static_cast<std::size_t>(info.size);
  ends_in_line_ = text.back() != '\n';
  return {};
}

void ManifestWriter::complain(const files::Outcome& outcome) {
  if (std::exchange(has_complained_, true)) return;
  log::warning(fmt::format("record: '{}' does not get all kernels: {}", path_, outcome.message()));
}

void ManifestWriter::add(const Record& record) {
  const std::lock_guard lock(mutex_);
  if (const files::Outcome outcome = look(); !outcome) return complain(outcome);
  const auto known = names_.find({record.id, record.arch});
  if (known != names_.end() && (known->second || !record.reached)) return;
  const std::string line = (ends_in_line_ ? "\n" : "") + to_line(record);
  constexpr mode_t for_all = 0666;  // less the umask: it is a file of the user's, not ours
  if (const files::Outcome outcome = files::append(path_, line, for_all); !outcome)
    return complain(outcome);
  names_[{record.id, record.arch}] |= record.reached;
}

}  // namespace palladium::cache
