//===- CommandLine.cpp - The commands and their options -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "Help.h"
#include "sardonyx/UnknownName.h"
#include <string>
#include <utility>

using namespace sardonyx;

// Groups of options in the order in which the help has them.
static constexpr char kInputs[] = "Inputs", kOutputs[] = "Outputs",
                      kMeasuring[] = "Measuring", kModel[] = "Model",
                      kMachine[] = "Machine", kCache[] = "Cache",
                      kCustom[] = "Custom operators", kTuning[] = "Tuning";

/// An option with a value; one that may be given several times takes one value
/// each time, so that what follows it is an argument.
template <typename T>
static CLI::Option *addValue(CLI::App *app, const std::string &names, T &value,
                             const std::string &metavar,
                             const std::string &text, const char *group) {
  return app->add_option(names, value, text)
      ->type_name(metavar)
      ->group(group)
      ->allow_extra_args(false);
}

static CLI::Option *addFlag(CLI::App *app, const std::string &names,
                            bool &value, const std::string &text,
                            const char *group) {
  return app->add_flag(names, value, text)->group(group);
}

[[noreturn]] static void refuse(const std::string &option,
                                const std::string &value,
                                const std::vector<std::string> &known) {
  const std::string like = nearestName(value, known);
  throw CLI::ValidationError(
      option, "'" + value + "' is none of " + listOf(known) +
                  (like.empty() ? "" : " (did you mean " + like + "?)"));
}

/// An option whose value is one of some words.
template <typename T>
static CLI::Option *
addChoice(CLI::App *app, const std::string &name, T &value,
          const std::vector<std::pair<std::string, T>> &choices,
          const std::string &text, const char *group) {
  std::string metavar;
  for (const auto &[word, meaning] : choices)
    metavar += (metavar.empty() ? "" : "|") + word;
  return app
      ->add_option_function<std::string>(
          name,
          [&value, choices, name](const std::string &given) {
            std::vector<std::string> known;
            for (const auto &[word, meaning] : choices) {
              if (word == given) {
                value = meaning;
                return;
              }
              known.push_back(word);
            }
            refuse(name, given, known);
          },
          text)
      ->type_name(metavar)
      ->group(group);
}

static void addCustomOps(CLI::App *app, CommonOptions &common) {
  addValue(app, "--custom-ops", common.libraries, "FILE.so",
           "A shared library of custom operators, which is trusted: it runs in "
           "this process",
           kCustom);
  addValue(app, "--custom-functions", common.functions, "FILE.onnx",
           "An ONNX file with functions for operators", kCustom);
  addValue(app, "--custom-mlir", common.mlir, "FILE.mlir",
           "An MLIR file with functions for operators", kCustom);
}

static void addTuning(CLI::App *app, CommonOptions &common) {
  addChoice<Numerics>(
      app, "--numerics", common.session.numerics,
      {{"exact", Numerics::Exact},
       {"f32", Numerics::F32},
       {"fast", Numerics::Fast}},
      "How exact f32 is: exact (plain sums), f32 (the default: errors within "
      "twice theirs) or fast (convolutions also by 16 bits of their weights, "
      "in "
      "the tile registers of AMX)",
      kTuning);
  addChoice<Precision>(
      app, "--precision", common.session.precision,
      {{"f32", Precision::F32},
       {"tf32", Precision::TF32},
       {"f16", Precision::F16},
       {"bf16", Precision::BF16},
       {"bf16x3", Precision::BF16x3}},
      "What operands of products and convolutions of f32 may be rounded to "
      "where that is faster (default f32: nothing is rounded)",
      kTuning);
  app->add_flag_function(
         "--split-floats,!--no-split-floats",
         [&common](int64_t count) { common.session.splitFloats = count > 0; },
         "Use the tile registers of AMX for f32, as sums of bf16 (default: "
         "where one thread computes, or all on a Granite Rapids)")
      ->group(kTuning);
  addValue(app, "--plan", common.plan, "FILE",
           "A file that `sardonyx plan` wrote, maybe edited: compute the "
           "kernels in it so",
           kTuning);
  addFlag(app, "--check-bounds", common.session.checkBounds,
          "Check every index before memory is accessed there (slow)", kTuning);
}

/// Tuning options come last: callers add them when all others are there.
static void addModel(CLI::App *app, CommonOptions &common) {
  app->add_option("MODEL", common.model, "An ONNX file, binary or textual")
      ->type_name("")
      ->required();
  addValue(app, "--fix", common.fixed, "NAME=SIZE",
           "Compile for this size of an open dimension; X[0] is the first one "
           "of input X, where it has no name",
           kModel);
  addValue(app, "--external-data", common.session.externalDataDir, "FOLDER",
           "Folder of external weights (default: the model's)", kModel);
  addCustomOps(app, common);
  addValue(app, "--threads", common.session.intraOpThreads, "N",
           "Threads to use (default: one for each core)", kMachine);
}

