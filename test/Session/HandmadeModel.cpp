//===- HandmadeModel.cpp - A compiled model without a compiler ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandmadeModel.h"
#include "../../lib/Session/Cache/Cache.h"
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace sardonyx;

const std::string kHandmadeBytes = "no model at all";

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/sardonyx-test-XXXXXX";
  path = mkdtemp(name);
}

TemporaryFolder::~TemporaryFolder() {
  (void)!system(("rm -rf '" + path + "'").c_str());
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static ValueInfo tensor(const std::string &name, std::vector<Dim> dims) {
  ValueInfo info;
  info.name = name;
  info.type = "tensor(float)";
  info.elementType = ElementType::Float;
  info.hasRank = true;
  info.dims = std::move(dims);
  return info;
}

static std::string floats(std::vector<float> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(float));
}

Artifact handmadeArtifact(const std::string &weightsFile, uint64_t offset) {
  Artifact artifact;
  artifact.inputs = {tensor("x", {{-1, "n"}, {3, ""}}),
                     tensor("b", {{-1, "n"}})};
  artifact.outputs = {tensor("y", {{-1, "n"}, {3, ""}}),
                      tensor("m", {{-1, "n"}})};
  artifact.metadata.producerName = "hand";
  artifact.metadata.custom = {{"key", "value"}};

  Argument x, doubled, bias, b, w;
  x.kind = b.kind = Argument::Input;
  b.index = 1;
  doubled.kind = Argument::Persistent;
  bias.kind = w.kind = Argument::Constant;
  bias.index = w.index = Argument::inlineData;
  artifact.data = floats({0.5f});
  artifact.data.resize(64);
  bias.length = 4;
  bias.shape = {1};
  w.length = 12;
  w.shape = {3};
  if (weightsFile.empty()) {
    w.offset = 64;
    artifact.data += floats({1, 10, 100});
  } else {
    writeFile(weightsFile, std::string(offset, '#') + floats({1, 10, 100}));
    struct stat status;
    stat(weightsFile.c_str(), &status);
    artifact.files.push_back(
        {weightsFile, static_cast<uint64_t>(status.st_size),
         int64_t(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec});
    w.index = 0;
    w.offset = offset;
  }
  artifact.initArgs = {w};
  artifact.mainArgs = {x, doubled, bias, b};
  artifact.persistentElementBytes = {4};
  artifact.objects = {readFile(SDX_TEST_OBJECT)};
  return artifact;
}

SessionOptions handmadeOptions(const TemporaryFolder &folder,
                               const Artifact &artifact) {
  SessionOptions options;
  options.cacheDir = folder.path;
  Cache cache(options);
  cache.store(cache.keyOf(*FileMap::borrow(kHandmadeBytes.data(),
                                           kHandmadeBytes.size()),
                          options),
              artifact);
  return options;
}
