//===- ArgReduction.cpp - ArgMax, ArgMin ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduction/ReductionKinds.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

Value createArgReduction(OpBuilder &b, Location loc, TypedTensor input,
                         int64_t axis, bool isMax, bool lastOfEqual) {
  Type type = input.onnxElementType;
  Sizes kept = getSizes(b, loc, input.value);
  int64_t rank = kept.size();
  kept.erase(kept.begin() + axis);
  SmallVector<AffineExpr> read, write;
  for (int64_t d = 0; d + 1 < rank; ++d)
    write.push_back(b.getAffineDimExpr(d));
  read = write;
  read.insert(read.begin() + axis, b.getAffineDimExpr(rank - 1));
  SmallVector<AffineMap> maps = {
      AffineMap::get(rank, 0, read, b.getContext()),
      AffineMap::get(rank, 0, write, b.getContext()),
      AffineMap::get(rank, 0, write, b.getContext())};
  SmallVector<utils::IteratorType> iterators(rank - 1,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value worst =
      isMax ? createLowest(b, loc, type) : createHighest(b, loc, type);
  Value best = createFilled(b, loc, kept, storeScalar(b, loc, worst, type));
  Value where =
      createFilled(b, loc, kept, createIntConstant(b, loc, b.getI64Type(), 0));
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{best.getType(), where.getType()},
      ValueRange{input.value}, ValueRange{best, where}, maps, iterators,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, type);
        Value x = loadScalar(n, at, args[0], type);
        Value old = loadScalar(n, at, args[1], type);
        Value better;
        if (lastOfEqual)
          better = isMax ? s.le(old, x) : s.le(x, old);
        else
          better = isMax ? s.lt(old, x) : s.lt(x, old);
        if (s.isFloat()) {
          // NaN wins over every number, and of several the one that is asked
          // for.
          Value wins =
              s.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
          if (!lastOfEqual) {
            Value oldIsNumber = s.createOrFold<arith::CmpFOp>(
                arith::CmpFPredicate::ORD, old, old);
            wins = s.createOrFold<arith::AndIOp>(wins, oldIsNumber);
          }
          better = s.createOrFold<arith::OrIOp>(better, wins);
        }
        Value index = arith::IndexCastOp::create(
            n, at, n.getI64Type(), linalg::IndexOp::create(n, at, rank - 1));
        Value next = s.select(better, args[0], args[1]);
        Value nextIndex = s.select(better, index, args[2]);
        linalg::YieldOp::create(n, at, ValueRange{next, nextIndex});
      });
  return generic.getResult(1);
}

namespace {

template <typename OpT, bool isMax> LogicalResult lowerArg(Lowering<OpT> &b) {
  auto type = dyn_cast<RankedTensorType>(b.in.getData().getType());
  if (!type)
    return b.refuse("the operand's rank is unknown");
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), type.getRank());
  if (failed(axis))
    return b.refuse("its axis is out of range");
  Value result = createArgReduction(b, b.getLoc(),
                                    getTyped(b.op.getData(), b.in.getData()),
                                    *axis, isMax, b.op.getSelectLastIndex());
  if (b.op.getKeepdims())
    result = unsqueeze(b, b.getLoc(), result, *axis);
  return b.replace(result);
}

} // namespace

void populateArgReductionPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  addLowering<onnx::ArgMaxOp, lowerArg<onnx::ArgMaxOp, true>>(patterns,
                                                              converter);
  addLowering<onnx::ArgMinOp, lowerArg<onnx::ArgMinOp, false>>(patterns,
                                                               converter);
}

} // namespace sardonyx