static void addRemarks(CLI::App *app, CommonOptions &common) {
  addFlag(app, "--remarks", common.remarks,
          "Tell which kernels go by plain loops, and why (compiles anew, "
          "without the cache)",
          kTuning);
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
    refuse("--device", name, {"cuda", "cuda:N", "sm_NN"});
  device.deviceId = number;
}

static void addMachine(CLI::App *app, CommonOptions &common) {
  addValue(app, "--cpu", common.session.cpu, "NAME",
           "Processor to compile for, in LLVM's spelling (default: this one)",
           kMachine);
  app->add_option_function<std::string>(
         "--device",
         [&common](const std::string &name) {
           readDevice(name, common.session.device);
         },
         "GPU to compute on: cuda, cuda:1, or cuda,cpu where the processor may "
         "compute what has no kernels there; where nothing is run also what to "
         "compile for, sm_80 (default: the processor)")
      ->type_name("NAME")
      ->group(kMachine);
}

static void addLimits(CLI::App *app, CommonOptions &common) {
  addValue(app, "--memory-limit", common.session.memoryLimit, "SIZE",
           "Bytes that packed weights, runs and results may take, as in 500MB "
           "or 2GB (default: what the machine has)",
           kMachine)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::PositiveNumber);
}

static void addCacheDir(CLI::App *app, std::string &folder) {
  addValue(app, "--cache-dir", folder, "FOLDER",
           "Folder of compiled models (default: ~/.cache/sardonyx)", kCache);
}

static void addCacheUse(CLI::App *app, CommonOptions &common) {
  addFlag(app, "--no-cache", common.noCache,
          "Neither read nor write the cache of compiled models and their "
          "packed weights",
          kCache);
  addCacheDir(app, common.session.cacheDir);
}

static void addFeeds(CLI::App *app, FeedOptions &feeds) {
  addValue(app, "--input,-i", feeds.files, "[NAME=]FILE",
           "NAME=FILE.npy, or FILE.npz with an array for each input; the items "
           "of a sequence are NAME.0, NAME.1 and so on, a map is NAME.keys and "
           "NAME.values; inputs that are not given are random",
           kInputs);
  addValue(app, "--dim,-d", feeds.dims, "NAME=SIZE",
           "Size of an open dimension in random inputs (default 1); X[0] is "
           "the first one of input X, where it has no name",
           kInputs);
  addValue(app, "--seed", feeds.seed, "N", "Of random inputs (default 0)",
           kInputs);
}

/// What every command takes that runs the model.
static void addExecution(CLI::App *app, CommonOptions &common) {
  addModel(app, common);
  addMachine(app, common);
  addLimits(app, common);
  addCacheUse(app, common);
  addTuning(app, common);
  addRemarks(app, common);
}

static void addMeasure(CLI::App *app, MeasureOptions &options) {
  addValue(app, "--seconds,-s", options.seconds, "N",
           "How long to measure (default 3)", kMeasuring);
  addValue(app, "--warmup", options.warmup, "N", "Runs before that (default 3)",
           kMeasuring);
}

static void addPerfMap(CLI::App *app, CommonOptions &common) {
  addFlag(app, "--perf-map", common.session.perfMap,
          "Tell `perf` the names of kernels, in /tmp/perf-PID.map", kTuning);
}

static void addJson(CLI::App *app, bool &json) {
  addFlag(
      app, "--json", json,
      "Print an object of JSON (docs/reference/Json.md tells what is in it)",
      kOutputs);
}

CLI::App *CommandLine::add(const std::string &name, const std::string &summary,
                           const std::string &example, Work work) {
  CLI::App *command = app.add_subcommand(name, summary);
  command->footer(example);
  command->get_help_ptr()->group("Help")->description("Show this and end");
  commands.emplace_back(command, std::move(work));
  return command;
}

void CommandLine::addRun() {
  RunCommand &command = runOptions;
  CLI::App *app =
      add("run", "Run a model once",
          "sardonyx run resnet50.onnx --input x=image.npy --output-dir out",
          [this] { return run(runOptions); });
  addFeeds(app, command.feeds);
  addValue(app, "--outputs", command.common.outputs, "NAME,...",
           "Compute these values in the place of the model's outputs; they may "
           "be any of its main graph",
           kOutputs);
  addValue(app, "--output-dir,-o", command.outputDir, "FOLDER",
           "Write each output to FOLDER/NAME.npy", kOutputs);
  addJson(app, command.json);
  addFlag(app, "--timings,--verbose,-v", command.timings,
          "Show how long each step took", kOutputs);
  addFlag(app, "--quiet,-q", command.quiet, "Do not show the outputs",
          kOutputs);
  addExecution(app, command.common);
  addPerfMap(app, command.common);
}

