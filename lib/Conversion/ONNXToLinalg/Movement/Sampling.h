//===- Sampling.h - Values between the points of a tensor -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interpolation at coordinates that data decide. It is separable: a table for
// each dimension says which points a sample reads there and how they weigh, and
// all channels share it.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_SAMPLING_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_SAMPLING_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// What lies beyond the first and the last point.
enum class SamplePadding { Zeros, Border, Reflection };

struct Sampler {
  /// Points of a dimension that a sample reads: 1 (the nearest, halves to
  /// even), 2 (linear) or 4 (cubic).
  int64_t taps = 2;
  SamplePadding padding = SamplePadding::Zeros;
  /// Whether reflection is about the outermost points, not half a point beyond.
  bool alignCorners = false;
};

/// For one dimension: [samples..., taps], without the last for a single tap.
/// The position of each tap, -1 outside of a tensor that is padded with zeros,
/// and its weight (null for a single tap).
struct SampleTable {
  mlir::Value positions, weights;
};

/// Reads the position `at`, inside a body.
using SampleCoordinate =
    llvm::function_ref<mlir::Value(TensorBuilder &, mlir::ValueRange at)>;

/// The table of a dimension of `size` points, of which there is at least one,
/// for samples that lie at `coordinate` (a float of any value; 0 is the first
/// point, 1 the next).
SampleTable createSampleTable(TensorBuilder &b, const Sampler &sampler,
                              mlir::OpFoldResult size,
                              llvm::ArrayRef<mlir::OpFoldResult> samples,
                              mlir::Type weightType,
                              SampleCoordinate coordinate);

/// Samples of the last dimensions of `data` [images, channels, ...], one for
/// each table. The tables' samples are the dimensions `tableDims` of the
/// result's `sizes`, and `outer` says of which image and channel a result is.
/// Along dimension `channel` of the results no table differs, and neighbours
/// are of neighbouring channels. More than one tap is summed in the element
/// type, which is a float then.
mlir::Value createSamples(TensorBuilder &b, const Sampler &sampler,
                          mlir::Value data,
                          llvm::ArrayRef<mlir::OpFoldResult> sizes,
                          llvm::ArrayRef<SampleTable> tables,
                          llvm::ArrayRef<int64_t> tableDims, int64_t channel,
                          llvm::function_ref<llvm::SmallVector<mlir::Value>(
                              TensorBuilder &, mlir::ValueRange at)>
                              outer);

/// The check that each dimension from `first` on has a point; fails when one is
/// known to have none.
mlir::LogicalResult checkHasPoints(TensorBuilder &b, mlir::Value data,
                                   int64_t first);

/// A float of any value, also NaN, as an index in [low, high].
mlir::Value clampToIndex(TensorBuilder &s, mlir::Value x, mlir::Value low,
                         mlir::Value high);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_SAMPLING_H
