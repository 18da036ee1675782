// What others take for the same, by a script of benchmarks/peers.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace palladium::benchmark {

/// Of each case the peers and their microseconds.
using Peers = std::map<std::string, std::vector<std::pair<std::string, double>>>;

/// Lines "CASE PEER MICROSECONDS" of the script, which stands beside `program` or in
/// PALLADIUM_PEERS; those that there are where it fails.
inline Peers peers_by(const std::string& script, const std::string& program) {
  std::string path = program.substr(0, program.find_last_of('/') + 1) + script;
  if (::access(path.c_str(), R_OK) != 0) path = PALLADIUM_PEERS "/" + script;
  const char* const chosen = std::getenv("PYTHON");
  const std::string command =
      std::string(chosen != nullptr ? chosen : "python3") + " '" + path + "' --run";
  Peers found;
  std::FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return found;
  char name[64], peer[32];
  double us = 0;
  while (std::fscanf(out, "%63s %31s %lf", name, peer, &us) == 3)
    found[name].emplace_back(peer, us);
  ::pclose(out);
  return found;
}

/// "  triton 12.3 us (0.98 x)" for each of what others take, if they take anything.
inline std::string words_of(const Peers& peers, const std::string& name, double us) {
  std::string words;
  const auto found = peers.find(name);
  if (found == peers.end()) return words;
  char text[96];
  for (const auto& [peer, theirs] : found->second) {
    std::snprintf(text, sizeof text, "  %s %.1f us (%.2f x)", peer.c_str(), theirs, us / theirs);
    words += text;
  }
  return words;
}

}  // namespace palladium::benchmark
