// The same in C++.
#include "pictures.h"
#include <algorithm>
#include <cstdio>
#include <sardonyx/Session/Session.h>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]);
    return 2;
  }
  auto session = sardonyx::Session::load(argv[1]);
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message().c_str());
    return 1;
  }
  sardonyx::TensorRef input = {
      sardonyx::ElementType::Float, pictures, {2, 3, 3}};
  auto results = (*session)->run({input});
  if (!results) {
    std::fprintf(stderr, "%s\n", results.error().message().c_str());
    return 1;
  }
  const auto *score = static_cast<const float *>(results->front().data);
  for (; score != static_cast<const float *>(results->front().data) + 8;
       score += 4) {
    const float *best = std::max_element(score, score + 4);
    std::printf("%s %.3f\n", kinds[best - score], *best);
  }
  return 0;
}
