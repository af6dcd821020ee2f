//===- PointEvaluator.h - Tensors of a kernel at one position ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a thread computes of one element: the elementwise operations before and
// after a kernel's root, on scalars, with what lies in memory read there.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_POINTEVALUATOR_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_POINTEVALUATOR_H

#include "Common/KernelBody.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// Evaluates tensors of a kernel at positions.
class PointEvaluator {
public:
  explicit PointEvaluator(KernelBody &body) : body(body) {}

  /// What has been computed where code is built, so that it is not computed
  /// twice: of positions, and of tensors that other loops have summed up. A
  /// copy of a point is one further inside.
  struct Point {
    llvm::SmallVector<
        std::tuple<mlir::Value, llvm::SmallVector<mlir::Value>, mlir::Value>>
        values;
    /// Adds what `tensor` is at `index`.
    void add(mlir::Value tensor, mlir::ValueRange index, mlir::Value value) {
      values.emplace_back(tensor, llvm::SmallVector<mlir::Value>(index), value);
    }
  };

  /// Says that somebody else computes `tensor`, and adds it to points.
  void declare(mlir::Value tensor) { known.insert(tensor); }
  /// Says how `tensor` is computed at a position.
  using Compute = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &b,
                                            mlir::ValueRange index)>;
  void declare(mlir::Value tensor, Compute compute) {
    declare(tensor);
    computed[tensor] = std::move(compute);
  }

  /// Has bodies read what the kernel computes at other places, too, and what
  /// has been computed in other shapes.
  void readElsewhere() { mayReadElsewhere = true; }

  /// Whether `tensor` can be evaluated at any position.
  bool canEvaluate(mlir::Value tensor) { return !findObstacle(tensor); }

  /// `tensor` at `index`, which are indices within its sizes.
  mlir::Value evaluate(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                       mlir::ValueRange index, Point &point);

  /// Whether all that the body of `op` reads can be evaluated; its inits, where
  /// it sums up, are the caller's.
  bool canEvaluateBody(mlir::linalg::GenericOp op);

  /// What the body of `op` yields at these positions of its loops. `sums` stand
  /// for what its inits hold; without them these are evaluated, too.
  mlir::SmallVector<mlir::Value>
  evaluateBody(mlir::ImplicitLocOpBuilder &b, mlir::linalg::GenericOp op,
               mlir::ValueRange loops, mlir::ValueRange sums, Point &point);

  /// Computes `outputs` at each of `indices`, where `points` hold what is known
  /// there, and writes them. All is read before anything is written.
  void store(mlir::ImplicitLocOpBuilder &b,
             llvm::ArrayRef<KernelBody::Output> outputs,
             llvm::ArrayRef<llvm::SmallVector<mlir::Value>> indices,
             llvm::MutableArrayRef<Point> points);

private:
  /// The operation that cannot be evaluated, or null.
  mlir::Operation *findObstacle(mlir::Value tensor);
  mlir::Operation *findObstacleIn(mlir::linalg::GenericOp op, bool sumsUp);
  /// Whether `tensor` can be read at any place, in the body of an operation.
  bool canReadElsewhere(mlir::Value tensor);
  mlir::Value evaluateGeneric(mlir::ImplicitLocOpBuilder &b,
                              mlir::linalg::GenericOp op, unsigned result,
                              mlir::ValueRange index, Point &point);
  mlir::Value evaluateReshape(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                              mlir::ValueRange index, Point &point);
  /// Clones an operation of a body; `loops` are the positions of its loops.
  void cloneInto(mlir::ImplicitLocOpBuilder &b, mlir::Operation &inner,
                 mlir::ValueRange loops, mlir::IRMapping &mapping,
                 const Point &point);

  KernelBody &body;
  llvm::DenseSet<mlir::Value> known, checked;
  llvm::DenseMap<mlir::Value, Compute> computed;
  bool mayReadElsewhere = false;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_POINTEVALUATOR_H
