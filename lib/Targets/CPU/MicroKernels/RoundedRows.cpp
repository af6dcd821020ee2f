//===- RoundedRows.cpp - Rows of f32 as signed bytes ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/RoundedRows.h"
#include "Common/IndexMath.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The largest integer.
static constexpr float kLargest = 127;

RoundedRows cpu::emitRoundedBuffers(ImplicitLocOpBuilder &b, Value rows,
                                    int64_t depth, int64_t block,
                                    TargetAttr target) {
  std::optional<int64_t> known = IndexMath::known(rows);
  const int64_t count = known.value_or(ShapedType::kDynamic);
  const SmallVector<Value> open(known ? 0 : 1, rows);
  // Registers past the end of the last block are stored, too.
  const int64_t lanes = target.getLanes();
  const int64_t bytes = llvm::alignTo(depth, lanes) + lanes;
  return {emitBuffer(b, MemRefType::get({count, bytes}, b.getI8Type()), open),
          emitBuffer(b,
                     MemRefType::get(
                         {count, int64_t(llvm::divideCeil(depth, block)), 2},
                         b.getF32Type()),
                     open)};
}

void cpu::emitRoundedRow(ImplicitLocOpBuilder &b, Value source, Value row,
                         int64_t depth, int64_t block, TargetAttr target,
                         const RoundedRows &to) {
  IndexMath math(b);
  const int64_t lanes = target.getLanes();
  const auto floats = VectorType::get({lanes}, b.getF32Type());
  const auto integers = VectorType::get({lanes}, b.getI32Type());
  const Type f32 = b.getF32Type();
  Value zero = math.constant(0);
  const int64_t registers = llvm::divideCeil(std::min(block, depth), lanes);
  const bool isFull = block % lanes == 0 && depth % block == 0;
  // One register after the other of the block from `first` to `end`.
  auto emitRegisters =
      [&](Value first, Value end, Value init,
          function_ref<Value(Value k, Value numbers, Value carried)> body) {
        auto loop = scf::ForOp::create(b, zero, math.constant(registers),
                                       math.constant(1), init);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(loop.getBody());
        Value k = math.add(first, math.mul(loop.getInductionVar(), lanes)),
              mask;
        if (!isFull) {
          k = math.min(k, end);
          mask = emitTailMask(b, math.sub(end, k), lanes);
        }
        Value numbers = emitLoad(b, source, {row, k}, lanes, mask);
        scf::YieldOp::create(b, body(k, numbers, loop.getRegionIterArg(0)));
        return loop.getResult(0);
      };
  emitFor(
      b, zero, math.constant(llvm::divideCeil(depth, block)), 1,
      [&](Value number) {
        Value first = math.mul(number, block);
        Value end = math.min(math.add(first, block), math.constant(depth));
        // NaN and infinities become the scale, and so results.
        Value largest =
            emitRegisters(first, end, emitFloatSplat(b, floats, 0),
                          [&](Value, Value numbers, Value carried) -> Value {
                            return arith::MaximumFOp::create(
                                b, carried, math::AbsFOp::create(b, numbers));
                          });
        largest = vector::ReductionOp::create(
            b, vector::CombiningKind::MAXIMUMF, largest);
        Value scale = arith::MulFOp::create(
            b, largest, emitFloatSplat(b, f32, 1 / kLargest));
        // Of numbers so small that their quotient overflows nothing is left.
        constexpr float kSmallest = 1e-36f;
        Value isThere =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, largest,
                                  emitFloatSplat(b, f32, kSmallest));
        Value factor = arith::SelectOp::create(
            b, isThere,
            arith::DivFOp::create(b, emitFloatSplat(b, f32, kLargest), largest),
            emitFloatSplat(b, f32, 0));
        Value factors = vector::BroadcastOp::create(b, floats, factor);
        Value sum = emitRegisters(
            first, end, emitSplat(b, integers, 0),
            [&](Value k, Value numbers, Value carried) -> Value {
              Value rounded = arith::FPToSIOp::create(
                  b, integers,
                  math::RoundEvenOp::create(
                      b, arith::MulFOp::create(b, numbers, factors)));
              emitStore(
                  b,
                  arith::TruncIOp::create(
                      b, VectorType::get({lanes}, b.getI8Type()), rounded),
                  to.bytes, {row, k});
              return arith::AddIOp::create(b, carried, rounded);
            });
        Value total =
            vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
        Value minus = arith::MulFOp::create(
            b, arith::NegFOp::create(b, arith::SIToFPOp::create(b, f32, total)),
            scale);
        memref::StoreOp::create(b, scale, to.scales,
                                ValueRange{row, number, zero});
        memref::StoreOp::create(b, minus, to.scales,
                                ValueRange{row, number, math.constant(1)});
      });
}
