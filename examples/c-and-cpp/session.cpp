// The same in C++.
#include "pictures.h"
#include <algorithm>
#include <cstdio>
#include <sardonyx/Session/Session.h>

static int fail(const sardonyx::Error &error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]);
    return 2;
  }
  auto session = sardonyx::Session::load(argv[1]);
  if (!session)
    return fail(session.error());
  auto results = (*session)->run(
      {{"picture", sardonyx::refTo(&pictures[0][0][0], {2, 3, 3})}});
  if (!results)
    return fail(results.error());
  auto scores = sardonyx::viewAs<float>((*results)["score"]);
  if (!scores)
    return fail(scores.error());
  for (const float *score = scores->begin(); score != scores->end();
       score += 4) {
    const float *best = std::max_element(score, score + 4);
    std::printf("%s %.3f\n", kinds[best - score], *best);
  }
  return 0;
}
