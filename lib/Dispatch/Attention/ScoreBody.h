//===- ScoreBody.h - What is done to scores before a softmax ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_SCOREBODY_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_SCOREBODY_H

#include "Softmax.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace sardonyx::attention {

/// Collects the operations on elements between a product and a softmax as code
/// for one score. It goes the same way twice: first to see whether it can,
/// which may split axes, then to build.
class ScoreBody {
public:
  explicit ScoreBody(Axes &axes) : axes(axes) {}

  /// The one product of matrices whose elements are in the way of `tensor`;
  /// null if there is none, or several.
  static sdx::MatmulOp findProduct(mlir::Value tensor);

  /// Whether code can be built for `scores`, which are made of the result of
  /// `product` (among other things). Operations that are made of it are added
  /// to `passed`.
  bool check(Position scores, mlir::Value product,
             llvm::SetVector<mlir::Operation *> &passed);

  /// The axes of the product's result.
  const Axes::Dims &getProductDims() const { return *productDims; }
  /// The tensors of which elements are needed.
  llvm::ArrayRef<Position> getExtras() const { return extras; }

  /// The score in f32 for the product's element `score`, for elements of the
  /// extras, and at these indices; null if it cannot be built after all.
  mlir::Value build(mlir::OpBuilder &b, mlir::Value score,
                    mlir::ValueRange elements,
                    const llvm::DenseMap<Axes::Axis, mlir::Value> &indices);

private:
  /// A constant matrix of two values: `inside` where column <= row + past.
  struct Bound {
    mlir::TypedAttr inside, outside;
    int64_t past;
  };
  static std::optional<Bound> findBound(mlir::arith::ConstantOp op);
  /// A constant of integers that follow each other along a dimension.
  struct Sequence {
    unsigned dim;
    int64_t first;
  };
  static std::optional<Sequence> findSequence(mlir::arith::ConstantOp op);

  mlir::FailureOr<mlir::Value> visit(Position position);
  mlir::FailureOr<mlir::Value> visitNew(const Position &position);
  mlir::FailureOr<mlir::Value> visitGeneric(mlir::linalg::GenericOp op,
                                            const Position &position);
  mlir::FailureOr<mlir::Value> visitExtra(const Position &position);
  mlir::FailureOr<mlir::Value> visitConstant(const Position &position);
  mlir::FailureOr<mlir::Value> visitSequence(const Position &position,
                                             Sequence sequence);
  mlir::LogicalResult cloneOp(mlir::Operation &op, const Axes::Dims &loops,
                              mlir::IRMapping &mapping);
  mlir::FailureOr<mlir::Value> findIndex(const Axes::List &list);
  bool reachesProduct(mlir::Value tensor);
  bool isWorthBuilding(mlir::Value tensor);

  Axes &axes;
  Position checked;
  mlir::Value product;
  std::optional<Axes::Dims> productDims;
  llvm::SmallVector<Position> extras;
  llvm::SetVector<mlir::Operation *> *passed = nullptr;
  llvm::DenseMap<mlir::Value, bool> reaching;
  llvm::DenseMap<mlir::Value, std::pair<Axes::Dims, mlir::Value>> visited;

  // While it builds.
  mlir::OpBuilder *b = nullptr;
  mlir::Value score;
  mlir::ValueRange elements;
  const llvm::DenseMap<Axes::Axis, mlir::Value> *indices = nullptr;
};

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_SCOREBODY_H
