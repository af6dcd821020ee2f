//===- SplitConvs.h - What passes that split convolutions share -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_LAYOUT_SPLITCONVS_H
#define SARDONYX_LIB_TARGETS_CPU_LAYOUT_SPLITCONVS_H

#include "dialects/SDX/SDX.h"

#include "mlir/IR/PatternMatch.h"

namespace sardonyx::cpu {

/// Whether Winograd's algorithm may compute a convolution over so many
/// dimensions, or slices or phases of it: of f32 that may round, without groups
/// and negative pads, of sizes that are known but for the number of images.
inline bool mayTransform(sdx::ConvOp op, int64_t dims) {
  if (!op.hasPureTensorSemantics() || op.getGroup() != 1 || op.getExact() ||
      op.getNumSpatialDims() != dims)
    return false;
  for (mlir::Type type : op->getOperandTypes())
    if (!mlir::getElementTypeOrSelf(type).isF32() ||
        mlir::ShapedType::isDynamicShape(
            mlir::cast<mlir::RankedTensorType>(type).getShape().drop_front()))
      return false;
  auto isNegative = [](int64_t pad) { return pad < 0; };
  return llvm::none_of(op.getPadsBegin(), isNegative) &&
         llvm::none_of(op.getPadsEnd(), isNegative);
}

/// Has `split` replace each convolution in `root` that `maySplit`.
inline void
splitConvs(mlir::Operation *root,
           llvm::function_ref<bool(sdx::ConvOp)> maySplit,
           llvm::function_ref<void(mlir::IRRewriter &, sdx::ConvOp)> split) {
  llvm::SmallVector<sdx::ConvOp> convs;
  root->walk([&](sdx::ConvOp op) {
    if (maySplit(op))
      convs.push_back(op);
  });
  mlir::IRRewriter rewriter(root->getContext());
  for (sdx::ConvOp op : convs) {
    rewriter.setInsertionPoint(op);
    split(rewriter, op);
  }
}

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_LAYOUT_SPLITCONVS_H
