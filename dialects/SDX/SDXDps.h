//===- SDXDps.h - What sdx ops in destination style share -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_SDXDPS_H
#define SARDONYX_DIALECTS_SDX_SDXDPS_H

#include "dialects/SDX/SDX.h"

namespace sardonyx::sdx {

using Effects = llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance>;

/// Buffers among the inputs are read, buffers among the outs are written (and
/// read if the operation accumulates). On tensors there is no effect.
void getDpsEffects(mlir::DestinationStyleOpInterface op, bool accumulates,
                   Effects &effects);

/// The shape of each result is that of its init.
llvm::LogicalResult reifyFromInits(mlir::DestinationStyleOpInterface op,
                                   mlir::OpBuilder &b,
                                   mlir::ReifiedRankedShapedTypeDims &shapes);

/// The operation has one result for each tensor among its outs, of its type,
/// and does not mix tensors and memrefs.
llvm::LogicalResult verifyDps(mlir::Operation *op, mlir::OperandRange inits,
                              mlir::TypeRange results);

/// Whether two sizes are equal, as far as is known.
inline bool mayEqual(int64_t a, int64_t b) {
  return mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b) ||
         a == b;
}

/// True unless `columns` are known not to fit into `blocks` of `width`.
inline bool mayFit(int64_t columns, int64_t blocks, int64_t width) {
  return mlir::ShapedType::isDynamic(columns) ||
         mlir::ShapedType::isDynamic(blocks) || columns <= blocks * width;
}

/// The type of an operation's result that is written over `init`, if it has
/// one.
llvm::SmallVector<mlir::Type, 1> resultTypes(mlir::Value init);

/// An attribute with an element for each spatial dimension.
struct WindowAttribute {
  llvm::StringRef name;
  llvm::ArrayRef<int64_t> values;
  int64_t least;
};

/// Each attribute has an element for each of `spatial` dimensions, at least as
/// large as it must be.
llvm::LogicalResult verifyWindow(mlir::Operation *op, size_t spatial,
                                 llvm::ArrayRef<WindowAttribute> attributes);

/// The sizes of `init` are what windows of a convolution give; sizes that are
/// not known fit.
struct ConvWindow {
  llvm::ArrayRef<int64_t> kernel, strides, dilations, padsBegin, padsEnd;
};
llvm::LogicalResult verifyConvSizes(mlir::Operation *op, mlir::ShapedType input,
                                    mlir::ShapedType init,
                                    const ConvWindow &window, int64_t group);

/// "conv 3x3 stride 2x2 dilation 2x2 groups 4".
std::string describeConv(const ConvWindow &window, int64_t group);
/// The kernel and the strides of a window, as "max pool 3x3 stride 2x2".
std::string describeWindow(llvm::StringRef kind, llvm::ArrayRef<int64_t> kernel,
                           llvm::ArrayRef<int64_t> strides);
/// "3x3".
std::string describeSizes(llvm::ArrayRef<int64_t> sizes);
/// The multiplications and additions of a convolution.
DenseWork countConvFlops(mlir::Value input, mlir::Value init,
                         llvm::ArrayRef<int64_t> kernel, int64_t group);

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_SDXDPS_H
