// The interface for C++.
#include "first.hpp"

#include <cstdio>

int main() {
  first_model::Model model;
  std::vector<float> x(12, 1.0f);
  auto results = model.run({3}, x.data());
  std::printf("%zu %g\n", results.y.size(), results.y[1]);
  try {
    model.run({-1}, x.data());
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
