//===- SDX.h - Kernel-level operations --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sdx dialect: dense operations, kernels and the calls of them. Everything
// about it is included from here.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_SDX_H
#define SARDONYX_DIALECTS_SDX_SDX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/SCF/IR/DeviceMappingInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx::sdx {

/// A number of operations: `factor` times sizes of shaped values.
struct DenseWork {
  int64_t factor = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> sizes = {};
  void multiplyAllDims(mlir::Value shaped);
};

/// How much a kernel may hold.
struct FusionLimits {
  /// More operations compile slowly and gain nothing.
  size_t operations = 32;
  /// Nor do more operations on elements: a code generator's time for a run of
  /// instructions grows faster than their number.
  size_t bodyOperations = 256;
  /// More tensors need more registers for their addresses than there are, and
  /// passing them takes longer than reading them once more.
  size_t operands = 32;
};

/// What decides whether a target has a kernel for attention: the type of
/// queries, keys and values, whether keys and values are bytes in memory
/// instead, and sizes, which may be open. `queries` are those that share keys.
struct AttentionSizes {
  mlir::Type type;
  bool areBytes = false;
  int64_t queries, keys, depth, columns;
};

} // namespace sardonyx::sdx

#include "dialects/SDX/SDXAttrInterfaces.h.inc"
#include "dialects/SDX/SDXDialect.h.inc"
#include "dialects/SDX/SDXEnums.h.inc"
#include "dialects/SDX/SDXInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/SDX/SDXAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/SDX/SDXOps.h.inc"

namespace sardonyx {
namespace sdx {

/// Names of this dialect's discardable attributes.
inline constexpr llvm::StringLiteral kKernelAttr = "sdx.kernel";
/// Of an argument of a kernel: it and its reciprocal are normal numbers.
inline constexpr llvm::StringLiteral kNormalAttr = "sdx.normal";
inline constexpr llvm::StringLiteral kInputAttr = "sdx.input";
inline constexpr llvm::StringLiteral kConstantAttr = "sdx.constant";
inline constexpr llvm::StringLiteral kPersistentAttr = "sdx.persistent";
inline constexpr llvm::StringLiteral kSourceAttr = "sdx.source";
inline constexpr llvm::StringLiteral kResultsAttr = "sdx.results";
inline constexpr llvm::StringLiteral kStringsAttr = "sdx.strings";
inline constexpr llvm::StringLiteral kProfileAttr = "sdx.profile";
inline constexpr llvm::StringLiteral kObservationsAttr = "sdx.observations";
inline constexpr llvm::StringLiteral kTargetAttr = "sdx.target";
inline constexpr llvm::StringLiteral kImagesAttr = "sdx.images";

/// The machine that the code of `op` is for: what it or the nearest operation
/// around it says; null where none does.
TargetAttrInterface getTarget(mlir::Operation *op);
/// Says that the code of `op` is for `target`.
void setTarget(mlir::Operation *op, TargetAttrInterface target);
/// How much a kernel of `op` may hold, where no target says less or more.
FusionLimits getFusionLimits(mlir::Operation *op);

/// Whether `op` sees a value for nobody's result: what an operation is made
/// part of is decided as if there were no such readers.
inline bool isObservation(mlir::Operation *op) {
  return mlir::isa<ObserveOp>(op);
}
/// Whether `value` has one use besides those of observations.
bool hasOneReader(mlir::Value value);
/// The number of a float type for the runtime (RuntimeABI.h), -1 for others.
int64_t getObservedType(mlir::Type type);

/// What a location says of the node that an operation comes from, as the
/// beginning of a sentence: the text in a fused location. Empty if nothing.
std::string describeOrigin(mlir::Location loc);

/// True if elements of `type` follow each other without gaps in row-major
/// order, from any offset.
bool isContiguous(mlir::MemRefType type);

} // namespace sdx

/// Lets one-shot bufferization handle the sdx operations.
void registerSDXBufferization(mlir::DialectRegistry &registry);

} // namespace sardonyx

#endif // SARDONYX_DIALECTS_SDX_SDX_H
