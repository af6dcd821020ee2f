//===- Commands.h - What the driver can do ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_COMMANDS_H
#define SARDONYX_TOOLS_SARDONYX_COMMANDS_H

#include "ArrayFile.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What the subcommands share.
struct CommonOptions {
  std::string model;
  sardonyx::SessionOptions session;
  bool noCache = false;
  /// Values to compute in the place of the model's outputs; lists with commas.
  std::vector<std::string> outputs;
  /// NAME=SIZE.
  std::vector<std::string> fixed;
  /// Files of custom operators.
  std::vector<std::string> libraries, functions, mlir;
  /// A file that `sardonyx plan` wrote; empty: none.
  std::string plan;
  /// Whether to tell which kernels have no fast form.
  bool remarks = false;
};

/// Where inputs come from.
struct FeedOptions {
  /// NAME=FILE.npy or FILE.npz.
  std::vector<std::string> files;
  /// NAME=SIZE.
  std::vector<std::string> dims;
  unsigned seed = 0;
};

struct RunCommand {
  CommonOptions common;
  FeedOptions feeds;
  std::string outputDir;
  bool timings = false;
  bool quiet = false;
  bool json = false;
};

/// What commands share that run a model many times.
struct MeasureOptions {
  CommonOptions common;
  FeedOptions feeds;
  double seconds = 3;
  unsigned warmup = 3;
  bool json = false;
};

struct BenchCommand : MeasureOptions {
  /// Runs at a time.
  unsigned concurrency = 1;
};

struct ProfileCommand : MeasureOptions {
  /// What a row of the table is: "step", "kernel" or "form".
  std::string by = "step";
  size_t top = 30;
  /// Files to write, where not empty.
  std::string trace, html;
};

struct BuildCommand {
  CommonOptions common;
  std::string output, name, weights;
  /// Processors, each of which may be a list with commas.
  std::vector<std::string> cpus;
  /// Machines and GPUs.
  std::vector<std::string> targets;
  std::string assembler;
  /// NAME=SIZE, as CommonOptions::fixed.
  std::vector<std::string> dims;
  bool isStatic = false;
  bool quiet = false;
};

struct CompileCommand {
  CommonOptions common;
  std::string phase = "linalg";
  bool elideWeights = false;
  std::string output;
};

struct PlanCommand {
  CommonOptions common;
  FeedOptions feeds;
  std::string output;
  /// Show the other plans of kernels, too, or time them on the device.
  bool others = false, tune = false;
  /// Of a round of timing.
  double seconds = 0.5;
  unsigned warmup = 2;
};

struct InspectCommand {
  CommonOptions common;
  std::vector<std::string> dims;
  bool json = false;
};

struct CacheCommand {
  std::string folder;
  bool clear = false, all = false;
  std::optional<uint64_t> limit;
  bool json = false;
};

/// An input: a tensor, or what TensorRef says of other values.
struct Feed : Array {
  sardonyx::ValueKind kind = sardonyx::ValueKind::Tensor;
  std::vector<Feed> items;
};

/// Each returns the program's exit status; all throw std::runtime_error.
int run(const RunCommand &command);
int bench(const BenchCommand &command);
int profile(const ProfileCommand &command);
int build(const BuildCommand &command);
int compile(const CompileCommand &command);
int plan(const PlanCommand &command);
/// The plan of the fastest ones of those that planModel() listed in `text`.
std::string tunePlan(const PlanCommand &command, const std::string &text);
int inspect(const InspectCommand &command);
int cache(const CacheCommand &command);
/// Has the Python package do what follows `sardonyx NAME`.
int runPythonCommand(const std::string &name,
                     const std::vector<std::string> &words);

/// The items of lists "x86-64-v3,x86-64-v4".
std::vector<std::string> splitLists(const std::vector<std::string> &lists);

/// The session's options with those of the command line that need parsing.
sardonyx::SessionOptions sessionOptions(const CommonOptions &common);
/// The same where code is only looked at: for the device that a session would
/// use, if there is one.
sardonyx::SessionOptions compileOptions(const CommonOptions &common);

/// The files of custom operators, and these with the model.
std::vector<std::string> customFiles(const CommonOptions &common);
std::vector<std::string> filesOf(const CommonOptions &common);

/// Prints a value: its type, and what it begins with.
void printValue(const std::string &name, const sardonyx::Tensor &value);
class JsonReport;
/// Adds the same to an item of a list.
void addValue(JsonReport &json, const std::string &name,
              const sardonyx::Tensor &value);

/// Compiles the model or takes it from the cache.
std::shared_ptr<sardonyx::Session> loadSession(const CommonOptions &common);
/// Writes what a model has wrong, and still runs, to stderr.
void tellWarnings(sardonyx::Runner &session);

/// The same for a model, or loads what `sardonyx build` has made of one.
std::shared_ptr<sardonyx::Runner> loadRunner(const CommonOptions &common);

/// An array for each input of the session: from files, else random, which
/// stderr tells with the sizes that were chosen for it. A name that the session
/// does not have, of an array or a dimension, is an error.
std::vector<Feed> makeFeeds(const sardonyx::Runner &session,
                            const FeedOptions &options);
std::vector<sardonyx::TensorRef> refsOf(const std::vector<Feed> &feeds);
/// {"batch": 4} of "batch=4", which was given to `option`.
std::map<std::string, int64_t> parseDims(const std::string &option,
                                         const std::vector<std::string> &dims);

/// "x float [1, 3]" for each input of the session.
std::vector<std::string> describeFeeds(const sardonyx::Runner &session,
                                       const std::vector<Feed> &feeds);
/// Throws where it cannot, and where `path` is one of the files that are read.
void writeText(const std::string &path, const std::string &text,
               const std::vector<std::string> &inputs);

/// "1.50 MB", "12.3 ms".
std::string describeBytes(double bytes);
std::string describeSeconds(double seconds);
/// Peak resident memory of this process.
double peakMemory();

#endif // SARDONYX_TOOLS_SARDONYX_COMMANDS_H
