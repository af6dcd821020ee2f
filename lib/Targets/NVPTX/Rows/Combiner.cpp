//===- Combiner.cpp - Reductions among threads ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/Combiner.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What a reduction by `op` begins with; none where its order matters.
static std::optional<TypedAttr> findNeutral(Operation *op) {
  Builder b(op->getContext());
  Type type = op->getResult(0).getType();
  // Upstream has none that is right for NaN: it is what a number replaces.
  if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
    return b.getFloatAttr(
        type, APFloat::getNaN(cast<FloatType>(type).getFloatSemantics()));
  if (!isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp,
           arith::AddIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
           arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
           arith::MinUIOp>(op))
    return std::nullopt;
  return arith::getNeutralElement(op);
}

std::optional<Combiner> Combiner::find(linalg::GenericOp op, unsigned number) {
  SmallVector<Operation *> operations;
  if (!matchReduction(op.getRegionOutputArgs(), number, operations) ||
      operations.size() != 1)
    return std::nullopt;
  // The sum so far is one side of it, as it is.
  BlockArgument sum = op.getRegionOutputArgs()[number];
  Operation *operation = operations.front();
  if (!sum.hasOneUse() || !llvm::is_contained(operation->getOperands(), sum))
    return std::nullopt;
  std::optional<TypedAttr> neutral = findNeutral(operation);
  if (!neutral)
    return std::nullopt;
  return Combiner(operation, *neutral);
}

Value Combiner::neutral(ImplicitLocOpBuilder &b) const {
  return arith::ConstantOp::create(b, neutralElement);
}

Value Combiner::combine(ImplicitLocOpBuilder &b, Value x, Value y) const {
  Operation *made = b.clone(*operation);
  made->setOperands({x, y});
  return made->getResult(0);
}

/// What the thread has whose number differs by the bit `distance`. Registers of
/// 32 bits are exchanged.
static Value exchange(ImplicitLocOpBuilder &b, Value value, int32_t distance) {
  Type type = value.getType();
  const unsigned bits = type.getIntOrFloatBitWidth();
  Value word = value;
  if (isa<FloatType>(type) && bits != 32)
    word = arith::BitcastOp::create(b, b.getIntegerType(bits), value);
  auto shuffle = [&](Value part) -> Value {
    return gpu::ShuffleOp::create(b, part, distance, 32, gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  if (bits < 32) {
    word = shuffle(arith::ExtUIOp::create(b, b.getI32Type(), word));
    word = arith::TruncIOp::create(b, b.getIntegerType(bits), word);
  } else if (bits == 32) {
    return shuffle(value);
  } else {
    Value half = arith::ConstantIntOp::create(b, 32, 64);
    Value low = arith::TruncIOp::create(b, b.getI32Type(), word);
    Value high = arith::TruncIOp::create(b, b.getI32Type(),
                                         arith::ShRUIOp::create(b, word, half));
    low = arith::ExtUIOp::create(b, b.getI64Type(), shuffle(low));
    high = arith::ExtUIOp::create(b, b.getI64Type(), shuffle(high));
    word = arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, half));
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, type, word) : word;
}

Value Combiner::combineThreads(ImplicitLocOpBuilder &b, Value value,
                               int64_t count) const {
  for (int32_t distance = count / 2; distance > 0; distance /= 2)
    value = combine(b, value, exchange(b, value, distance));
  return value;
}
