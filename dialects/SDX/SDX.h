//===- SDX.h - Kernel-level operations --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sdx dialect: dense operations on packed operands, kernels and the calls
// of them. Everything about it is included from here.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_SDX_H
#define SARDONYX_DIALECTS_SDX_SDX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx::sdx {

struct Winograd; // Winograd.h

/// Values of k whose numbers of 21 bits share eight bytes.
inline constexpr int64_t kTriple = 3;
/// Filters, and values of K, in a block of convolution weights that are sums of
/// bf16, and the bf16 of a number.
inline constexpr int64_t kPartBlock = 32, kWeightParts = 2;
/// The bits of 2^-50. Of rows and columns of nothing but numbers below it parts
/// would be lost: tile registers take subnormal ones as zero.
inline constexpr int64_t kSmallestSplit = int64_t(127 - 50) << 23;

/// A number of operations: `factor` times sizes of shaped values.
struct DenseWork {
  int64_t factor = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> sizes = {};
  void multiplyAllDims(mlir::Value shaped);
};

} // namespace sardonyx::sdx

#include "dialects/SDX/SDXDialect.h.inc"
#include "dialects/SDX/SDXEnums.h.inc"
#include "dialects/SDX/SDXInterfaces.h.inc"
#include "dialects/SDX/SDXTargetEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/SDX/SDXAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/SDX/SDXOps.h.inc"

namespace sardonyx {
namespace sdx {

/// Columns in a panel of a packed right-hand side.
inline constexpr int64_t kPanelWidth = 32;
/// Of fewer rows sums of weights cost more than the product that Strassen's
/// algorithm saves.
inline constexpr int64_t kFewestStrassenRows = 48;
/// Output channels in a block of packed convolution weights.
inline constexpr int64_t kConvBlockRows = 8;

/// Names of this dialect's discardable attributes.
inline constexpr llvm::StringLiteral kKernelAttr = "sdx.kernel";
inline constexpr llvm::StringLiteral kInputAttr = "sdx.input";
inline constexpr llvm::StringLiteral kConstantAttr = "sdx.constant";
inline constexpr llvm::StringLiteral kPersistentAttr = "sdx.persistent";
inline constexpr llvm::StringLiteral kSourceAttr = "sdx.source";
inline constexpr llvm::StringLiteral kResultsAttr = "sdx.results";
inline constexpr llvm::StringLiteral kStringsAttr = "sdx.strings";
inline constexpr llvm::StringLiteral kProfileAttr = "sdx.profile";
inline constexpr llvm::StringLiteral kTargetAttr = "sdx.target";

/// The machine that the code of `op` is for: what it or the nearest operation
/// around it says; null where none does.
TargetAttr getTarget(mlir::Operation *op);
/// The same, and what passes assume where nothing is said.
TargetAttr getTargetOrDefault(mlir::Operation *op);
/// Says that the code of `op` is for `target`.
void setTarget(mlir::Operation *op, TargetAttr target);

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
