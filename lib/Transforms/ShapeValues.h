//===- ShapeValues.h - What is known of small tensors -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
#define SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H

#include "dialects/ONNX/ONNX.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/bit.h"

#include <memory>
#include <optional>

namespace sardonyx {

/// What is known of one element of a tensor of integers, booleans or floats:
/// nothing; that it is a size (at least 0), maybe as a product of `value` and
/// symbols; or its value. Equal symbols are equal sizes. The value of a float,
/// of whatever type, is kept as the bits of a double.
struct ShapeElement {
  enum Kind { Unknown, Size, Known } kind = Unknown;
  int64_t value = 0;
  llvm::SmallVector<unsigned, 2> symbols; // sorted; of a Size, none: opaque

  static ShapeElement known(int64_t value) { return {Known, value, {}}; }
  static ShapeElement number(double value) {
    return known(llvm::bit_cast<int64_t>(value));
  }
  static ShapeElement size() { return {Size, 1, {}}; }
  static ShapeElement symbol(unsigned id) { return {Size, 1, {id}}; }
  bool isKnown() const { return kind == Known; }
  bool isKnown(int64_t wanted) const { return isKnown() && value == wanted; }
  double getNumber() const { return llvm::bit_cast<double>(value); }
  bool isSymbolic() const { return kind == Size && !symbols.empty(); }
  bool isNonNegative() const {
    return kind == Size || (isKnown() && value >= 0);
  }
  /// Whether both are sure to be equal.
  bool isSame(const ShapeElement &other) const {
    return kind == other.kind && (isKnown() || isSymbolic()) &&
           value == other.value && symbols == other.symbols;
  }
};

/// Row-major elements of a tensor.
using ShapeValue = llvm::SmallVector<ShapeElement, 4>;

/// What is known of a small tensor.
struct ShapeTensor {
  llvm::SmallVector<int64_t> shape;
  ShapeValue elements;
};

/// Evaluates operators on small tensors of which something is known
/// (Evaluation.h): shape arithmetic back to sizes and constants, and sizes back
/// to those that they are copies of: a dimension of an argument or of the op
/// that makes it. Dimensions of arguments that have a name in common
/// (`onnx.dim_params`) are equal.
///
/// Remembers what it has found out, so types of values that it was asked about,
/// and of their producers' operands, must be refined before and not after.
class ShapeEvaluator {
public:
  static constexpr int64_t maxElements = 1024;
  /// Of floats, which are scales, limits and steps; weights are left alone.
  static constexpr int64_t maxFloats = 64;

  /// The elements of a tensor of integers or booleans; nothing, unless its
  /// shape is known and has at most `maxElements` elements.
  std::optional<ShapeValue> evaluate(mlir::Value value);

  /// The same with its shape, and of floats, too; null where there is nothing.
  const ShapeTensor *getTensor(mlir::Value value);

  /// What a constant's value says; nothing if it is not small.
  static std::optional<ShapeTensor> readConstant(mlir::ElementsAttr value);

  /// Evaluates a result whose type may be less precise than what follows from
  /// the operands, and makes the type that precise. The op's own inference of
  /// types comes before.
  void refineType(mlir::OpResult result);

  /// The size of a dimension of `value`, which is ranked.
  ShapeElement getDim(mlir::Value value, int64_t dim);

  /// The number of elements of `value`; opaque if unranked.
  ShapeElement getNumElements(mlir::Value value);

  /// Dimensions of the result of a broadcasting op in which at least two
  /// operands have a dynamic size and all sizes but static ones of 1 are sure
  /// to be equal.
  llvm::SmallVector<int64_t> getSameDims(mlir::Operation *op);

private:
  std::optional<ShapeTensor> compute(mlir::Value value);
  ShapeElement computeDim(mlir::OpResult value, int64_t dim);
  ShapeElement broadcastDim(mlir::OpResult value, int64_t dim,
                            mlir::ValueRange operands);
  ShapeElement broadcast(const ShapeElement &a, const ShapeElement &b);
  ShapeElement makeSymbol(mlir::Value value, int64_t dim);
  ShapeElement sliceDim(mlir::OpResult value, int64_t dim);

  static constexpr unsigned maxDepth = 64;

  llvm::DenseMap<mlir::Value, std::unique_ptr<ShapeTensor>> memo;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, ShapeElement> dims;
  llvm::DenseMap<mlir::Attribute, unsigned> named;
  // The symbol n of a symbol that is min(n, constant).
  llvm::DenseMap<unsigned, unsigned> clamped;
  unsigned depth = 0, symbols = 0;
};

/// `a * b`, opaque if it overflows.
ShapeElement multiply(const ShapeElement &a, const ShapeElement &b);

/// `a / b` if it is sure that `b` divides `a` exactly; nothing otherwise.
std::optional<ShapeElement> divideExactly(const ShapeElement &a,
                                          const ShapeElement &b);

/// The constant of `type` with these elements; null if one of them is not known
/// or does not fit the element type.
mlir::DenseElementsAttr getKnownElements(mlir::RankedTensorType type,
                                         llvm::ArrayRef<ShapeElement> elements);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
