//===- ShapeValues.h - What is known of small integer tensors ---*- C++ -*-===//

#ifndef SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
#define SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H

#include "dialects/ONNX/ONNX.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace sardonyx {

/// What is known of one element of an integer or boolean tensor.
struct ShapeElement {
  enum Kind { Unknown, Size, Known } kind = Unknown; // Size: at least 0
  int64_t value = 0;

  static ShapeElement known(int64_t value) { return {Known, value}; }
  static ShapeElement size() { return {Size, 0}; }
  /// A dimension of a tensor type.
  static ShapeElement dimension(int64_t size) {
    return mlir::ShapedType::isDynamic(size) ? ShapeElement::size()
                                             : known(size);
  }
  bool isKnown() const { return kind == Known; }
  bool isKnown(int64_t wanted) const { return isKnown() && value == wanted; }
  bool isNonNegative() const {
    return kind == Size || (isKnown() && value >= 0);
  }
};

/// Row-major elements of a tensor.
using ShapeValue = llvm::SmallVector<ShapeElement, 8>;

/// Follows shape arithmetic back to sizes and constants. Remembers what it has
/// found out, so types of values that it was asked about, and of their
/// producers' operands, must be refined before and not after.
class ShapeEvaluator {
public:
  static constexpr int64_t maxElements = 1024;

  /// Nothing, unless `value` is a ranked integer or boolean tensor of static
  /// shape and at most `maxElements` elements.
  std::optional<ShapeValue> evaluate(mlir::Value value);

private:
  ShapeValue compute(mlir::Value value, size_t count);

  llvm::DenseMap<mlir::Value, ShapeValue> memo;
  unsigned depth = 0;
};

/// The constant of `type` with these elements, all known; null if one of them
/// does not fit the element type.
mlir::DenseElementsAttr getKnownElements(mlir::RankedTensorType type,
                                         llvm::ArrayRef<ShapeElement> elements);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
