//===- Pipelines.h - The phases of the compiler -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The way down from the onnx dialect to the llvm dialect, as named phases. One
// enum, one table: a module may be stopped after any phase, printed, edited and
// resumed from there.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PIPELINES_PIPELINES_H
#define SARDONYX_PIPELINES_PIPELINES_H

#include "sardonyx/Numerics.h"
#include "sardonyx/Transforms/Observe.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace sardonyx {

/// The phases, in order. The value names the state of the module *after* it.
enum class Phase {
  /// As imported: the onnx dialect, one op per ONNX op.
  Import,
  /// Shapes inferred, functions expanded, graph simplified; still onnx.
  Onnx,
  /// linalg, tensor, arith, math and scf on tensors.
  Linalg,
  /// Kernels outlined and shared; a host program that calls them.
  Dispatch,
  /// The host program on buffers, its memory planned.
  Kernels,
  /// Kernels as loops over vectors.
  Codegen,
  /// The llvm dialect.
  Llvm,
};

/// How a module is compiled, whatever the machine, which is an attribute of the
/// module: `sdx.target`.
struct PipelineOptions {
  /// By which algorithms products and convolutions of f32 may go.
  Numerics numerics = Numerics::F32;
  /// What their operands may be rounded to.
  Precision precision = Precision::F32;
  /// Whether code checks each index before it accesses memory.
  bool checkBounds = false;
  /// Whether the host program records its steps.
  bool profile = false;
  /// Whether to tell which accesses nothing keeps in bounds.
  bool verifyIndices = false;
  /// Whether to verify the loops of kernels after each pass, not only after a
  /// phase: a fifth of the time that compiling takes.
  bool verifiesEachPass = true;
};

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name;
  llvm::StringLiteral summary;
  void (*build)(mlir::OpPassManager &, const PipelineOptions &);
};

/// All phases in order.
llvm::ArrayRef<PhaseInfo> getPhases();
/// The phase called `name`, or none.
std::optional<Phase> parsePhase(llvm::StringRef name);
llvm::StringRef getPhaseName(Phase phase);
/// "import, onnx, linalg, ..." for messages.
std::string listPhaseNames();

/// Called after each phase with its name and the seconds that it took.
using PhaseObserver = llvm::function_ref<void(llvm::StringRef, double)>;

/// Takes `module` from the state after `from` to the state after `to`.
/// `configure` may add instrumentation to each phase's pass manager. Problems
/// are reported through the context's diagnostics.
mlir::LogicalResult runPhases(
    mlir::ModuleOp module, Phase from, Phase to, const PipelineOptions &options,
    PhaseObserver observer = nullptr,
    llvm::function_ref<mlir::LogicalResult(mlir::PassManager &)> configure =
        nullptr);

/// What Phase::Onnx begins with: bodies of the model's functions come where
/// they are called.
mlir::LogicalResult inlineFunctions(mlir::ModuleOp module);

/// Registers each phase as a pipeline `sardonyx-phase-NAME` for onnx-opt.
void registerPipelines();

/// The dialects, interface models and translations that the phases need, and no
/// others: what links this alone does not hold the whole of MLIR. Targets
/// register their own (Targets/Target.h).
void registerCompilerDialects(mlir::DialectRegistry &registry);

} // namespace sardonyx

#endif // SARDONYX_PIPELINES_PIPELINES_H
