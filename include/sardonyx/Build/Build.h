//===- Build.h - Models as files that need nothing --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   auto report = sardonyx::build({"model.onnx"}, "model.so");
//
// makes a file that runs the model without Sardonyx: no compiler, no
// interpreter, nothing but the C library. docs/howto/AheadOfTime.md tells more.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BUILD_BUILD_H
#define SARDONYX_BUILD_BUILD_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Session/Session.h"
#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

enum class ArtifactForm {
  SharedLibrary,
  Object,
  Archive,
  Program,
  /// WebAssembly, with a module of JavaScript that loads it.
  WebModule
};

struct BuildOptions {
  /// How the model is compiled. `cpu` is not looked at; `intraOpThreads` is how
  /// many threads a run uses unless it is told otherwise; a file for 1 cannot
  /// start any.
  SessionOptions session;
  /// The processors to make code for, in LLVM's spelling, the best first;
  /// empty: this machine's. When the file is loaded, the first that fits is
  /// taken.
  std::vector<std::string> cpus;
  /// The GPUs of NVIDIA's to make code for, "sm_90a"; empty: none, the
  /// processor computes all. When the file is loaded, the code for the very
  /// device is taken, else PTX of the newest that it can run: that of the
  /// oldest here always goes along. `session.device.mayUseCpu` says whether the
  /// processor may compute what has no kernels.
  std::vector<std::string> devices;
  /// CUDA's ptxas, which makes machine code for these devices; empty: the one
  /// that is found, "none": none, and the driver compiles PTX when the file is
  /// loaded.
  std::string assembler;
  /// What the file is called in C: an identifier. Empty: made from the output.
  std::string name;
  /// Where weights go instead of into the file; empty: into it.
  std::string weightsFile;
  /// A program that needs no C library, either.
  bool isStatic = false;
  /// Files that nothing is written over, beside those of the model.
  std::vector<std::string> inputs;
};

struct BuildReport {
  std::vector<Timing> timings;
  /// All files that were written.
  std::vector<std::string> files;
  uint64_t fileBytes = 0, weightBytes = 0;
};

/// Has a model be built for a machine ("aarch64-linux-gnu"), or, as
/// "nvidia:sm_90a,sm_80", for GPUs of NVIDIA's; with ",cpu" at the end the
/// processor may compute what has no kernels there.
SARDONYX_API MaybeError setTarget(const std::string &target,
                                  BuildOptions &options);

/// The form that a file's name asks for: .so (or .so.1), .o, .a, .wasm, or else
/// a program.
SARDONYX_API ArtifactForm formOf(const std::string &output);

/// Builds a model. Beside a library or object goes a header for C and one for
/// C++, beside WebAssembly a module of JavaScript (.mjs) and its types for
/// TypeScript (.d.mts). All files take their places when they are whole; where
/// it fails, none does. It fails by a sentence where a file would be one of the
/// model's own, where its name says that it is of another system or kind
/// (.dll, .exe, .onnx), and for machines whose C library is not glibc.
SARDONYX_API Expected<BuildReport> build(const ModelSource &model,
                                         const std::string &output,
                                         const BuildOptions &options = {});

} // namespace sardonyx

#endif // SARDONYX_BUILD_BUILD_H
