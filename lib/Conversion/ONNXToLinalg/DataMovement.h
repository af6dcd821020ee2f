//===- DataMovement.h - Views, slices, gathers and scatters -----*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_DATAMOVEMENT_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_DATAMOVEMENT_H

#include "Common.h"

namespace sardonyx {

/// The converted type of an op's result; null when its rank is unknown.
mlir::RankedTensorType getDeclared(const mlir::TypeConverter &converter,
                                   mlir::Value result);
bool isStatic(mlir::RankedTensorType type);
/// The sizes of a static type as attributes.
Sizes getDeclaredSizes(mlir::OpBuilder &b, mlir::RankedTensorType type);

/// arith.cmpi on integer or index values.
mlir::Value compare(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::arith::CmpIPredicate predicate, mlir::Value x,
                    mlir::Value y);
/// An integer as an index; an index as it is.
mlir::Value toIndex(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::Value integer);

/// A tensor of these sizes whose element at `indices` is what `body` returns
/// (as stored). The body may read other tensors with tensor.extract.
mlir::Value
createIndexed(mlir::OpBuilder &b, mlir::Location loc,
              llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elementType,
              llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                             mlir::ValueRange indices)>
                  body);

void populateViewPatterns(const mlir::TypeConverter &,
                          mlir::RewritePatternSet &);
void populateSlicePatterns(const mlir::TypeConverter &,
                           mlir::RewritePatternSet &);
void populateGatherPatterns(const mlir::TypeConverter &,
                            mlir::RewritePatternSet &);
void populateSortingPatterns(const mlir::TypeConverter &,
                             mlir::RewritePatternSet &);
void populateControlFlowPatterns(const mlir::TypeConverter &,
                                 mlir::RewritePatternSet &);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_DATAMOVEMENT_H
