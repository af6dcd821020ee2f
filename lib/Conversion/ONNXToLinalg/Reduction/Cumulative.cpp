//===- Cumulative.cpp - CumSum, CumProd -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a short axis, or one that only the run tells, an element of the result
// is reduced from the operand's elements before it: quadratic in the number of
// them, but parallel. A long axis is gone through once.
//
//===----------------------------------------------------------------------===//

#include "Reduction/ReductionKinds.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {

namespace {

/// A longer axis is long.
constexpr int64_t kLong = 32;

class CumulativeBuilder {
public:
  CumulativeBuilder(Type type, bool isProduct, bool exclusive, bool reverse)
      : type(type), isProduct(isProduct), exclusive(exclusive),
        reverse(reverse) {
    // Half precision is rounded once.
    accumulator = type.isF16() || type.isBF16()
                      ? Type(Float32Type::get(type.getContext()))
                      : type;
  }

  /// Along the axis for which `isAxis` (an i1 for each dimension) holds, whose
  /// size is `extent`.
  Value buildWhole(TensorBuilder &b, Value x, ArrayRef<Value> isAxis,
                   Value extent) {
    Value dest = createFilled(b, b.getLoc(), b.dims(x), neutral(b));
    return round(b, reduceBefore(b, x, dest, isAxis, extent));
  }

  /// By one pass along dimension `axis`.
  Value buildScan(TensorBuilder &b, Value x, int64_t axis) {
    Location loc = b.getLoc();
    Sizes sizes = b.dims(x);
    Size before = b.product(ArrayRef<Size>(sizes).take_front(axis));
    Size after = b.product(ArrayRef<Size>(sizes).drop_front(axis + 1));
    Value end = b.index(sizes[axis]), rows = b.index(before);
    Value columns = b.index(after);
    x = reshape(b, loc, x, {before, sizes[axis], after});
    Type stored = convertElementType(accumulator);
    Value result = b.empty({before, sizes[axis], after}, stored);
    Value totals = b.empty({after}, stored);
    Value zero = b.index(int64_t(0)), one = b.index(1), last = b.sub(end, one);
    // State: the result and, for each column, the total so far.
    auto step = [&](OpBuilder &o, Location at, Value row, ValueRange indices,
                    ValueRange state) -> scf::ValueVector {
      TensorBuilder s(at, o);
      Value column = indices[1];
      Value place = reverse ? s.sub(last, indices[0]) : indices[0];
      Value total = s.extract(state[1], column);
      total = loadScalar(s, at, total, accumulator);
      Value element = s.extract(x, {row, place, column});
      Value next = combine(s, at, total, loadScalar(s, at, element, type));
      Value put = storeScalar(s, at, exclusive ? total : next, accumulator);
      next = storeScalar(s, at, next, accumulator);
      return {tensor::InsertOp::create(s, put, state[0],
                                       ValueRange{row, place, column}),
              tensor::InsertOp::create(s, next, state[1], column)};
    };
    auto scanRow = [&](OpBuilder &o, Location at, ValueRange row,
                       ValueRange state) -> scf::ValueVector {
      Value start = storeScalar(o, at, neutral(o, at), accumulator);
      scf::LoopNest cleared = scf::buildLoopNest(
          o, at, zero, columns, one, state[1],
          [&](OpBuilder &n, Location in, ValueRange i,
              ValueRange totals) -> scf::ValueVector {
            return {tensor::InsertOp::create(n, in, start, totals[0], i)};
          });
      return scf::buildLoopNest(o, at, {zero, zero}, {end, columns}, {one, one},
                                {state[0], cleared.results[0]},
                                [&](OpBuilder &n, Location in, ValueRange i,
                                    ValueRange state) {
                                  return step(n, in, row[0], i, state);
                                })
          .results;
    };
    scf::LoopNest scan =
        scf::buildLoopNest(b, loc, zero, rows, one, {result, totals}, scanRow);
    return round(b, reshape(b, loc, scan.results[0], sizes));
  }

private:
  Value neutral(OpBuilder &b, Location loc) {
    return createIntConstant(b, loc, getComputeType(accumulator),
                             isProduct ? 1 : 0);
  }
  Value neutral(TensorBuilder &b) { return neutral(b, b.getLoc()); }

  Value combine(OpBuilder &b, Location loc, Value total, Value element) {
    element = castScalar(b, loc, element, type, accumulator);
    ScalarBuilder s(b, loc, accumulator);
    return isProduct ? s.mul(total, element) : s.add(total, element);
  }

