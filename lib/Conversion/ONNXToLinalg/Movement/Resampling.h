//===- Resampling.h - Values between the points of axes ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Resampling is separable. For each resized axis small tables say, for each
// output position, which input positions it reads and with which weights; the
// data is then gathered with them, axis by axis (all axes at once for
// "nearest"). Tables come from coordinates in f64, as the specification's
// formulas round differently in f32.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_RESAMPLING_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_RESAMPLING_H

#include "Support/TensorBuilder.h"

#include <optional>

namespace sardonyx::resize {

/// A number that is known when compiling, or a host value of type f64.
struct Number {
  std::optional<double> known;
  mlir::Value value;

  mlir::Value get(TensorBuilder &b) const {
    return known ? b.scalar(b.getF64Type(), *known) : value;
  }
};

/// One resized axis.
struct Axis {
  int64_t dim;
  mlir::OpFoldResult inputSize, outputSize;
  Number scale, roiBegin, roiEnd;
};

/// The attributes.
struct Resampling {
  llvm::StringRef mode, coordinates, nearest;
  double cubicA, extrapolation;
  bool antialias, excludeOutside;
  bool crops() const { return coordinates == "tf_crop_and_resize"; }
  /// Input positions on either side of a coordinate that have a weight.
  double support() const { return mode == "cubic" ? 2 : 1; }
};

/// Arithmetic, done when compiling where everything is known.
Number toNumber(TensorBuilder &b, mlir::OpFoldResult size);
Number divide(TensorBuilder &b, Number x, Number y);
Number multiply(TensorBuilder &b, Number x, Number y);
Number extremum(TensorBuilder &b, Number x, Number y, bool larger);

/// A scale that is known to be a whole number.
std::optional<int64_t> getWholeScale(const Number &scale);

/// What a scale divides by, where that is a power of two: whatever is divided
/// is exact.
std::optional<int64_t> getWholeShrink(const Number &scale);

/// floor(x + offset) as a size that is not negative.
mlir::OpFoldResult floorToSize(TensorBuilder &b, Number x, double offset);

/// Resamples all axes of `data` at once.
mlir::Value createNearest(TensorBuilder &b, const Resampling &r,
                          mlir::Value data, llvm::ArrayRef<Axis> axes);

/// Resamples one axis of `data`, whose element type is that of the weights.
mlir::Value createInterpolation(TensorBuilder &b, const Resampling &r,
                                mlir::Value data, const Axis &axis);

} // namespace sardonyx::resize

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_RESAMPLING_H
