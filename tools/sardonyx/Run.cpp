//===- Run.cpp - sardonyx run, sardonyx compile ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <sys/stat.h>

using namespace sardonyx;

static void printTimings(const Session &session, double runSeconds) {
  double total = 0;
  printf("loading%s\n",
         session.report().fromCache ? " (compiled model from the cache)" : "");
  for (const Timing &timing : session.report().timings) {
    printf("  %-12s %10s\n", timing.step.c_str(),
           describeSeconds(timing.seconds).c_str());
    total += timing.seconds;
  }
  printf("  %-12s %10s\n", "total", describeSeconds(total).c_str());
  printf("run            %10s\n", describeSeconds(runSeconds).c_str());
  printf("machine code   %10s\n",
         describeBytes(session.report().codeBytes).c_str());
  printf("packed weights %10s\n",
         describeBytes(session.report().persistentBytes).c_str());
  printf("peak memory    %10s\n", describeBytes(peakMemory()).c_str());
}

template <typename T> static double valueAt(const Tensor &tensor, int64_t i) {
  return static_cast<double>(static_cast<const T *>(tensor.data)[i]);
}

/// An element as a double, for people; 0 for types that C++ lacks.
static double elementAt(const Tensor &tensor, int64_t i) {
  switch (tensor.type) {
  case ElementType::Float:
    return valueAt<float>(tensor, i);
  case ElementType::Double:
    return valueAt<double>(tensor, i);
  case ElementType::Float16:
    return valueAt<_Float16>(tensor, i);
  case ElementType::Int8:
    return valueAt<int8_t>(tensor, i);
  case ElementType::Int16:
    return valueAt<int16_t>(tensor, i);
  case ElementType::Int32:
    return valueAt<int32_t>(tensor, i);
  case ElementType::Int64:
    return valueAt<int64_t>(tensor, i);
  case ElementType::Uint8:
  case ElementType::Bool:
    return valueAt<uint8_t>(tensor, i);
  case ElementType::Uint16:
    return valueAt<uint16_t>(tensor, i);
  case ElementType::Uint32:
    return valueAt<uint32_t>(tensor, i);
  case ElementType::Uint64:
    return valueAt<uint64_t>(tensor, i);
  case ElementType::Bfloat16: {
    uint32_t bits = static_cast<const uint16_t *>(tensor.data)[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  default:
    return 0;
  }
}

static void printTensor(const std::string &name, const Tensor &tensor) {
  int64_t count = tensor.elements();
  printf("%s: %s %s", name.c_str(), nameOf(tensor.type),
         describeShape(tensor.shape).c_str());
  if (count > 0) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < count; ++i) {
      double value = elementAt(tensor, i);
      if (std::isnan(value)) {
        ++bad;
        continue;
      }
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    printf("  min %.6g  mean %.6g  max %.6g", low, sum / count, high);
    if (bad)
      printf("  %lld NaN", static_cast<long long>(bad));
  }
  printf("\n ");
  for (int64_t i = 0; i < std::min<int64_t>(count, 8); ++i)
    printf(" %.6g", elementAt(tensor, i));
  printf("%s\n", count > 8 ? " ..." : "");
}

/// A name that is a file's: outputs may be called "a/b:0".
static std::string fileNameOf(std::string name) {
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-')
      c = '_';
  return (name.empty() || name[0] == '.' ? "_" : "") + name + ".npy";
}

int run(const RunCommand &command) {
  std::shared_ptr<Session> session = loadSession(command.common);
  std::vector<Array> feeds = makeFeeds(*session, command.feeds);
  auto start = std::chrono::steady_clock::now();
  auto results = session->run(refsOf(feeds));
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!results)
    throw std::runtime_error(results.error().message());
  if (!command.outputDir.empty())
    (void)mkdir(command.outputDir.c_str(), 0777);
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor &tensor = (*results)[i];
    const std::string &name = session->outputs()[i].name;
    if (!command.quiet)
      printTensor(name, tensor);
    if (!command.outputDir.empty())
      writeNpy(command.outputDir + "/" + fileNameOf(name), tensor.type,
               tensor.shape, tensor.data, tensor.bytes());
  }
  if (command.timings)
    printTimings(*session, seconds);
  return 0;
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw std::runtime_error("cannot write '" + path + "'");
}

int compile(const CompileCommand &command) {
  ModelSource source;
  source.path = command.common.model;
  auto text =
      compileToText(source, command.phase, sessionOptions(command.common));
  if (!text)
    throw std::runtime_error(text.error().message());
  if (command.output.empty() || command.output == "-") {
    std::cout << *text;
    return 0;
  }
  writeText(command.output, *text);
  return 0;
}
