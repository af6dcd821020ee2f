//===- Target.h - What makes code for a machine -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that the phases and sessions know of a target. A target is a dialect,
// whose attribute `sdx.target` of a module is, and an interface of that
// dialect, which says how code for such a machine is made. A folder of
// lib/Targets is one; test/Targets/Toy is one from outside of the tree.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_TARGET_H
#define SARDONYX_TARGETS_TARGET_H

#include "dialects/SDX/SDX.h"
#include "sardonyx/Model/Image.h"
#include "sardonyx/Numerics.h"
#include "sardonyx/Objects/Objects.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace sardonyx {

/// What code must do without on a machine that has it.
struct MachineLimits {
  /// Tile registers, whatever they multiply.
  bool withoutTiles = false;
  /// Products of f32 as sums of products of shorter floats.
  bool withoutSplitFloats = false;
};

/// How exact the results of layout passes' work are to be.
struct LayoutOptions {
  Numerics numerics = Numerics::F32;
  Precision precision = Precision::F32;
};

/// How code for a kind of machine is made: an interface of the dialect that
/// the machine's attribute belongs to.
class TargetInterface : public mlir::DialectInterface::Base<TargetInterface> {
public:
  explicit TargetInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Passes on a module of the dispatch phase, before what depends on constants
  /// is hoisted and kernels are formed: how operands lie in memory, and which
  /// algorithms compute what. Dense operations come unpacked (sdx.matmul,
  /// sdx.conv, ...), on tensors; what is left of them must be something that
  /// the codegen passes take.
  virtual void buildLayoutPasses(mlir::OpPassManager &module,
                                 const LayoutOptions &options) const {}

  /// Passes on a module of the dispatch phase whose kernels have been formed:
  /// which of them are better one. The host program calls them on tensors.
  virtual void buildFusionPasses(mlir::OpPassManager &module) const {}

  /// Passes on a module at the end of the kernels phase: kernels are functions
  /// with `sdx.kernel`, which work on tensors between memrefs, and the host
  /// program calls them on buffers.
  virtual void buildPlanPasses(mlir::OpPassManager &module) const {}

  /// The attribute of a kernel that says how it is computed, which the plan
  /// passes set where it is not there; empty: kernels have no plans.
  virtual llvm::StringRef getPlanName() const { return ""; }

  /// All plans by which `kernel`, which has one, can be computed, for a search
  /// of the fastest one.
  virtual void listPlans(mlir::func::FuncOp kernel,
                         llvm::SmallVectorImpl<mlir::Attribute> &plans) const {}

  /// Passes on the module that the plan passes left, which turn kernels into
  /// loops on memrefs, or into what `emit` takes.
  virtual void buildCodegenPasses(mlir::OpPassManager &module) const = 0;

  /// Makes images of the kernels of `module`, after the codegen passes. The
  /// caller leaves declarations of theirs, which the host program calls with
  /// memrefs as their parts (a pointer twice, an offset, sizes, strides) and
  /// scalars as they are, and which must be in what `TargetInfo::load` gives.
  /// Without images kernels are compiled with the host program. Where images
  /// name kernels, the functions stay and start these (sdx.launch).
  virtual mlir::LogicalResult emit(mlir::ModuleOp module,
                                   llvm::SmallVectorImpl<Image> &images) const {
    return mlir::success();
  }

  /// `machine`, an attribute of this target, without what `limits` take away.
  virtual sdx::TargetAttrInterface limit(sdx::TargetAttrInterface machine,
                                         const MachineLimits &limits) const {
    return machine;
  }

  /// The one that makes code for what `sdx.target` of `op` says; null, and an
  /// error there, where it says nothing, or nothing that can be made.
  static const TargetInterface *find(mlir::Operation *op);
};

/// `machine` without what `limits` take away, as its target has it.
sdx::TargetAttrInterface limitMachine(sdx::TargetAttrInterface machine,
                                      const MachineLimits &limits);

/// How images of text become machine code.
struct AssembleOptions {
  /// The assembler's file; empty: the one that is found, "none": there is none.
  std::string tool;
  /// The version of CUDA, as drivers tell it (12040), that is to load the code;
  /// an assembler of a later major version is not used. 0: any.
  int driverVersion = 0;
};

/// A target that a program is linked with.
struct TargetInfo {
  llvm::StringLiteral name;
  /// Registers its dialects and its TargetInterface.
  void (*registerTarget)(mlir::DialectRegistry &registry);
  /// Registers its passes for onnx-opt.
  void (*registerPasses)();
  /// The machine to compile for, of an attribute that the context may not yet
  /// know the dialect of; null where the options name a device that there is no
  /// code for.
  sdx::TargetAttrInterface (*describe)(mlir::MLIRContext *context,
                                       const TargetOptions &options);
  /// An ELF object of the functions of an image, for this process.
  llvm::Expected<std::string> (*load)(const Image &image) = nullptr;
  /// Machine code for the device that an image of text was made for, with the
  /// same kernels; nothing where this machine has no assembler for it.
  llvm::Expected<std::optional<Image>> (*assemble)(
      const Image &image, const AssembleOptions &options) = nullptr;
};

/// The targets that this program is linked with, the one that sessions compile
/// for first. The library SardonyxAllTargets defines it, or a program that
/// brings targets of its own.
llvm::ArrayRef<TargetInfo> getLinkedTargets();

/// Registers all of them.
void registerLinkedTargets(mlir::DialectRegistry &registry);

} // namespace sardonyx

#endif // SARDONYX_TARGETS_TARGET_H
