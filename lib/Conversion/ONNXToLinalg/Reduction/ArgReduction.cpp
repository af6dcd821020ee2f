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

#include <limits>

using namespace mlir;

namespace sardonyx {

/// Along the last axis, where elements lie beside each other: the best element,
/// then the first or last place that holds it (or NaN). Both reductions combine
/// vectors, which one that carries element and place along does not.
static Value findBest(OpBuilder &b, Location loc, TypedTensor input, bool isMax,
                      bool lastOfEqual) {
  Type type = input.onnxElementType;
  Sizes sizes = getSizes(b, loc, input.value), kept(sizes);
  kept.pop_back();
  const int64_t rank = sizes.size(), axis = rank - 1;
  Value best = reduceAxes(b, loc, input, {axis},
                          isMax ? ReductionKind::Max : ReductionKind::Min);
  const std::optional<int64_t> known = getStaticSize(sizes.back());
  const bool isShort = known && *known <= std::numeric_limits<int32_t>::max();
  Type placeType = b.getIntegerType(isShort ? 32 : 64);
  // What stands for other places; also the result where there is none at all.
  Value none = lastOfEqual ? createIntConstant(b, loc, placeType, 0)
               : known ? createIntConstant(b, loc, placeType, *known)
                       : arith::IndexCastOp::create(b, loc, placeType,
                                                    cast<Value>(sizes.back()))
                             .getResult();
  AffineMap all = b.getMultiDimIdentityMap(rank);
  AffineMap rows = all.dropResult(axis);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  Value start = createFilled(b, loc, kept, none);
  auto places = linalg::GenericOp::create(
      b, loc, TypeRange{start.getType()}, ValueRange{input.value, best},
      ValueRange{start}, {all, rows, rows}, iterators,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, type);
        Value x = loadScalar(n, at, args[0], type);
        Value isBest = s.eq(x, loadScalar(n, at, args[1], type));
        if (s.isFloat())
          isBest = s.createOrFold<arith::OrIOp>(
              isBest,
              s.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x));
        Value place = arith::IndexCastOp::create(
            n, at, placeType, linalg::IndexOp::create(n, at, axis));
        place = s.select(isBest, place, none);
        Value found =
            lastOfEqual
                ? arith::MaxSIOp::create(n, at, args[2], place).getResult()
                : arith::MinSIOp::create(n, at, args[2], place).getResult();
        linalg::YieldOp::create(n, at, found);
      });
  if (!isShort)
    return places.getResult(0);
  TypedTensor result{places.getResult(0), placeType};
  return createMapped(
      b, loc, result, b.getMultiDimIdentityMap(rank - 1), kept, b.getI64Type(),
      [&](OpBuilder &n, Location at, ValueRange args) {
        return arith::ExtSIOp::create(n, at, n.getI64Type(), args.front())
            .getResult();
      });
}

Value createArgReduction(OpBuilder &b, Location loc, TypedTensor input,
                         int64_t axis, bool isMax, bool lastOfEqual) {
  Type type = input.onnxElementType;
  Sizes kept = getSizes(b, loc, input.value);
  int64_t rank = kept.size();
  if (axis == rank - 1)
    return findBest(b, loc, input, isMax, lastOfEqual);
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
