//===- Compiler.h - From a model to an artifact -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_COMPILER_H
#define SARDONYX_LIB_SESSION_COMPILE_COMPILER_H

#include "dialects/SDX/SDX.h"
#include "lib/Session/Compile/DiagnosticLog.h"
#include "lib/Session/Custom/CustomInference.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Pipelines/Pipelines.h"
#include "sardonyx/Session/Compile.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class PassManager;
} // namespace mlir

namespace sardonyx {

struct TargetOptions;

/// A context for one compilation, whose diagnostics are kept.
class Compilation {
public:
  /// `stop`, if there is one, is looked at before each pass.
  explicit Compilation(const SessionOptions &options,
                       const std::atomic<bool> *stop = nullptr);
  ~Compilation();

  mlir::MLIRContext &context() { return *mlirContext; }

  /// Imports the model. Null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> import(const ModelSource &model);
  /// Imports the model, reads its signature, fixes the sizes and values that
  /// the options name, and says which machine the code is for. `asDeclared`:
  /// see readSignature().
  Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  importFixed(const ModelSource &model, Artifact &signature,
              bool asDeclared = true);

  /// Has a module's tensors be observed that the options name.
  MaybeError observe(mlir::ModuleOp module);

  /// What went wrong so far; `otherwise` tells what failed without a word.
  Error error(const std::string &otherwise) const;
  /// All of it, one sentence each.
  std::vector<std::string> errors() const { return log.sentences(); }
  /// What the importer says that the model has wrong and need not be refused
  /// for.
  const std::vector<std::string> &warnings() const { return log.warnings(); }

  /// Why LLVM has made no code of `module`, of the llvm dialect, for `target`.
  Error codegenError(llvm::Error error, mlir::ModuleOp module,
                     const ModelSource &model,
                     const TargetOptions &target) const;

  /// Whether the module is not what the passes should have made it.
  bool stopped() const { return stop && stop->load(); }

  /// Runs phases with the options of the session, as runPhases(). They fail
  /// soon after `stop` becomes true.
  mlir::LogicalResult run(mlir::ModuleOp module, Phase from, Phase to,
                          PhaseObserver observer = nullptr);

  TargetOptions target() const;
  PipelineOptions pipeline() const;
  /// What passes are to know of the machine, with these options.
  Expected<sdx::TargetAttrInterface> targetAttr();

  /// The calls of custom operators in the code that was made.
  const std::vector<CustomCall> &customCalls() const {
    return customInference->calls();
  }

  /// Tells the options' `remark` what is slow in `module` after Phase::Kernels.
  void tellRemarks(mlir::ModuleOp module) const;

  std::vector<Timing> timings;
  /// Adds a timing, as an observer of phases.
  void record(llvm::StringRef step, double seconds);

private:
  const SessionOptions &options;
  const std::atomic<bool> *stop;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  /// The context's.
  CustomInference *customInference;
  DiagnosticLog log;
};

/// How compileModel() goes where the code is not for this process.
struct AheadOfTime {
  /// Before the names that others see.
  std::string prefix;
  /// Objects with `sdx_init` for this machine, without the prefix; empty where
  /// the model needs none, and where it runs on a device: there it is among the
  /// objects that runs need, and is called when the model is opened.
  std::vector<std::string> initObjects;
};

/// Compiles a model all the way, or fails soon after `stop` becomes true. With
/// `mayDefer`, a model that the compiler cannot do, and of whose inputs it does
/// not know all ranks, becomes an artifact without code.
Expected<Artifact> compileModel(const ModelSource &model,
                                const SessionOptions &options,
                                std::vector<Timing> &timings, bool mayDefer,
                                const std::atomic<bool> *stop = nullptr,
                                AheadOfTime *ahead = nullptr);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_COMPILER_H
