#include "runtime/emulator/reports.hpp"

#include <algorithm>
#include <vector>

#include "codegen/base/format.hpp"

namespace palladium::emulator {
namespace {
constexpr std::ptrdiff_t most_shown = 20;
}

std::string text(std::array<std::int64_t, 3> i) {
  return fmt::format("({}, {}, {})", i[0], i[1], i[2]);
}

void Reports::add(std::uint64_t turn, const Cause& cause, std::string text) {
  std::lock_guard lock(mutex_);
  Report report{turn, added_[turn]++, std::move(text), cause.line, cause.of_user};
  const auto key = std::tuple(std::string(cause.kind), cause.line, cause.other_line);
  const auto [found, inserted] = reports_.try_emplace(key, std::move(report));
  if (!inserted && turn < found->second.turn) found->second = std::move(report);
}

void Reports::add(const WriteConflict& conflict) {
  std::lock_guard lock(mutex_);
  if (!conflict_ || conflict < *conflict_) conflict_ = conflict;
}

std::optional<WriteConflict> Reports::conflict() const {
  std::lock_guard lock(mutex_);
  return conflict_;
}

void Reports::raise() const {
  const Report* first = nullptr;
  bool of_user = launch_.is_emitted;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [cause, report] : reports_) {
      of_user = of_user && report.of_user;
      if (first == nullptr ||
          std::tuple(report.turn, report.order) < std::tuple(first->turn, first->order)) {
        first = &report;
      }
    }
  }
  if (first == nullptr) return;
  if (of_user) throw CompileError(user_line(first->line), text());
  throw InternalError(text());
}

std::string Reports::text(std::string_view last, std::uint64_t turn) const {
  std::lock_guard lock(mutex_);
  std::vector<const Report*> sorted;
  for (const auto& [cause, report] : reports_) {
    if (report.turn <= turn) sorted.push_back(&report);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Report* a, const Report* b) {
    return std::tuple(a->turn, a->order) < std::tuple(b->turn, b->order);
  });
  std::vector<std::string_view> texts;
  for (const Report* report : sorted) texts.push_back(report->text);
  if (!last.empty()) texts.push_back(last);
  const auto count = static_cast<std::ptrdiff_t>(texts.size());
  if (count > most_shown) texts.erase(texts.begin() + most_shown - 1, texts.end() - 1);
  const std::string head = fmt::format("emulator: kernel '{}': ", launch_.kernel);
  if (texts.size() == 1) return head + std::string(texts[0]);
  std::string result = head + fmt::format("{} reports", count);
  if (count > most_shown) result += fmt::format(", the first {} and the last", most_shown - 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    result += fmt::format("\n{}. {}", i + 1, texts[i]);
  }
  return result;
}

std::string Reports::where(int line) const {
  std::string_view rest = launch_.text;
  for (int i = 1; i < line && !rest.empty(); ++i) {
    rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  }
  std::string_view code = rest.substr(0, rest.find('\n'));
  code.remove_prefix(std::min(code.find_first_not_of(' '), code.size()));
  std::string result = fmt::format("\n  emitted line {}: {}", line, code);
  const std::string user = to_string(user_line(line));
  if (!user.empty()) result += "\n  at " + user;
  return result;
}

Location Reports::user_line(int line) const {
  const bool known = line >= 1 && line <= static_cast<int>(launch_.lines.size());
  return known ? launch_.lines[line - 1] : Location{};
}

}  // namespace palladium::emulator
