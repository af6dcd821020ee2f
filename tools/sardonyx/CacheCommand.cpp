//===- CacheCommand.cpp - sardonyx cache ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
#include "sardonyx/Session/CompiledModels.h"
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

static void print(const CacheReport &report, bool isCleared) {
  uint64_t total = 0, weights = 0;
  for (const CachedFile &file : report.files) {
    total += file.bytes;
    weights += file.isWeights;
  }
  printf("folder     %s\n", report.folder.c_str());
  printf("%s %zu compiled models, %zu files of packed weights, %s\n",
         isCleared ? "removed   " : "holds     ",
         report.files.size() - static_cast<size_t>(weights),
         static_cast<size_t>(weights),
         describeBytes(static_cast<double>(total)).c_str());
  printf("limit      %s\n",
         describeBytes(static_cast<double>(report.limit)).c_str());
  if (isCleared)
    return;
  for (const CachedFile &file : report.files)
    printf("  %s %10s  %-7s %s\n", describeTime(file.used).c_str(),
           describeBytes(static_cast<double>(file.bytes)).c_str(),
           file.isWeights ? "weights" : "model", file.name.c_str());
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
    print(*report, command.clear);
  return 0;
}