  /// The result's elements from those of `x` before them, beginning with
  /// `dest`.
  Value reduceBefore(TensorBuilder &b, Value x, Value dest,
                     ArrayRef<Value> isAxis, Value extent) {
    int64_t rank = isAxis.size();
    Value steps = createEmpty(b, b.getLoc(), {Size(extent)}, b.getI8Type());
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.push_back(utils::IteratorType::reduction);
    SmallVector<AffineExpr> outer;
    for (int64_t d = 0; d < rank; ++d)
      outer.push_back(b.getAffineDimExpr(d));
    SmallVector<AffineMap> maps = {
        AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank), b.getContext()),
        AffineMap::get(rank + 1, 0, outer, b.getContext())};
    auto generic = linalg::GenericOp::create(
        b, TypeRange{dest.getType()}, ValueRange{steps}, ValueRange{dest}, maps,
        iterators, [&](OpBuilder &n, Location at, ValueRange args) {
          Value step = linalg::IndexOp::create(n, at, rank);
          SmallVector<Value> position;
          Value here;
          for (int64_t d = 0; d < rank; ++d) {
            Value index = linalg::IndexOp::create(n, at, d);
            here = here ? n.createOrFold<arith::SelectOp>(at, isAxis[d], index,
                                                          here)
                        : index;
            position.push_back(
                n.createOrFold<arith::SelectOp>(at, isAxis[d], step, index));
          }
          auto predicate = reverse ? (exclusive ? arith::CmpIPredicate::sgt
                                                : arith::CmpIPredicate::sge)
                                   : (exclusive ? arith::CmpIPredicate::slt
                                                : arith::CmpIPredicate::sle);
          Value counts = arith::CmpIOp::create(n, at, predicate, step, here);
          Value element = tensor::ExtractOp::create(n, at, x, position);
          Value next =
              combine(n, at, args[1], loadScalar(n, at, element, type));
          ScalarBuilder s(n, at, accumulator);
          linalg::YieldOp::create(n, at, s.select(counts, next, args[1]));
        });
    return generic.getResult(0);
  }

  Value round(TensorBuilder &b, Value totals) {
    if (accumulator == type)
      return totals;
    Sizes sizes = b.dims(totals);
    return createMapped(
        b, b.getLoc(), {{totals, accumulator}},
        {b.getMultiDimIdentityMap(sizes.size())}, sizes, type,
        [](OpBuilder &, Location, ValueRange args) { return args.front(); });
  }

  Type type, accumulator;
  bool isProduct, exclusive, reverse;
};

/// An i1 for each dimension that says whether it is the axis, and the axis'
/// size.
std::pair<SmallVector<Value>, Value> findAxis(OpBuilder &b, Location loc,
                                              Value x, Value given) {
  Sizes sizes = getSizes(b, loc, x);
  int64_t rank = sizes.size();
  Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         given, createIndex(b, loc, 0));
  Value wrapped =
      arith::AddIOp::create(b, loc, given, createIndex(b, loc, rank));
  Value axis = arith::SelectOp::create(b, loc, negative, wrapped, given);
  SmallVector<Value> isAxis;
  Value extent = createIndex(b, loc, 1), valid;
  for (int64_t d = 0; d < rank; ++d) {
    Value here = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                               axis, createIndex(b, loc, d));
    isAxis.push_back(here);
    valid = valid ? b.createOrFold<arith::OrIOp>(loc, valid, here) : here;
    extent = b.createOrFold<arith::SelectOp>(loc, here,
                                             asIndex(b, loc, sizes[d]), extent);
  }
  createCheck(b, loc, valid, "axis {0} is out of range", {Size(given)});
  return {isAxis, extent};
}

template <typename OpT, bool isProduct>
LogicalResult lowerCumulative(Lowering<OpT> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  auto type = dyn_cast<RankedTensorType>(x.getType());
  if (!type || type.getRank() == 0)
    return b.refuse("the operand has no known axis");
  FailureOr<SmallVector<Value>> axes =
      getIntListAsIndices(b, loc, b.in.getAxis(), 1, "axis");
  if (failed(axes))
    return b.refuse("axis is not one number");
  CumulativeBuilder builder(getOnnxElementType(b.op.getX()), isProduct,
                            b.op.getExclusive(), b.op.getReverse());
  if (std::optional<int64_t> known = getStaticSize(Size(axes->front()))) {
    FailureOr<int64_t> axis = normalizeAxis(*known, type.getRank());
    if (failed(axis))
      return b.refuse("its axis is out of range");
    int64_t size = type.getDimSize(*axis);
    if (ShapedType::isDynamic(size) || size > kLong)
      return b.replace(builder.buildScan(b, x, *axis));
  }
  auto [isAxis, extent] = findAxis(b, loc, x, axes->front());
  return b.replace(builder.buildWhole(b, x, isAxis, extent));
}

} // namespace

void populateCumulativePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  addLowering<onnx::CumSumOp, lowerCumulative<onnx::CumSumOp, false>>(
      patterns, converter);
  addLowering<onnx::CumProdOp, lowerCumulative<onnx::CumProdOp, true>>(
      patterns, converter);
}

} // namespace sardonyx