void CommandLine::addBench() {
  BenchCommand &command = benchOptions;
  CLI::App *app =
      add("bench", "Time a model",
          "sardonyx bench bert.onnx --dim batch=4 --dim seq=128 --threads 2",
          [this] { return bench(benchOptions); });
  addFeeds(app, command.feeds);
  addMeasure(app, command);
  addValue(app, "--concurrency", command.concurrency, "N",
           "Runs at a time, each from a thread of its own (default 1)",
           kMeasuring)
      ->check(CLI::Range(1u, kMaxThreads));
  addJson(app, command.json);
  addExecution(app, command.common);
  addPerfMap(app, command.common);
}

void CommandLine::addProfile() {
  ProfileCommand &command = profileOptions;
  CLI::App *app = add("profile", "Show where the time of a model's runs goes",
                      "sardonyx profile model.onnx --html profile.html",
                      [this] { return profile(profileOptions); });
  addFeeds(app, command.feeds);
  addMeasure(app, command);
  addChoice<std::string>(
      app, "--by", command.by,
      {{"step", "step"}, {"kernel", "kernel"}, {"form", "form"}},
      "What a row is: step (a call of a kernel, the default), kernel or form",
      kOutputs);
  addValue(app, "--top", command.top, "N", "Rows to show (default 30)",
           kOutputs);
  addValue(app, "--trace", command.trace, "FILE.json",
           "Write all steps of all runs to a JSON file for Perfetto or "
           "chrome://tracing",
           kOutputs);
  addValue(app, "--html", command.html, "FILE.html",
           "Write the whole table to an HTML page", kOutputs);
  addJson(app, command.json);
  addExecution(app, command.common);
}

void CommandLine::addBuild() {
  BuildCommand &command = buildOptions;
  CLI::App *app =
      add("build", "Make a file of a model that runs without Sardonyx",
          "sardonyx build model.onnx -o model.so --cpu x86-64-v4,x86-64-v3",
          [this] { return build(buildOptions); });
  addValue(app, "--output,-o", command.output, "FILE",
           "model.so, model.o, model.a, model.wasm, or a program by any other "
           "name",
           kOutputs)
      ->required();
  addValue(app, "--weights", command.weights, "FILE",
           "File for the weights (default: they go into the output)", kOutputs);
  addValue(app, "--name", command.name, "NAME",
           "What the model is called in C (default: by the file)", kOutputs);
  addFlag(app, "--static", command.isStatic,
          "A program that needs no C library, either", kOutputs);
  addFlag(app, "--quiet,-q", command.quiet, "Say nothing", kOutputs);
  addModel(app, command.common);
  addValue(app, "--dim,-d", command.dims, "NAME=SIZE",
           "Fix an open dimension, as --fix; others stay open", kModel);
  addValue(app, "--cpu", command.cpus, "NAME,...",
           "Processors to make code for, in LLVM's spelling, the best first: "
           "x86-64-v4,x86-64-v3 (default: this one)",
           kMachine);
  addValue(app, "--target", command.targets, "NAME",
           "The machine to build for: x86_64-linux-gnu, aarch64-linux-gnu, "
           "wasm32-wasi (default: this one, or what the file's name says); and "
           "GPUs: nvidia:sm_90a,sm_80, with ,cpu where the processor may "
           "compute what has no kernels there",
           kMachine);
  addValue(app, "--ptxas", command.assembler, "FILE",
           "CUDA's ptxas, which makes code for GPUs, or none (default: as "
           "SARDONYX_PTXAS or CUDA_HOME say, or along PATH)",
           kMachine);
  addTuning(app, command.common);
}

void CommandLine::addCompile() {
  CompileCommand &command = compileOptions;
  CLI::App *app = add("compile", "Show a model after a phase of the compiler",
                      "sardonyx compile model.onnx --to linalg -o model.mlir",
                      [this] { return compile(compileOptions); });
  addValue(app, "--to", command.phase, "PHASE",
           "One of " + listOf(phaseNames()) + " (default linalg)", kOutputs);
  addFlag(app, "--elide-weights", command.elideWeights,
          "Leave out weights of more than some elements", kOutputs);
  addValue(app, "--output,-o", command.output, "FILE",
           "File to write (default: standard output)", kOutputs);
  addModel(app, command.common);
  addMachine(app, command.common);
  addValue(app, "--target", command.common.session.triple, "NAME",
           "The machine to compile for: aarch64-linux-gnu, wasm32-wasi "
           "(default: this one)",
           kMachine);
  addTuning(app, command.common);
  addRemarks(app, command.common);
}

