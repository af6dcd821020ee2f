//===- Compile.h - The compiler on a model, without running it --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_COMPILE_H
#define SARDONYX_SESSION_COMPILE_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/Session/Session.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// A model: the bytes of one where `bytes` is set, else a file.
struct ModelSource {
  std::string path;
  const void *bytes = nullptr;
  size_t size = 0;
  /// Keeps the bytes; null where the caller does, and only for the call.
  std::shared_ptr<const void> owner;
};

/// The names of the phases that compileToText takes, in order; "asm" and "ptx"
/// are last.
SARDONYX_API std::vector<std::string> phaseNames();

/// The module after a phase, as MLIR text; for "asm" the machine's assembly.
/// onnx-opt goes on from that text to the same code, unless `elideWeights`
/// leaves out weights of more than some elements. `files`, where it is there,
/// gets the paths of the files that hold parts of the model beside its own.
SARDONYX_API Expected<std::string>
compileToText(const ModelSource &model, const std::string &phase,
              const SessionOptions &options = {},
              std::vector<std::string> *files = nullptr,
              bool elideWeights = false);

/// How the model's kernels are computed: a line for each that has a plan, which
/// SessionOptions::plan takes: its fingerprint, the plan, and what a person
/// wants to know of it. Fingerprints are those of this version and of the
/// processor that `options` name. With `withOthers` a line is followed by
/// comments with the other plans by which its kernel can be computed, where its
/// target lists them.
SARDONYX_API Expected<std::string> planModel(const ModelSource &model,
                                             const SessionOptions &options = {},
                                             bool withOthers = false);

/// Where saveOptimized puts weights of at least `minBytes`: in a file of this
/// name beside the model; without a name only what exceeds 2 GiB goes there.
struct WeightsFile {
  std::string name;
  uint64_t minBytes = 1024;
};

/// Writes the model after the phase "onnx", simplified and in the newest
/// operators, as an ONNX file.
SARDONYX_API MaybeError saveOptimized(const ModelSource &model,
                                      const std::string &path,
                                      const SessionOptions &options = {},
                                      const WeightsFile &weights = {});

/// What `sardonyx inspect` shows.
/// What a device does of a model, and what is left to the processor.
struct DeviceReport {
  /// Calls of kernels, and copies of values between the two; what stands in a
  /// loop counts once. Inputs and results are copied besides.
  int64_t kernels = 0, copiesToDevice = 0, copiesToHost = 0;
  /// The nodes that the device has no kernels for, "node 'x' (StringConcat)".
  std::vector<std::string> onProcessor;
};

struct ModelReport {
  ModelMetadata metadata;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<ValueInfo> inputs, outputs;
  /// Operators with their domain and how often they occur.
  std::map<std::string, int64_t> ops;
  /// The model's own functions with their domain, and how many nodes of the
  /// graph and of functions call them; `ops` has what is in them at each call.
  std::map<std::string, int64_t> functions;
  /// Of one run; open dimensions count as `openDim`.
  double flops = 0;
  int64_t weightBytes = 0;
  int64_t weightElements = 0;
  /// One sentence for each thing that the compiler cannot do; empty if it can
  /// compile the model.
  std::vector<std::string> unsupported;
  /// For a device (SessionOptions::device), where it can be compiled for that.
  std::optional<DeviceReport> device;
};

/// `dims` gives sizes of named dimensions for the count of operations; others
/// count as 1.
SARDONYX_API Expected<ModelReport>
inspectModel(const ModelSource &model,
             const std::map<std::string, int64_t> &dims,
             const SessionOptions &options = {});

} // namespace sardonyx

#endif // SARDONYX_SESSION_COMPILE_H
