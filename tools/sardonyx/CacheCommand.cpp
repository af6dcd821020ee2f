//===- CacheCommand.cpp - sardonyx cache ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
#include "sardonyx/Session/CompiledModels.h"
#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <stdexcept>

using namespace sardonyx;

static std::string describeTime(int64_t seconds) {
  const time_t time = static_cast<time_t>(seconds);
  tm local;
  char text[64] = "";
  if (localtime_r(&time, &local))
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local);
  return text;
}

/// As many files are shown as a screen has lines, unless all are asked for.
constexpr size_t kShownFiles = 20;

static std::string count(uint64_t number, const char *one, const char *many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

static void print(const CacheReport &report, bool isCleared, bool showsAll) {
  uint64_t total = 0, weights = 0;
  for (const CachedFile &file : report.files) {
    total += file.bytes;
    weights += file.isWeights;
  }
  printf("folder     %s\n", report.folder.c_str());
  printf(
      "%s %s, %s of packed weights, %s\n",
      isCleared ? "removed   " : "holds     ",
      count(report.files.size() - weights, "compiled model", "compiled models")
          .c_str(),
      count(weights, "file", "files").c_str(),
      describeBytes(static_cast<double>(total)).c_str());
  printf("limit      %s\n",
         describeBytes(static_cast<double>(report.limit)).c_str());
  if (isCleared)
    return;
  const size_t shown = showsAll ? report.files.size()
                                : std::min(kShownFiles, report.files.size());
  for (const CachedFile &file : llvm::ArrayRef(report.files).take_front(shown))
    printf("  %s %10s  %-7s %s\n", describeTime(file.used).c_str(),
           describeBytes(static_cast<double>(file.bytes)).c_str(),
           file.isWeights ? "weights" : "model", file.name.c_str());
  if (shown < report.files.size())
    printf("  and %zu that were of use before (--all shows them)\n",
           report.files.size() - shown);
}

static void printJson(const CacheReport &report) {
  JsonReport json("cache");
  json.add("folder", report.folder);
  json.add("limit", static_cast<int64_t>(report.limit));
  json.list("files", [&] {
    for (const CachedFile &file : report.files)
      json.object([&] {
        json.add("name", file.name);
        json.add("kind", std::string(file.isWeights ? "weights" : "model"));
        json.add("bytes", static_cast<int64_t>(file.bytes));
        json.add("used", file.used);
      });
  });
}

int cache(const CacheCommand &command) {
  if (command.clear && command.limit)
    throw std::runtime_error("--clear and --limit do not go together");
  auto report = command.clear   ? clearCache(command.folder)
                : command.limit ? limitCache(*command.limit, command.folder)
                                : readCache(command.folder);
  if (!report)
    throw std::runtime_error(report.error().message());
  if (command.json)
    printJson(*report);
  else
    print(*report, command.clear, command.all);
  return 0;
}
