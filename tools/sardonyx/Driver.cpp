//===- Driver.cpp - Commands and their options ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Commands.h"
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

using namespace sardonyx;

static void addCustomOps(CLI::App *app, CommonOptions &common) {
  app->add_option("--custom-ops", common.libraries,
                  "A shared library of custom operators, which is trusted: it "
                  "runs in this process");
  app->add_option("--custom-functions", common.functions,
                  "An ONNX file with functions for operators");
  app->add_option("--custom-mlir", common.mlir,
                  "An MLIR file with functions for operators");
}

static void addCommon(CLI::App *app, CommonOptions &common) {
  app->add_option("MODEL", common.model, "An ONNX file, binary or textual")
      ->required();
  app->add_option("--threads", common.session.intraOpThreads,
                  "Threads to use (default: one for each core)");
  static const std::map<std::string, Numerics> kNumerics = {
      {"exact", Numerics::Exact},
      {"f32", Numerics::F32},
      {"fast", Numerics::Fast}};
  app->add_option("--numerics", common.session.numerics,
                  "How exact f32 is: exact (plain sums), f32 (the default: "
                  "errors within twice theirs) or fast (convolutions also by "
                  "16 bits of their weights, in the tile registers of AMX)")
      ->transform(CLI::CheckedTransformer(kNumerics));
  static const std::map<std::string, Precision> kPrecisions = {
      {"f32", Precision::F32},
      {"tf32", Precision::TF32},
      {"f16", Precision::F16},
      {"bf16", Precision::BF16}};
  app->add_option(
         "--precision", common.session.precision,
         "What operands of products and convolutions of f32 may be "
         "rounded to where that is faster: f32 (the default: nothing is "
         "rounded), tf32, f16 or bf16")
      ->transform(CLI::CheckedTransformer(kPrecisions));
  app->add_flag_function(
      "--split-floats,!--no-split-floats",
      [&common](int64_t count) { common.session.splitFloats = count > 0; },
      "Use the tile registers of AMX for f32, as sums of bf16 (default: where "
      "one thread computes, or all on a Granite Rapids)");
  app->add_option("--fix", common.fixed,
                  "NAME=SIZE: compile for this size of a named dimension");
  app->add_option("--external-data", common.session.externalDataDir,
                  "Folder of external weights (default: the model's)");
  app->add_option("--plan", common.plan,
                  "A file that `sardonyx plan` wrote, maybe edited: compute "
                  "the kernels in it so");
  app->add_flag("--check-bounds", common.session.checkBounds,
                "Check every index before memory is accessed there (slow)");
  addCustomOps(app, common);
}

static void addRemarks(CLI::App *app, CommonOptions &common) {
  app->add_flag("--remarks", common.remarks,
                "Tell which kernels go by plain loops, and why (compiles anew, "
                "without the cache)");
}

/// "cuda", "cuda:1", "sm_90a", each also with ",cpu".
static void readDevice(std::string name, DeviceOptions &device) {
  device.cuda = true;
  const std::string processor = ",cpu";
  if (name.size() > processor.size() &&
      name.compare(name.size() - processor.size(), processor.size(),
                   processor) == 0) {
    device.mayUseCpu = true;
    name.resize(name.size() - processor.size());
  }
  if (name.rfind("sm_", 0) == 0) {
    device.architecture = name;
    return;
  }
  const std::string prefix = "cuda:";
  if (name == "cuda")
    return;
  int number = -1;
  if (name.rfind(prefix, 0) != 0 ||
      !CLI::detail::lexical_cast(name.substr(prefix.size()), number) ||
      number < 0)
    throw CLI::ValidationError("--device", "'" + name +
                                               "' is none of cuda, cuda:N, "
                                               "sm_NN");
  device.deviceId = number;
}

static void addCpu(CLI::App *app, CommonOptions &common) {
  app->add_option("--cpu", common.session.cpu,
                  "Processor to compile for, in LLVM's spelling (default: this "
                  "one)");
  app->add_option_function<std::string>(
      "--device",
      [&common](const std::string &name) {
        readDevice(name, common.session.device);
      },
      "GPU to compute on: cuda, cuda:1, or cuda,cpu where the processor may "
      "compute what has no kernels there; where nothing is run also what to "
      "compile for, sm_80 (default: the processor)");
}

