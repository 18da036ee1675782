#include "codegen/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "codegen/base/environment.hpp"
#include "codegen/base/forking.hpp"

namespace palladium::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                                  spdlog::level::warn, spdlog::level::err,
                                                  spdlog::level::off};
  return levels[static_cast<int>(level)];
}

spdlog::logger& logger() {
  static spdlog::logger* instance = [] {
    auto* l =
        new spdlog::logger("palladium", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    l->set_pattern("palladium %^%l%$ %v");
    const std::string wanted = environment::get(environment::Variable::log);
    l->set_level(wanted.empty() ? spdlog::level::warn : spdlog::level::from_str(wanted));
    l->flush_on(spdlog::level::debug);
    return l;
  }();
  return *instance;
}

}  // namespace

bool enabled(Level level) {
  const forking::Section section;
  return logger().should_log(spdlog_level(level));
}

void write(Level level, std::string_view line) {
  const forking::Section section;
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace palladium::log
