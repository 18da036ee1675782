#include "runtime/interpreter/races.hpp"

#include <algorithm>
#include <utility>

#include "codegen/base/format.hpp"
#include "palladium/error.hpp"

namespace palladium::interpreter {
namespace {

constexpr std::size_t max_texts = 20;

// "[3,0]"
std::string index_text(std::int64_t element, const graph::Extents& shape) {
  std::string text;
  for (std::size_t d = shape.size(); d > 0; --d) {
    text = std::to_string(element % shape[d - 1]) + (text.empty() ? "" : ",") + text;
    element /= shape[d - 1];
  }
  return "[" + text + "]";
}

std::string elements_text(const Races::Memory& memory, const race::Race& race) {
  const auto size = static_cast<std::size_t>(memory.dtype.bytes());
  const auto first = static_cast<std::int64_t>(race.offset / size);
  const auto last = static_cast<std::int64_t>((race.offset + race.bytes - 1) / size);
  if (first == last) return "element " + index_text(first, memory.shape);
  return fmt::format("elements {} to {}", index_text(first, memory.shape),
                     index_text(last, memory.shape));
}

}  // namespace

Races::Memory::Memory(race::Engine& engine, std::string name, DType dtype, graph::Extents shape)
    : name(std::move(name)),
      dtype(dtype),
      shape(std::move(shape)),
      shadow(engine, static_cast<std::size_t>(graph::element_count(this->shape)) * dtype.bytes()) {}

Races::Memory& Races::add_memory(std::string name, DType dtype, graph::Extents shape) {
  return memories_.emplace_back(engine_, std::move(name), dtype, std::move(shape));
}

race::Agent Races::add_thread(std::string name) {
  threads_.push_back(std::move(name));
  return engine_.add_agent();
}

void Races::start_program(std::string program) {
  program_ = std::move(program);
  engine_.reset();
  for (std::size_t t = 0; t < threads_.size(); ++t) engine_.add_agent();
  for (Memory& memory : memories_) memory.shadow.clear();
}

void Races::report(const Memory& memory, const race::Race& race) {
  const Location earlier = graph_.location(graph::ValueId{race.earlier.tag});
  const Location later = graph_.location(graph::ValueId{race.later.tag});
  Line a{earlier.file, earlier.line}, b{later.file, later.line};
  if (b < a) std::swap(a, b);
  if (!known_.emplace(memory.name, a, b).second) return;
  if (texts_.empty()) first_ = later;
  if (texts_.size() == max_texts) return;
  texts_.push_back(
      fmt::format("'{}': race on {}: in program {} {} {} {} at {}, which {} {} at {}, and {}",
                  graph_.name, memory.name, program_, threads_[race.later.agent],
                  race.later.kind == race::Kind::read ? "reads" : "writes",
                  elements_text(memory, race), to_string(later), threads_[race.earlier.agent],
                  race.earlier.kind == race::Kind::read ? "read" : "wrote", to_string(earlier),
                  race.missing_fence ? "no plgpu::commit_smem() stands between the two"
                                     : "nothing orders the two"));
}

void Races::refuse(const std::string& besides) const {
  std::string message;
  for (const std::string& text : texts_) message += (message.empty() ? "" : "\n") + text;
  if (known_.size() > texts_.size())
    message += fmt::format("\nand {} more", known_.size() - texts_.size());
  if (!besides.empty()) message += "\n" + besides;
  throw CompileError(first_, message);
}

}  // namespace palladium::interpreter
