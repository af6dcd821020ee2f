//===- Quantized.h - Integers that stand for floats -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What QuantizeLinear and DequantizeLinear say of integers: q stands for
// (q - zero point) * scale, and x becomes round(x / scale) + zero point, half
// to even, kept within the integers' range.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_QUANTIZED_H
#define SARDONYX_LIB_TRANSFORMS_QUANTIZED_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace sardonyx {

/// How integers of 8 or 16 bits stand for f32.
struct Quantization {
  mlir::Value scale;
  /// Null for 0.
  mlir::Value zeroPoint;
  mlir::IntegerType integer;
  /// The dimension along which each index has a scale of its own, counted from
  /// the front; nothing where one scale is for all.
  std::optional<int64_t> axis;

  /// What an operation says; nothing for types that are not spoken of here, for
  /// blocks, and for parameters whose shape does not fit.
  static std::optional<Quantization> get(onnx::QuantizeLinearOp op);
  static std::optional<Quantization> get(onnx::DequantizeLinearOp op);
  /// The same of what made, or maybe did not make, `value`.
  static std::optional<Quantization> ofDequantized(mlir::Value value);

  /// Whether both are sure to say the same.
  bool isSame(const Quantization &other) const;
  /// Whether it is known that larger integers stand for larger floats, all of
  /// them finite: the scales are constants, positive and neither tiny nor huge.
  bool isIncreasing() const;
  /// Whether every integer is the quantised value of what it stands for:
  /// (k * s) / s is off k by 2^-22 of it at most, unless s is tiny or k * s no
  /// number. So it is of scales that only the run knows, where they are sound.
  bool isInvertible() const;
  /// The one scale and the one zero point, if they are known.
  std::optional<float> getScale() const;
  std::optional<int64_t> getZeroPoint() const;
  /// The least and the largest integer.
  int64_t getLowest() const;
  int64_t getHighest() const;
  /// `x` quantised, if scale and zero point are known and x is a number.
  std::optional<int64_t> quantize(float x) const;
  /// The integer that stands for `x` itself; nothing if none does.
  std::optional<int64_t> findExactly(float x) const;
  /// A scalar of the integers' type.
  mlir::Value createInteger(mlir::OpBuilder &b, mlir::Location loc,
                            int64_t value) const;

  /// The operations that quantise and dequantise in this way; the axis of the
  /// parameters is `axis`.
  mlir::Value createQuantize(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value x) const;
  mlir::Value createDequantize(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value x) const;
};

/// Whether two values are sure to be equal: one value, or constants of the same
/// bytes.
bool isSameConstant(mlir::Value a, mlir::Value b);

/// All elements of a constant of f32, or of a scalar of 8 to 64 bits.
std::optional<llvm::SmallVector<float>> readFloats(mlir::Value constant);
std::optional<int64_t> readInteger(mlir::Value constant);
/// All elements of a constant of integers, or the one that all of them are.
std::optional<llvm::SmallVector<int64_t>> readIntegers(mlir::Value constant);

/// Whether a zero point, which may be null, is known to be 0 everywhere.
bool isZeroPointZero(mlir::Value zeroPoint);

/// Whether a value is a tensor of one element.
bool hasOneElement(mlir::Value value);

/// The i32 that can be added to the sum of products of integers with the scales
/// `lhs` and `rhs`, in place of the float `bias`: what it is dequantised from,
/// with no zero point and the scale lhs * rhs. Null if it is no such bias,
/// which is then added as the float that it is.
mlir::Value getIntegerBias(mlir::Value bias, mlir::Value lhs, mlir::Value rhs);

void populateQuantizedMovementPatterns(mlir::RewritePatternSet &patterns);
void populateQuantizedOrderPatterns(mlir::RewritePatternSet &patterns);
void populateQuantizedTablePatterns(mlir::RewritePatternSet &patterns);
void populateQuantizedScalePatterns(mlir::RewritePatternSet &patterns);
void populateQuantizedTransposedConvPatterns(mlir::RewritePatternSet &patterns);

/// Whether the bytes that `op` makes are computed from nothing but constants
/// and one tensor of bytes, each from the one at its place, so that a table of
/// 256 bytes takes the place of all that, and is faster.
bool isTableOfBytes(onnx::QuantizeLinearOp op);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_QUANTIZED_H
