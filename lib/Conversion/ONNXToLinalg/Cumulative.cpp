//===- Cumulative.cpp - CumSum, CumProd -----------------------------------===//
//
// An element of the result is reduced from the operand's elements before it:
// quadratic in the number of them, but parallel. A long axis is taken in
// blocks, each of which goes on from where the one before ended.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "ReductionKinds.h"
#include "TensorBuilder.h"

#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {

namespace {

/// Elements of the axis in a block.
constexpr int64_t kBlock = 32;

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

  Value buildInBlocks(TensorBuilder &b, Value x, int64_t axis) {
    Location loc = b.getLoc();
    Sizes sizes = b.dims(x), kept = sizes;
    kept.erase(kept.begin() + axis);
    SmallVector<Value> isAxis;
    for (size_t d = 0; d < sizes.size(); ++d)
      isAxis.push_back(
          arith::ConstantIntOp::create(b, d == size_t(axis), /*width=*/1));
    SmallVector<AffineExpr> across;
    for (int64_t d = 0; d < int64_t(sizes.size()); ++d)
      if (d != axis)
        across.push_back(b.getAffineDimExpr(d));
    auto repeat = AffineMap::get(sizes.size(), 0, across, b.getContext());

    Value total = createFilled(b, loc, kept, neutral(b));
    Value result = b.empty(sizes, convertElementType(accumulator));
    Value end = b.index(sizes[axis]);
    auto loop = scf::ForOp::create(
        b, b.index(int64_t(0)), end, b.index(kBlock), ValueRange{total, result},
        [&](OpBuilder &builder, Location at, Value begin, ValueRange args) {
          TensorBuilder s(at, builder);
          Value left = s.sub(end, begin);
          Value count = s.minimum(left, s.index(kBlock));
          Sizes offsets(sizes.size(), s.size(0)), part = sizes;
          offsets[axis] = reverse ? s.sub(left, count) : begin;
          part[axis] = count;
          Value piece = slice(s, at, x, offsets, part);
          Value dest = createMapped(
              s, at, {{args[0], accumulator}}, {repeat}, part, accumulator,
              [](OpBuilder &, Location, ValueRange one) { return one[0]; });
          Value made = reduceBefore(s, piece, dest, isAxis, count);
          Value last = reverse ? s.index(int64_t(0)) : s.sub(count, s.index(1));
          Value next = s.subTensor(made, axis, last);
          if (exclusive)
            next = combineWith(s, next, s.subTensor(piece, axis, last));
          scf::YieldOp::create(
              s, ValueRange{next,
                            insertSlice(s, at, made, args[1], offsets, part)});
        });
    return round(b, loop.getResult(1));
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

  Value combineWith(TensorBuilder &b, Value totals, Value elements) {
    Sizes sizes = b.dims(totals);
    AffineMap map = b.getMultiDimIdentityMap(sizes.size());
    return createMapped(
        b, b.getLoc(), {{totals, accumulator}, {elements, type}}, {map, map},
        sizes, accumulator, [&](OpBuilder &n, Location at, ValueRange args) {
          return combine(n, at, args[0], args[1]);
        });
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

template <typename OpT, bool isProduct>
struct CumulativePattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = adaptor.getX();
    auto type = dyn_cast<RankedTensorType>(x.getType());
    if (!type || type.getRank() == 0)
      return rewriter.notifyMatchFailure(op, "the operand has no known axis");
    FailureOr<SmallVector<Value>> axes =
        getIntListAsIndices(rewriter, loc, adaptor.getAxis(), 1, "axis");
    if (failed(axes))
      return rewriter.notifyMatchFailure(op, "axis is not one number");
    CumulativeBuilder builder(getOnnxElementType(op.getX()), isProduct,
                              op.getExclusive(), op.getReverse());
    TensorBuilder b(loc, rewriter);
    if (std::optional<int64_t> known = getStaticSize(Size(axes->front()))) {
      FailureOr<int64_t> axis = normalizeAxis(*known, type.getRank());
      if (failed(axis))
        return rewriter.notifyMatchFailure(op, "its axis is out of range");
      int64_t size = type.getDimSize(*axis);
      if (ShapedType::isDynamic(size) || size > kBlock)
        return this->replace(rewriter, op, builder.buildInBlocks(b, x, *axis));
    }
    auto [isAxis, extent] = findAxis(rewriter, loc, x, axes->front());
    return this->replace(rewriter, op,
                         builder.buildWhole(b, x, isAxis, extent));
  }

private:
  /// An i1 for each dimension that says whether it is the axis, and the axis'
  /// size.
  static std::pair<SmallVector<Value>, Value>
  findAxis(OpBuilder &b, Location loc, Value x, Value given) {
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
      extent = b.createOrFold<arith::SelectOp>(
          loc, here, asIndex(b, loc, sizes[d]), extent);
    }
    createCheck(b, loc, valid, "axis {0} is out of range", {Size(given)});
    return {isAxis, extent};
  }
};

} // namespace

void populateCumulativePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<CumulativePattern<onnx::CumSumOp, false>,
               CumulativePattern<onnx::CumProdOp, true>>(converter,
                                                         patterns.getContext());
}

} // namespace sardonyx