static void addLimits(CLI::App *app, CommonOptions &common) {
  app->add_option("--memory-limit", common.session.memoryLimit,
                  "Bytes that packed weights, runs and results may take, as "
                  "in 500MB or 2GB (default: what the machine has)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::PositiveNumber);
}

static void addCache(CLI::App *app, CommonOptions &common) {
  app->add_flag(
      "--no-cache", common.noCache,
      "Neither read nor write the cache of compiled models and their packed "
      "weights");
  app->add_option("--cache-dir", common.session.cacheDir,
                  "Folder of that cache (default: ~/.cache/sardonyx)");
}

static void addPerfMap(CLI::App *app, CommonOptions &common) {
  app->add_flag("--perf-map", common.session.perfMap,
                "Tell `perf` the names of kernels, in /tmp/perf-PID.map");
}

static void addFeeds(CLI::App *app, FeedOptions &feeds) {
  app->add_option("--input,-i", feeds.files,
                  "NAME=FILE.npy, or FILE.npz with an array for each input; "
                  "the items of a sequence are NAME.0, NAME.1 and so on, a map "
                  "is NAME.keys and NAME.values; inputs that are not given are "
                  "random");
  app->add_option("--dim,-d", feeds.dims,
                  "NAME=SIZE: size of a named dimension in random inputs "
                  "(default 1)");
  app->add_option("--seed", feeds.seed, "Of random inputs (default 0)");
}

/// What every command takes that runs the model.
static void addExecution(CLI::App *app, CommonOptions &common,
                         FeedOptions &feeds) {
  addCommon(app, common);
  addCpu(app, common);
  addRemarks(app, common);
  addCache(app, common);
  addLimits(app, common);
  addFeeds(app, feeds);
}

static void addMeasure(CLI::App *app, MeasureOptions &options) {
  addExecution(app, options.common, options.feeds);
  app->add_option("--seconds,-s", options.seconds,
                  "How long to measure (default 3)");
  app->add_option("--warmup", options.warmup, "Runs before that (default 3)");
}

/// Gives the program's output to the system; fails where it does not take it.
static int finishOutput(int status) {
  errno = 0;
  const bool isFlushed = fflush(stdout) == 0;
  const int reason = errno;
  if (isFlushed && !ferror(stdout))
    return status;
  fprintf(stderr, "sardonyx: cannot write to the standard output: %s\n",
          strerror(reason ? reason : EIO));
  clearerr(stdout);
  return status ? status : 1;
}

static CLI::App *addRunCommand(CLI::App &program, RunCommand &command) {
  CLI::App *app = program.add_subcommand("run", "Run a model once");
  addExecution(app, command.common, command.feeds);
  addPerfMap(app, command.common);
  app->add_option("--output-dir,-o", command.outputDir,
                  "Write each output to FOLDER/NAME.npy");
  app->add_flag("--timings,--verbose,-v", command.timings,
                "Show how long each step took");
  app->add_flag("--quiet,-q", command.quiet, "Do not show the outputs");
  return app;
}

static CLI::App *addBenchCommand(CLI::App &program, BenchCommand &command) {
  CLI::App *app = program.add_subcommand("bench", "Time a model");
  addMeasure(app, command);
  addPerfMap(app, command.common);
  return app;
}

static CLI::App *addProfileCommand(CLI::App &program, ProfileCommand &command) {
  CLI::App *app = program.add_subcommand(
      "profile", "Show where the time of a model's runs goes");
  addMeasure(app, command);
  app->add_option("--by", command.by,
                  "What a row is: step (a call of a kernel, the default), "
                  "kernel or form")
      ->check(CLI::IsMember({"step", "kernel", "form"}));
  app->add_option("--top", command.top, "Rows to show (default 30)");
  app->add_option("--trace", command.trace,
                  "Write all steps of all runs to a JSON file for "
                  "Perfetto or chrome://tracing");
  app->add_option("--html", command.html,
                  "Write the whole table to an HTML page");
  return app;
}

static CLI::App *addBuildCommand(CLI::App &program, BuildCommand &command) {
  CLI::App *app = program.add_subcommand(
      "build", "Make a file of a model that runs without Sardonyx");
  addCommon(app, command.common);
  app->add_option("--output,-o", command.output,
                  "model.so, model.o, model.a, model.wasm, or a program by any "
                  "other name")
      ->required();
  app->add_option("--cpu", command.cpus,
                  "Processors to make code for, in LLVM's spelling, the "
                  "best first: x86-64-v4,x86-64-v3 (default: this one)");
  app->add_option("--target", command.targets,
                  "The machine to build for: x86_64-linux-gnu, "
                  "aarch64-linux-gnu, wasm32-wasi (default: this one, or "
                  "what the file's name says); and GPUs: nvidia:sm_90a,sm_80, "
                  "with ,cpu where the processor may compute what has no "
                  "kernels there");
  app->add_option("--ptxas", command.assembler,
                  "CUDA's ptxas, which makes code for GPUs, or none (default: "
                  "as SARDONYX_PTXAS or CUDA_HOME say, or along PATH)");
  app->add_option("--dim,-d", command.dims,
                  "NAME=SIZE: fix a named dimension; others stay open");
  app->add_option("--name", command.name,
                  "What the model is called in C (default: by the file)");
  app->add_option("--weights", command.weights,
                  "File for the weights (default: they go into the "
                  "output)");
  app->add_flag("--static", command.isStatic,
                "A program that needs no C library, either");
  app->add_flag("--quiet,-q", command.quiet, "Say nothing");
  return app;
}

static CLI::App *addCompileCommand(CLI::App &program, CompileCommand &command) {
  std::string phases;
  for (const std::string &name : phaseNames())
    phases += (phases.empty() ? "" : ", ") + name;
  CLI::App *app = program.add_subcommand(
      "compile", "Show a model after a phase of the compiler");
  addCommon(app, command.common);
  addRemarks(app, command.common);
  addCpu(app, command.common);
  app->add_option("--to", command.phase,
                  "One of " + phases + " (default linalg)");
  app->add_flag("--elide-weights", command.elideWeights,
                "Leave out weights of more than some elements");
  app->add_option("--target", command.common.session.triple,
                  "The machine to compile for: aarch64-linux-gnu, "
                  "wasm32-wasi (default: this one)");
  app->add_option("--output,-o", command.output,
                  "File to write (default: standard output)");
  return app;
}

static CLI::App *addPlanCommand(CLI::App &program, PlanCommand &command) {
  CLI::App *app = program.add_subcommand(
      "plan", "Show how a model's kernels are computed, to pin it by --plan");
  addCommon(app, command.common);
  addRemarks(app, command.common);
  addCpu(app, command.common);
  app->add_option("--output,-o", command.output,
                  "File to write (default: standard output)");
  return app;
}

static void addInspectCommand(CLI::App &program, InspectCommand &command) {
  CLI::App *app = program.add_subcommand(
      "inspect", "Show what is in a model and what of it is not supported");
  addCommon(app, command.common);
  addCpu(app, command.common);
  app->add_option("--dim,-d", command.dims,
                  "NAME=SIZE: size of a named dimension");
}

static int runCommand(int argc, const char *const *argv) {
  CLI::App app("Sardonyx compiles ONNX models and runs them.", "sardonyx");
  app.footer("Examples:\n"
             "  sardonyx run resnet50.onnx --input x=image.npy\n"
             "  sardonyx bench bert.onnx --dim batch=4 --dim seq=128\n"
             "  sardonyx profile model.onnx --html profile.html\n"
             "  sardonyx build model.onnx -o model.so\n"
             "  sardonyx compile model.onnx --to linalg -o model.mlir\n"
             "  sardonyx plan model.onnx -o model.plan\n"
             "  sardonyx inspect model.onnx");
  app.set_version_flag("--version", "sardonyx " SARDONYX_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);

  RunCommand runOptions;
  CLI::App *runApp = addRunCommand(app, runOptions);
  BenchCommand benchCommand;
  CLI::App *benchApp = addBenchCommand(app, benchCommand);
  ProfileCommand profileCommand;
  CLI::App *profileApp = addProfileCommand(app, profileCommand);
  BuildCommand buildCommand;
  CLI::App *buildApp = addBuildCommand(app, buildCommand);
  CompileCommand compileCommand;
  CLI::App *compileApp = addCompileCommand(app, compileCommand);
  PlanCommand planCommand;
  CLI::App *planApp = addPlanCommand(app, planCommand);
  InspectCommand inspectCommand;
  addInspectCommand(app, inspectCommand);

  CLI11_PARSE(app, argc, argv);
  if (runApp->parsed())
    return run(runOptions);
  if (benchApp->parsed())
    return bench(benchCommand);
  if (profileApp->parsed())
    return profile(profileCommand);
  if (buildApp->parsed())
    return build(buildCommand);
  if (compileApp->parsed())
    return compile(compileCommand);
  if (planApp->parsed())
    return plan(planCommand);
  return inspect(inspectCommand);
}

/// Sentences of this program's own are std::runtime_errors; what the C++
/// library throws has none for a person.
static int runReporting(int argc, const char *const *argv) {
  std::string sentence;
  try {
    return runCommand(argc, argv);
  } catch (const std::bad_alloc &) {
    sentence = "not enough memory for arrays of these sizes";
  } catch (const std::length_error &) {
    sentence = "arrays of these sizes are larger than any memory";
  } catch (const std::system_error &error) {
    sentence = "the system refuses: " + error.code().message();
  } catch (const std::runtime_error &error) {
    sentence = error.what();
  } catch (const std::exception &error) {
    sentence = Error(ErrorKind::Failed,
                     "an internal error; with SARDONYX_DEBUG=1 in the "
                     "environment more is told",
                     error.what())
                   .message();
  }
  fprintf(stderr, "sardonyx: %s\n", sentence.c_str());
  return 1;
}

int sardonyx::runDriver(int argc, const char *const *argv) {
  return finishOutput(runReporting(argc, argv));
}
