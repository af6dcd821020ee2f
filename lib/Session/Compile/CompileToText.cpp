//===- CompileToText.cpp - The module after a phase, as text --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/Compiler.h"
#include "lib/Session/Compile/Images.h"
#include "lib/Session/Compile/Options.h"
#include "lib/Session/Compile/Signature.h"
#include "mlir/IR/OperationSupport.h"
#include "sardonyx/Objects/Objects.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Targets/Plans.h"
#include "sardonyx/Targets/Target.h"

using namespace sardonyx;
using namespace mlir;

/// What printImages() makes of a module after Phase::Codegen.
static constexpr llvm::StringLiteral kPtx = "ptx";

std::vector<std::string> sardonyx::phaseNames() {
  std::vector<std::string> names;
  for (const PhaseInfo &info : getPhases())
    names.push_back(info.name.str());
  names.push_back("asm");
  names.push_back(kPtx.str());
  return names;
}

/// The code for a device, as text.
static Expected<std::string> printImages(ModuleOp module) {
  std::vector<Image> images;
  takeImages(module, images);
  std::string text;
  for (const Image &image : images)
    text += image.bytes;
  if (text.empty())
    return Error(ErrorKind::InvalidArgument,
                 "the model has no code for a device");
  return text;
}

/// What printPlans() makes of a module after Phase::Kernels, without and with
/// the other plans of a kernel.
static constexpr llvm::StringLiteral kPlans = "plans", kAllPlans = "all plans";

static Expected<std::string>
compileTo(const ModelSource &model, const std::string &phase,
          const SessionOptions &options, std::vector<std::string> *files,
          bool elideWeights, const std::atomic<bool> *stop) {
  const bool assembly = phase == "asm";
  const bool isPlans = phase == kPlans || phase == kAllPlans;
  std::optional<Phase> last = assembly  ? std::optional<Phase>(Phase::Llvm)
                              : isPlans ? std::optional<Phase>(Phase::Kernels)
                              : phase == kPtx
                                  ? std::optional<Phase>(Phase::Codegen)
                                  : parsePhase(phase);
  if (!last)
    return Error(ErrorKind::InvalidArgument,
                 "there is no phase '" + phase + "'; the phases are " +
                     listPhaseNames() + ", asm, ptx");
  Compilation compilation(options, stop);
  Artifact signature;
  Expected<OwningOpRef<ModuleOp>> imported =
      compilation.importFixed(model, signature);
  if (!imported)
    return imported.error();
  OwningOpRef<ModuleOp> module = std::move(*imported);
  if (files) {
    if (MaybeError error = readSourceFiles(
            *module, model.bytes ? std::string() : model.path, signature))
      return *error;
    *files = pathsOf(signature.files);
  }
  if (*last != Phase::Import &&
      failed(compilation.run(*module, Phase::Import, *last,
                             [&](StringRef done, double seconds) {
                               compilation.record(done, seconds);
                               if (done == getPhaseName(Phase::Kernels))
                                 compilation.tellRemarks(*module);
                             })))
    return compilation.error("the compiler failed before phase '" + phase +
                             "'");
  if (compilation.stopped())
    return Error(ErrorKind::Failed, "compiling the model was stopped");
  if (assembly) {
    auto text = compileToAssembly(*module, compilation.target());
    if (!text)
      return compilation.codegenError(text.takeError(), *module, model,
                                      compilation.target());
    return std::move(*text);
  }
  if (phase == kPtx)
    return printImages(*module);
  if (isPlans) {
    const TargetInterface *target = TargetInterface::find(*module);
    if (!target)
      return std::string();
    auto listOthers = [&](func::FuncOp kernel,
                          SmallVectorImpl<Attribute> &plans) {
      target->listPlans(kernel, plans);
    };
    if (phase == kAllPlans)
      return printPlans(*module, target->getPlanName(), listOthers);
    return printPlans(*module, target->getPlanName());
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (elideWeights)
    flags.elideLargeElementsAttrs(16).elideLargeResourceString(64);
  module->print(stream, flags);
  return text;
}

/// compileTo() where it can be stopped.
static Expected<std::string>
compileToTextStoppably(const ModelSource &model, const std::string &phase,
                       const SessionOptions &options,
                       std::vector<std::string> *files, bool elideWeights) {
  if (MaybeError error = checkOptions(options))
    return *error;
  LoadScope loading;
  if (loading.error())
    return *loading.error();
  std::optional<Expected<std::string>> text;
  auto work = [&](const std::atomic<bool> *stop) {
    text.emplace(compileTo(model, phase, options, files, elideWeights, stop));
  };
  if (MaybeError error = runStoppably(options, work))
    return *error;
  return std::move(*text);
}

Expected<std::string> sardonyx::compileToText(const ModelSource &model,
                                              const std::string &phase,
                                              const SessionOptions &options,
                                              std::vector<std::string> *files,
                                              bool elideWeights) {
  // They are no phases.
  const bool isPlans = phase == kPlans || phase == kAllPlans;
  return compileToTextStoppably(model, isPlans ? "plan" : phase, options, files,
                                elideWeights);
}

Expected<std::string> sardonyx::planModel(const ModelSource &model,
                                          const SessionOptions &options,
                                          bool withOthers) {
  return compileToTextStoppably(model, (withOthers ? kAllPlans : kPlans).str(),
                                options, nullptr, false);
}
