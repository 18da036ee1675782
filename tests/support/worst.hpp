// The largest of errors, NaN above all: std::max drops it.
#pragma once

#include <cmath>

namespace palladium::test {

inline double worst_of(double before, double error) {
  return std::isnan(before) || error <= before ? before : error;
}

}  // namespace palladium::test
