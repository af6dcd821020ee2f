//===- IndexMath.h - Index arithmetic that folds ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short names for the index arithmetic of loop nests. Constants fold while
// they are built, so that static shapes leave no arithmetic behind.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_INDEXMATH_H
#define SARDONYX_LIB_TARGETS_COMMON_INDEXMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {

/// Builds non-negative index values; divisions are unsigned.
class IndexMath {
public:
  explicit IndexMath(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::AddIOp>(x, y);
  }
  mlir::Value add(mlir::Value x, int64_t y) { return add(x, constant(y)); }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::SubIOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MulIOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, int64_t y) { return mul(x, constant(y)); }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::DivUIOp>(x, y);
  }
  mlir::Value div(mlir::Value x, int64_t y) { return div(x, constant(y)); }
  mlir::Value rem(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::RemUIOp>(x, y);
  }
  mlir::Value ceilDiv(mlir::Value x, int64_t y) {
    return y == 1 ? x : div(add(x, y - 1), y);
  }
  mlir::Value ceilDiv(mlir::Value x, mlir::Value y) {
    return div(sub(add(x, y), constant(1)), y);
  }
  /// The largest multiple of `y` that is not above `x`.
  mlir::Value roundDown(mlir::Value x, int64_t y) {
    return y == 1 ? x : mul(div(x, y), y);
  }
  mlir::Value min(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MinSIOp>(x, y);
  }
  mlir::Value max(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MaxSIOp>(x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::slt,
                                               x, y);
  }
  mlir::Value dim(mlir::Value memref, int64_t d) {
    return b.createOrFold<mlir::memref::DimOp>(memref, constant(d));
  }
  static std::optional<int64_t> known(mlir::Value x) {
    return mlir::getConstantIntValue(x);
  }

private:
  mlir::ImplicitLocOpBuilder &b;
};

/// Emits `scf.for` from `lower` to `upper` around `body(iv)`.
inline void emitFor(mlir::ImplicitLocOpBuilder &b, mlir::Value lower,
                    mlir::Value upper, int64_t step,
                    llvm::function_ref<void(mlir::Value)> body) {
  mlir::Value stepValue = mlir::arith::ConstantIndexOp::create(b, step);
  auto loop = mlir::scf::ForOp::create(b, lower, upper, stepValue);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

/// Emits `scf.if` without results.
inline void emitIf(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
                   llvm::function_ref<void()> then,
                   llvm::function_ref<void()> otherwise = nullptr) {
  auto branch = mlir::scf::IfOp::create(b, mlir::TypeRange(), condition,
                                        /*addThenBlock=*/true,
                                        /*addElseBlock=*/bool(otherwise));
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  mlir::scf::YieldOp::create(b);
  if (!otherwise)
    return;
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
  mlir::scf::YieldOp::create(b);
}

/// Emits `scf.if` with results of `types`, those that `then` and `otherwise`
/// return.
inline mlir::scf::IfOp
emitIf(mlir::ImplicitLocOpBuilder &b, mlir::TypeRange types,
       mlir::Value condition,
       llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
       llvm::function_ref<llvm::SmallVector<mlir::Value>()> otherwise) {
  auto branch = mlir::scf::IfOp::create(b, types, condition,
                                        /*addThenBlock=*/true,
                                        /*addElseBlock=*/true);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  mlir::scf::YieldOp::create(b, then());
  b.setInsertionPointToStart(branch.elseBlock());
  mlir::scf::YieldOp::create(b, otherwise());
  return branch;
}

/// Emits `scf.parallel` from 0 to `sizes` around `body(ivs)`.
inline void emitParallel(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sizes,
                         llvm::function_ref<void(mlir::ValueRange)> body) {
  llvm::SmallVector<mlir::Value> zeros(
      sizes.size(), mlir::arith::ConstantIndexOp::create(b, 0));
  llvm::SmallVector<mlir::Value> ones(
      sizes.size(), mlir::arith::ConstantIndexOp::create(b, 1));
  auto loop = mlir::scf::ParallelOp::create(b, zeros, sizes, ones);
  mlir::OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVars());
}

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_INDEXMATH_H
