// Everything that reads what others may have written, fed with any bytes at all. Each target must
// come back: with a value that can be written again, or a defect, or an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace palladium::fuzz {

using Bytes = std::span<const std::byte>;

void entry(Bytes bytes);          // a cache entry
void entry_body(Bytes bytes);     // the same with the digest that belongs to it
void manifest(Bytes bytes);       // a manifest
void manifest_body(Bytes bytes);  // one line of it, whose graph these bytes are, with their digest
void graph(Bytes bytes);          // a graph as JSON
void npy(Bytes bytes);            // an array file
void sass(Bytes bytes);           // what nvdisasm prints
void trace(Bytes bytes);          // a trace that is laid beside the timeline

struct Target {
  std::string_view name;
  void (*run)(Bytes bytes);
};
inline constexpr Target targets[] = {
    {"entry", entry},       {"entry_body", entry_body},
    {"manifest", manifest}, {"manifest_body", manifest_body},
    {"graph", graph},       {"npy", npy},
    {"sass", sass},         {"trace", trace},
};

}  // namespace palladium::fuzz
