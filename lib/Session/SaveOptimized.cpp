//===- SaveOptimized.cpp - The simplified model as an ONNX file -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompileStoppably.h"
#include "Compiler.h"
#include "Options.h"
#include "mlir/Pass/PassManager.h"
#include "sardonyx/Exporter/Exporter.h"
#include "sardonyx/Pipelines/Pipelines.h"

using namespace sardonyx;
using namespace mlir;

static MaybeError save(const ModelSource &model, const std::string &path,
                       const SessionOptions &options,
                       const WeightsFile &weights,
                       const std::atomic<bool> *stop) {
  Compilation compilation(options, stop);
  Artifact signature;
  Expected<OwningOpRef<ModuleOp>> imported =
      compilation.importFixed(model, signature);
  if (!imported)
    return imported.error();
  OwningOpRef<ModuleOp> module = std::move(*imported);
  auto configure = [&](PassManager &passes) {
    compilation.watch(passes);
    return success();
  };
  if (failed(runPhases(*module, Phase::Import, Phase::Onnx,
                       compilation.pipeline(), nullptr, configure)))
    return compilation.error("the compiler failed before phase 'onnx'");
  if (compilation.stopped())
    return Error(ErrorKind::Failed, "saving the model was ended");
  ExportOptions exporting;
  exporting.externalData = !weights.name.empty();
  exporting.externalThreshold = weights.minBytes;
  exporting.externalFile = weights.name;
  if (failed(exportOnnxFile(*module, path, exporting))) {
    std::string text = "the model could not be written to '" + path + "'";
    for (const std::string &sentence : compilation.errors())
      text += ": " + sentence;
    return Error(ErrorKind::Failed, text);
  }
  return std::nullopt;
}

MaybeError sardonyx::saveOptimized(const ModelSource &model,
                                   const std::string &path,
                                   const SessionOptions &options,
                                   const WeightsFile &weights) {
  if (MaybeError error = checkOptions(options))
    return error;
  if (weights.name.find('/') != std::string::npos || weights.name == "..")
    return Error(ErrorKind::InvalidArgument,
                 "the file for the weights of the optimised model must be a "
                 "name in the model's folder, got '" +
                     weights.name + "'");
  LoadScope loading;
  if (loading.error())
    return loading.error();
  MaybeError result;
  auto work = [&](const std::atomic<bool> *stop) {
    result = save(model, path, options, weights, stop);
  };
  if (MaybeError error = runStoppably(options, work))
    return error;
  return result;
}
