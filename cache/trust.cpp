#include "cache/trust.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "codegen/base/format.hpp"

namespace palladium::cache {
namespace {

constexpr std::uint32_t group_may_write = 020;
constexpr std::uint32_t others_may_write = 002;

bool is_of_owner(const files::Info& info) { return info.owner == ::geteuid() || info.owner == 0; }

bool is_in_group(gid_t group) {
  if (group == ::getegid()) return true;
  const int count = ::getgroups(0, nullptr);
  if (count <= 0) return false;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgroups(count, groups.data()) != count) return false;
  return std::ranges::find(groups, group) != groups.end();
}

std::string foreign(const std::string& path, const files::Info& info) {
  return fmt::format(
      "belongs to uid {}, not to uid {} who runs this: use another PALLADIUM_CACHE_DIR or "
      "`chown -R {} '{}'`",
      info.owner, ::geteuid(), ::geteuid(), path);
}

std::string writable(const std::string& path, const files::Info& info, const char* remedy) {
  return fmt::format("is writable by others (mode {:o}): `chmod {} '{}'`", info.mode, remedy, path);
}

}  // namespace

std::string distrust_of_folder(const std::string& path, const files::Info& info, Sharing sharing) {
  if (sharing == Sharing::own) {
    if (!is_of_owner(info)) return foreign(path, info);
    if ((info.mode & (group_may_write | others_may_write)) != 0)
      return writable(path, info, "go-w") +
             "; for a cache that a group shares, PALLADIUM_CACHE_SHARING=group";
    return "";
  }
  if ((info.mode & others_may_write) != 0) return writable(path, info, "o-w");
  if (is_of_owner(info) || is_in_group(info.group)) return "";
  return fmt::format(
      "belongs to uid {} and gid {}; uid {} who runs this is neither, nor in the group: use "
      "another "
      "PALLADIUM_CACHE_DIR",
      info.owner, info.group, ::geteuid());
}

std::string distrust_of_entry(const std::string& path, const files::Info& info, Sharing sharing) {
  if (sharing == Sharing::own && !is_of_owner(info)) return foreign(path, info);
  if (sharing == Sharing::group && !is_of_owner(info) && !is_in_group(info.group))
    return foreign(path, info);
  if ((info.mode & (group_may_write | others_may_write)) != 0) return writable(path, info, "go-w");
  return "";
}

}  // namespace palladium::cache
