//===- Run.cpp - sardonyx run, sardonyx compile ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
#include "Progress.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "sardonyx/Session/NewFiles.h"
#include <chrono>
#include <cstdio>
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

namespace {
/// The files of outputs, which take their places together.
class OutputFolder {
public:
  OutputFolder(const std::string &folder, std::vector<std::string> inputs)
      : folder(folder), inputs(std::move(inputs)) {
    (void)mkdir(folder.c_str(), 0777);
  }
  void write(const std::string &name, const Tensor &value);
  void commit() { check(files.commit()); }

private:
  static void check(const MaybeError &error) {
    if (error)
      throw std::runtime_error(error->message());
  }
  std::string folder;
  std::vector<std::string> inputs;
  NewFiles files;
};
} // namespace

/// A file for each tensor, named as --input wants them.
void OutputFolder::write(const std::string &name, const Tensor &value) {
  if (value.kind == ValueKind::Tensor) {
    const std::string path = folder + "/" + fileNameOf(name);
    check(checkOutput(path, inputs));
    auto written = files.add(path);
    if (!written)
      throw std::runtime_error(written.error().message());
    return writeNpy(*written, path, value.type, value.shape, value.data,
                    value.bytes());
  }
  static const char *const parts[] = {"keys", "values"};
  for (size_t i = 0; i < value.items.size(); ++i)
    write(name + "." +
              (value.kind == ValueKind::Map ? parts[i] : std::to_string(i)),
          value.items[i]);
}

static void writeOutputs(const RunCommand &command, const Runner &runner,
                         const std::vector<Tensor> &results) {
  std::vector<std::string> inputs = filesOf(command.common);
  if (!isSharedLibrary(command.common.model)) {
    const auto &more = static_cast<const Session &>(runner).report().files;
    inputs.insert(inputs.end(), more.begin(), more.end());
  }
  for (const std::string &file : command.feeds.files) {
    size_t equals = file.find('=');
    inputs.push_back(equals == std::string::npos ? file
                                                 : file.substr(equals + 1));
  }
  OutputFolder folder(command.outputDir, std::move(inputs));
  for (size_t i = 0; i < results.size(); ++i)
    folder.write(runner.outputs()[i].name, results[i]);
  folder.commit();
}

static void printJson(const RunCommand &command, const Runner &runner,
                      const std::vector<Feed> &feeds,
                      const std::vector<Tensor> &results, double seconds) {
  JsonReport json("run");
  json.add("model", command.common.model);
  json.addFeeds(runner, feeds);
  json.list("outputs", [&] {
    for (size_t i = 0; i < results.size(); ++i)
      json.object(
          [&] { addValue(json, runner.outputs()[i].name, results[i]); });
  });
  json.add("run_seconds", seconds);
  json.add("peak_memory_bytes", peakMemory());
  if (isSharedLibrary(command.common.model))
    return;
  const LoadReport &report = static_cast<const Session &>(runner).report();
  json.add("from_cache", report.fromCache);
  json.nested("load_seconds", [&] {
    std::map<std::string, double> sums;
    for (const Timing &timing : report.timings)
      sums[timing.step] += timing.seconds;
    for (const auto &[step, sum] : sums)
      json.add(step.c_str(), sum);
  });
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
  if (command.json)
    printJson(command, *session, feeds, *results, seconds);
  else if (!command.quiet)
    for (size_t i = 0; i < results->size(); ++i)
      printValue(session->outputs()[i].name, (*results)[i]);
  if (!command.outputDir.empty())
    writeOutputs(command, *session, *results);
  if (!command.timings || command.json)
    return 0;
  if (isSharedLibrary(command.common.model))
    printf("run            %10s\n", describeSeconds(seconds).c_str());
  else
    printTimings(static_cast<const Session &>(*session), seconds);
  return 0;
}

void writeText(const std::string &path, const std::string &text,
               const std::vector<std::string> &inputs) {
  MaybeError error = checkOutput(path, inputs);
  if (!error)
    error = writeFile(path, text);
  if (error)
    throw std::runtime_error(error->message());
}

/// Writes `text` to the file `output`, or shows it.
static void show(const std::string &output, const std::string &text,
                 const std::vector<std::string> &inputs) {
  if (output.empty() || output == "-")
    fwrite(text.data(), 1, text.size(), stdout);
  else
    writeText(output, text, inputs);
}

/// Fails before long work where `output` is not to be written.
static void checkShown(const std::string &output,
                       const std::vector<std::string> &inputs) {
  if (output.empty() || output == "-")
    return;
  if (MaybeError error = checkOutput(output, inputs))
    throw std::runtime_error(error->message());
}

int compile(const CompileCommand &command) {
  std::vector<std::string> inputs = filesOf(command.common);
  checkShown(command.output, inputs);
  ModelSource source;
  source.path = command.common.model;
  std::vector<std::string> files;
  auto text = [&] {
    Progress progress("compiling " + source.path);
    return compileToText(source, command.phase, compileOptions(command.common),
                         &files, command.elideWeights);
  }();
  if (!text)
    throw std::runtime_error(text.error().message());
  inputs.insert(inputs.end(), files.begin(), files.end());
  show(command.output, *text, inputs);
  return 0;
}

int plan(const PlanCommand &command) {
  const std::vector<std::string> inputs = filesOf(command.common);
  checkShown(command.output, inputs);
  ModelSource source;
  source.path = command.common.model;
  auto text = [&] {
    Progress progress("compiling " + source.path);
    return planModel(source, compileOptions(command.common),
                     command.others || command.tune);
  }();
  if (!text)
    throw std::runtime_error(text.error().message());
  show(command.output, command.tune ? tunePlan(command, *text) : *text, inputs);
  return 0;
}
