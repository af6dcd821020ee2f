//===- Regions.h - What If, Loop and Scan share -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTROLFLOW_REGIONS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTROLFLOW_REGIONS_H

#include "Support/Lowering.h"

namespace sardonyx {

/// The type that holds values of both types; null when ranks or element types
/// differ.
mlir::RankedTensorType joinTypes(mlir::Type x, mlir::Type y);

/// What the graph in `region` yields.
mlir::ValueRange getYielded(mlir::Region &region);

/// The converted types of original values; fails when there is none.
mlir::FailureOr<llvm::SmallVector<mlir::Type>>
convertTypes(mlir::ValueRange values);

/// Moves the graph in `region` to the insertion point, its arguments being
/// `arguments` (converted), and returns what it yields as values of `types`.
template <typename OpT>
mlir::FailureOr<mlir::ValueRange>
inlineGraph(Lowering<OpT> &b, mlir::Region &region, mlir::ValueRange arguments,
            mlir::TypeRange types) {
  auto scope = mlir::scf::ExecuteRegionOp::create(b, b.getLoc(), types);
  b.rewriter.inlineRegionBefore(region, scope.getRegion(),
                                scope.getRegion().end());
  mlir::Block &block = scope.getRegion().front();
  mlir::TypeConverter::SignatureConversion signature(block.getNumArguments());
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(scope);
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    mlir::Type type = b.converter.convertType(argument.getType());
    if (!type)
      return mlir::failure();
    signature.remapInput(i, b.cast(arguments[i], type));
  }
  b.rewriter.applySignatureConversion(&block, signature, &b.converter);
  return mlir::ValueRange(scope.getResults());
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_CONTROLFLOW_REGIONS_H
