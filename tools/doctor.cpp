// `palladium doctor`: what kernels need, found or how to get it.
#include <fmt/format.h>

#include "palladium/diagnosis.hpp"
#include "palladium/version.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

constexpr int margin = 20;

/// Text of several lines behind a margin.
std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(margin, ' ');
  }
  return result;
}

void print_json(const Diagnosis& d) {
  Json findings = Json::array();
  for (const Finding& f : d.findings) {
    Json finding = {{"name", f.name}, {"ok", f.ok}, {"found", f.found}, {"advice", f.advice}};
    for (const auto& [name, value] : f.details) finding[name] = value;
    findings.push_back(std::move(finding));
  }
  const bool works = d.problem.empty();
  print(Json{{"version", version_string()},
             {"ok", works},
             {"target", works ? Json(to_string(d.target)) : Json()},
             {"problem", d.problem},
             {"findings", std::move(findings)}});
}

void print_text(const Diagnosis& d) {
  for (const Finding& f : d.findings) {
    print(fmt::format("{:2}  {:<{}}{}", f.ok ? "ok" : "--", f.name, margin - 4, indented(f.found)));
    if (!f.advice.empty()) print(fmt::format("{:<{}}-> {}", "", margin, indented(f.advice)));
  }
  if (d.problem.empty()) print(fmt::format("\nkernels run on: {}", to_string(d.target)));
}

}  // namespace

int doctor(const Doctor& asked) {
  const Diagnosis d = diagnose();
  asked.json ? print_json(d) : print_text(d);
  if (d.problem.empty()) return 0;
  complain("kernels cannot run: " + d.problem);
  return 1;
}

}  // namespace palladium::tools
