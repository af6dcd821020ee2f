//===- Axes.h - Dimensions of tensors as axes of a computation --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What reshapes and transposes do to tensors is told by axes: a dimension of a
// tensor is the product of some, the outermost first, of none where its size is
// 1. An axis is split into two when a reshape divides it.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_AXES_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_AXES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace sardonyx::attention {

class Axes {
public:
  using Axis = unsigned;
  /// The axes of a dimension.
  using List = llvm::SmallVector<Axis, 2>;
  /// Those of each dimension of a tensor.
  using Dims = llvm::SmallVector<List>;

  /// The axes of a dimension of this size, which is all that is known of it.
  List create(int64_t size);
  /// The size of an axis that was not split.
  int64_t sizeOf(Axis axis) const { return nodes[axis].size; }

  /// The axes that those of `list`, or of all dimensions, have become.
  List resolve(const List &list) const;
  Dims resolve(const Dims &dims) const;
  bool areEqual(const Dims &a, const Dims &b) const {
    return resolve(a) == resolve(b);
  }

  /// The axes of neighbouring dimensions of these sizes that `list` is the
  /// product of; none where it cannot be said.
  std::optional<Dims> split(const List &list, llvm::ArrayRef<int64_t> sizes);

  /// The axes of the operand of a reshape, a cast or a transpose whose result
  /// has `dims`; none for other operations.
  std::optional<Dims> findSource(mlir::Operation *op, const Dims &dims);
  /// The axes of the result of such an operation whose operand has `dims`.
  std::optional<Dims> findResult(mlir::Operation *op, const Dims &dims);

  /// Whether a tensor can have a dimension for each axis of `dims`: two open
  /// axes of one dimension have sizes that it does not tell.
  bool areSeparable(const Dims &dims) const;
  /// `tensor`, which has `dims`, with a dimension for each axis.
  mlir::Value separate(mlir::OpBuilder &b, mlir::Value tensor,
                       const Dims &dims) const;
  /// `tensor`, which has a dimension for each axis of `dims` in their order, as
  /// a tensor of `dims`: its type is this one, but for what is known of sizes.
  mlir::Value unite(mlir::OpBuilder &b, mlir::Value tensor, const Dims &dims,
                    mlir::RankedTensorType type) const;

private:
  struct Node {
    int64_t size;
    /// What it was split into; null: it was not.
    std::optional<std::pair<Axis, Axis>> parts;
  };

  Axis add(int64_t size);
  /// The product of the sizes of axes that were not split.
  int64_t countElements(const List &list) const;
  int64_t countMissing(const List &list, llvm::ArrayRef<int64_t> sizes) const;
  /// Splits `axis` so that the inner part has this size.
  std::pair<Axis, Axis> splitAxis(Axis axis, int64_t inner);

  llvm::SmallVector<Node> nodes;
};

/// The axes of each loop of an operation on elements whose result number 0 has
/// `dims`; none where its loops are not the result's dimensions in some order.
std::optional<Axes::Dims> findLoops(mlir::linalg::GenericOp op,
                                    const Axes::Dims &dims);

/// The axes of an operand, by those of the loops; none where its dimensions are
/// neither loops nor 0.
std::optional<Axes::Dims> findOperand(mlir::linalg::GenericOp op,
                                      mlir::OpOperand &operand,
                                      const Axes::Dims &loops);

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_AXES_H
