//===- ShapeValues.h - What is known of small integer tensors ---*- C++ -*-===//

#ifndef SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
#define SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H

#include "dialects/ONNX/ONNX.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace sardonyx {

/// What is known of one element of an integer or boolean tensor: nothing; that
/// it is a size (at least 0), maybe as a product of `value` and symbols; or its
/// value. Equal symbols are equal sizes.
struct ShapeElement {
  enum Kind { Unknown, Size, Known } kind = Unknown;
  int64_t value = 0;
  llvm::SmallVector<unsigned, 2> symbols; // sorted; of a Size, none: opaque

  static ShapeElement known(int64_t value) { return {Known, value, {}}; }
  static ShapeElement size() { return {Size, 1, {}}; }
  static ShapeElement symbol(unsigned id) { return {Size, 1, {id}}; }
  bool isKnown() const { return kind == Known; }
  bool isKnown(int64_t wanted) const { return isKnown() && value == wanted; }
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

/// Follows shape arithmetic back to sizes and constants, and sizes back to
/// those that they are copies of: a dimension of an argument or of the op that
/// makes it. Dimensions of arguments that have a name in common
/// (`onnx.dim_params`) are equal.
///
/// Remembers what it has found out, so types of values that it was asked about,
/// and of their producers' operands, must be refined before and not after.
class ShapeEvaluator {
public:
  static constexpr int64_t maxElements = 1024;

  /// Nothing, unless `value` is a ranked integer or boolean tensor of static
  /// shape and at most `maxElements` elements.
  std::optional<ShapeValue> evaluate(mlir::Value value);

  /// The size of a dimension of `value`, which is ranked.
  ShapeElement getDim(mlir::Value value, int64_t dim);

  /// The number of elements of `value`; opaque if unranked.
  ShapeElement getNumElements(mlir::Value value);

  /// Dimensions of the result of a broadcasting op in which at least two
  /// operands have a dynamic size and all sizes but static ones of 1 are sure
  /// to be equal.
  llvm::SmallVector<int64_t> getSameDims(mlir::Operation *op);

private:
  ShapeValue compute(mlir::Value value, size_t count);
  ShapeElement computeDim(mlir::OpResult value, int64_t dim);
  ShapeElement broadcastDim(mlir::OpResult value, int64_t dim,
                            mlir::ValueRange operands);
  ShapeElement broadcast(const ShapeElement &a, const ShapeElement &b);
  ShapeElement makeSymbol(mlir::Value value, int64_t dim);
  ShapeElement sliceDim(mlir::OpResult value, int64_t dim);

  static constexpr unsigned maxDepth = 64;

  llvm::DenseMap<mlir::Value, ShapeValue> memo;
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

/// The constant of `type` with these elements, all known; null if one of them
/// does not fit the element type.
mlir::DenseElementsAttr getKnownElements(mlir::RankedTensorType type,
                                         llvm::ArrayRef<ShapeElement> elements);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_SHAPEVALUES_H
