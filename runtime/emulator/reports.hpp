// What the emulator has to say about a launch: each cause once, whichever block met it first.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "runtime/emulator/emulator.hpp"

namespace palladium::emulator {

/// "(0, 2, 0)"
std::string text(std::array<std::int64_t, 3> block);

/// What two reports must share to be one: a kind of fault and the lines that take part in it.
struct Cause {
  std::string_view kind;
  int line = 0, other_line = 0;
  /// Whether the user can have caused it, where the text is emitted.
  bool of_user = false;
  auto operator<=>(const Cause&) const = default;
};

/// Two blocks that write one element of a buffer, in order of blocks, and the line of the second.
struct WriteConflict {
  std::size_t region = 0, element = 0;
  std::uint32_t first = 0, second = 0;
  int line = 0;
  auto operator<=>(const WriteConflict&) const = default;
};

/// Collects reports of all workers of a launch. Thread-safe.
class Reports {
 public:
  explicit Reports(const Launch& launch) : launch_(launch) {}

  /// Keeps the report of the cluster that was begun first for each cause.
  void add(std::uint64_t turn, const Cause& cause, std::string text);
  /// Keeps the first conflict, whichever worker met which first.
  void add(const WriteConflict& conflict);
  /// Throws them, if there are any: as a CompileError where all are the user's.
  void raise() const;
  std::optional<WriteConflict> conflict() const;
  /// One text for all, in the order in which clusters were begun. What stopped the launch stands at
  /// the end: `last`, in the cluster of `turn`; those behind it may have come as far as their
  /// worker was fast and are left out.
  std::string text(std::string_view last = {}, std::uint64_t turn = ~std::uint64_t{0}) const;

  /// "\n  emitted line 17: pl::load_shared(...)\n  at softmax.cpp:12"
  std::string where(int line) const;
  /// The user's line of a line of the text; unknown where there is none.
  Location user_line(int line) const;

 private:
  struct Report {
    std::uint64_t turn;  // of its cluster
    std::size_t order;   // in its cluster
    std::string text;
    int line;
    bool of_user;
  };
  const Launch& launch_;
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int, int>, Report> reports_;
  std::unordered_map<std::uint64_t, std::size_t> added_;  // by each cluster
  std::optional<WriteConflict> conflict_;
};

}  // namespace palladium::emulator