void CommandLine::addPlan() {
  PlanCommand &command = planOptions;
  CLI::App *app = add(
      "plan", "Show how a model's kernels are computed, to pin it by --plan",
      "sardonyx plan model.onnx -o model.plan",
      [this] { return plan(planOptions); });
  addValue(app, "--output,-o", command.output, "FILE",
           "File to write (default: standard output)", kOutputs);
  addFlag(app, "--others", command.others,
          "Show the other plans that kernels for a device can have", kOutputs);
  addFlag(app, "--tune", command.tune,
          "Time all plans that kernels for a device can have, on the device, "
          "and write the fastest",
          kMeasuring);
  addValue(app, "--seconds,-s", command.seconds, "N",
           "How long to measure each round of plans (default 0.5)", kMeasuring);
  addValue(app, "--warmup", command.warmup, "N",
           "Runs before each round (default 2)", kMeasuring);
  addFeeds(app, command.feeds);
  addModel(app, command.common);
  addMachine(app, command.common);
  addCacheUse(app, command.common);
  addTuning(app, command.common);
  addRemarks(app, command.common);
}

void CommandLine::addInspect() {
  InspectCommand &command = inspectOptions;
  CLI::App *app =
      add("inspect", "Show what is in a model and what of it is not supported",
          "sardonyx inspect model.onnx --dim batch=8 --json",
          [this] { return inspect(inspectOptions); });
  addValue(app, "--dim,-d", command.dims, "NAME=SIZE",
           "Size of an open dimension, as --fix", kInputs);
  addJson(app, command.json);
  addModel(app, command.common);
  addMachine(app, command.common);
  addTuning(app, command.common);
}

void CommandLine::addPythonCommands() {
  for (auto [name, summary, example] :
       {std::tuple("quantize", "Write a model with smaller numbers",
                   "sardonyx quantize model.onnx -o small.onnx --data feeds"),
        std::tuple("prune", "Write a model without what it can do without",
                   "sardonyx prune model.onnx -o small.onnx --data feeds "
                   "--max-error 1%")}) {
    // The Python package reads the rest of the line, --help included.
    CLI::App *command = app.add_subcommand(name, summary)->prefix_command();
    command->footer(example);
    command->set_help_flag();
    commands.emplace_back(command, [name = name, command] {
      return runPythonCommand(name, command->remaining());
    });
  }
}

void CommandLine::addCache() {
  CacheCommand &command = cacheOptions;
  CLI::App *app =
      add("cache", "Show what lies in the cache of compiled models",
          "sardonyx cache --limit 2GB", [this] { return cache(cacheOptions); });
  addFlag(app, "--all", command.all,
          "Show all files, not only the 20 that were of use last", kCache);
  addFlag(app, "--clear", command.clear, "Remove all of it", kCache);
  app->add_option_function<uint64_t>(
         "--limit",
         [&command](const uint64_t &bytes) { command.limit = bytes; },
         "Bytes that it may have from now on, as in 500MB or 2GB (at first "
         "4 GiB); what was of use the longest ago goes")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->type_name("SIZE")
      ->group(kCache);
  addCacheDir(app, command.folder);
  addJson(app, command.json);
}

void CommandLine::addCompletion() {
  CLI::App *command =
      add("completion", "Print what completes commands and options in a shell",
          "source <(sardonyx completion bash)", [this] {
            const std::string text = completionFor(shell, app);
            fwrite(text.data(), 1, text.size(), stdout);
            return 0;
          });
  command
      ->add_option_function<std::string>(
          "SHELL",
          [this](const std::string &given) {
            if (given != "bash" && given != "zsh")
              refuse("SHELL", given, {"bash", "zsh"});
            shell = given;
          },
          "bash or zsh")
      ->type_name("")
      ->required();
}

void CommandLine::addManual() {
  CLI::App *command =
      add("manual", "Write the pages of the manual, and the reference",
          "sardonyx manual share/man/man1",
          [this] { return writeManual(manualFolder, app); });
  command->group(""); // for the build
  command->add_option("FOLDER", manualFolder, "Where they go")
      ->type_name("")
      ->required();
}

CommandLine::CommandLine()
    : app("Sardonyx compiles ONNX models and runs them.", "sardonyx") {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "sardonyx " SARDONYX_VERSION,
                       "Show the version and end");
  app.get_help_ptr()->description("Show this and end");
  app.require_subcommand(1);
  addRun();
  addBench();
  addProfile();
  addInspect();
  addBuild();
  addPythonCommands();
  addCompile();
  addPlan();
  addCache();
  addCompletion();
  addManual();
}

int CommandLine::execute() const {
  for (const auto &[command, work] : commands)
    if (command->parsed())
      return work();
  return 2;
}
