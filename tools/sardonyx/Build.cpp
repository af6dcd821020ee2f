//===- Build.cpp - sardonyx build -----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Build/Build.h"
#include "Commands.h"
#include "Progress.h"
#include <cstdio>
#include <stdexcept>

using namespace sardonyx;

int build(const BuildCommand &command) {
  const CommonOptions &common = command.common;
  ModelSource source;
  source.path = common.model;
  BuildOptions options;
  options.session = sessionOptions(common);
  for (const auto &[name, size] : parseDims("--dim", command.dims))
    options.session.dims[name] = size;
  options.inputs = customFiles(common);
  for (const std::string &target : command.targets)
    if (MaybeError error = setTarget(target, options))
      throw std::runtime_error(error->message());
  options.assembler = command.assembler;
  options.cpus = splitLists(command.cpus);
  options.name = command.name;
  options.weightsFile = command.weights;
  options.isStatic = command.isStatic;
  auto report = [&] {
    Progress progress("compiling " + common.model);
    return build(source, command.output, options);
  }();
  if (!report)
    throw std::runtime_error(report.error().message());
  if (command.quiet)
    return 0;
  double total = 0;
  for (const Timing &timing : report->timings)
    total += timing.seconds;
  for (const std::string &file : report->files)
    printf("%s\n", file.c_str());
  printf("%s, of them %s of weights, in %s\n",
         describeBytes(static_cast<double>(report->fileBytes)).c_str(),
         describeBytes(static_cast<double>(report->weightBytes)).c_str(),
         describeSeconds(total).c_str());
  return 0;
}
