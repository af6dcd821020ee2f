//===- Normalization.h - Building blocks of normalisations ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_NORMALIZATION_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_NORMALIZATION_H

#include "Support/ScalarBuilder.h"

namespace sardonyx {

/// f64 for f64, else f32.
mlir::Type getStatisticsType(mlir::Type onnxType);

/// The projection of `rank` dimensions that leaves out some (ascending).
mlir::AffineMap mapWithout(mlir::OpBuilder &b, int64_t rank,
                           llvm::ArrayRef<int64_t> dropped);

/// The mean of the elements, or of their squares, over the axes, which
/// disappear; in the statistics' type.
mlir::Value reduceMean(mlir::OpBuilder &b, mlir::Location loc,
                       TypedTensor input, llvm::ArrayRef<int64_t> axes,
                       bool ofSquares);
/// input - mean, in the statistics' type.
mlir::Value centre(mlir::OpBuilder &b, mlir::Location loc, TypedTensor input,
                   mlir::Value mean, llvm::ArrayRef<int64_t> axes,
                   mlir::Type statistics);
/// 1 / sqrt(variance + epsilon)
mlir::Value inverseDeviation(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value variance, mlir::Type statistics,
                             double epsilon);
/// centred * inverse * scale + bias; scale and bias may be null.
mlir::Value scaleAndShift(mlir::OpBuilder &b, mlir::Location loc,
                          TypedTensor centred, mlir::Value inverse,
                          mlir::AffineMap inverseMap, TypedTensor scale,
                          mlir::AffineMap scaleMap, TypedTensor bias,
                          mlir::AffineMap biasMap, mlir::Type resultType);

/// The check that a parameter (`name` is ONNX's) is a list with one element for
/// each of `channels`; fails when it is known not to be.
mlir::LogicalResult checkChannels(mlir::OpBuilder &b, mlir::Location loc,
                                  mlir::Value parameter,
                                  mlir::OpFoldResult channels,
                                  llvm::StringRef name);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_REDUCTION_NORMALIZATION_H
