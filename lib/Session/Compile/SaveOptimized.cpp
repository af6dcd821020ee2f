//===- SaveOptimized.cpp - The simplified model as an ONNX file -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/Compiler.h"
#include "lib/Session/Compile/Options.h"
#include "mlir/Pass/PassManager.h"
#include "sardonyx/Exporter/Exporter.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Session/NewFiles.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

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
  if (failed(compilation.run(*module, Phase::Import, Phase::Onnx)))
    return compilation.error("the compiler failed before phase 'onnx'");
  if (compilation.stopped())
    return Error(ErrorKind::Failed, "saving the model was ended");
  ExportOptions exporting;
  exporting.externalData = !weights.name.empty();
  exporting.externalThreshold = weights.minBytes;
  exporting.externalFile = weights.name;
  exporting.domains = {"com.microsoft"};
  NewFiles files;
  auto written = files.add(path);
  if (!written)
    return written.error();
  const std::string folder = llvm::sys::path::parent_path(*written).str();
  // What the exporter says is of files, not of operators.
  std::string said;
  auto note = [&](Diagnostic &diagnostic) {
    said += ": " + diagnostic.str();
    return success();
  };
  ScopedDiagnosticHandler handler(module->getContext(), note);
  if (failed(exportOnnxFile(*module, *written, exporting))) {
    for (size_t at; (at = said.find(folder + "/")) != std::string::npos;)
      said.erase(at, folder.size() + 1);
    return Error(ErrorKind::Failed,
                 "the model could not be written to '" + path + "'" + said);
  }
  // Large tensors lie in a file beside.
  const std::string name = weights.name.empty()
                               ? llvm::sys::path::filename(path).str() + ".data"
                               : weights.name;
  if (llvm::sys::fs::exists(folder + "/" + name)) {
    llvm::SmallString<256> beside(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(beside, name);
    if (auto data = files.add(beside.str().str()); !data)
      return data.error();
  }
  return files.commit();
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
