//===- Run.cpp - sardonyx run, sardonyx compile ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "sardonyx/Model/LoadArtifact.h"
#include <chrono>
#include <cstdio>
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

/// A name that is a file's: outputs may be called "a/b:0".
static std::string fileNameOf(std::string name) {
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-')
      c = '_';
  return (name.empty() || name[0] == '.' ? "_" : "") + name + ".npy";
}

/// A file for each tensor, named as --input wants them.
static void writeValue(const std::string &folder, const std::string &name,
                       const Tensor &value) {
  if (value.kind == ValueKind::Tensor)
    return writeNpy(folder + "/" + fileNameOf(name), value.type, value.shape,
                    value.data, value.bytes());
  static const char *const parts[] = {"keys", "values"};
  for (size_t i = 0; i < value.items.size(); ++i)
    writeValue(
        folder,
        name + "." +
            (value.kind == ValueKind::Map ? parts[i] : std::to_string(i)),
        value.items[i]);
}

int run(const RunCommand &command) {
  std::shared_ptr<Runner> session = loadRunner(command.common);
  std::vector<Feed> feeds = makeFeeds(*session, command.feeds);
  auto start = std::chrono::steady_clock::now();
  auto results = session->run(refsOf(feeds));
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!results)
    throw std::runtime_error(results.error().message());
  tellWarnings(*session);
  if (!command.outputDir.empty())
    (void)mkdir(command.outputDir.c_str(), 0777);
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string &name = session->outputs()[i].name;
    if (!command.quiet)
      printValue(name, (*results)[i]);
    if (!command.outputDir.empty())
      writeValue(command.outputDir, name, (*results)[i]);
  }
  if (!command.timings)
    return 0;
  if (isSharedLibrary(command.common.model))
    printf("run            %10s\n", describeSeconds(seconds).c_str());
  else
    printTimings(static_cast<const Session &>(*session), seconds);
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
