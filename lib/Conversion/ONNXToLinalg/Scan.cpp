//===- Scan.cpp - ArgMax, ArgMin, CumSum, CumProd -------------------------===//

#include "Checks.h"
#include "ReductionKinds.h"

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
          // The first NaN wins over everything.
          Value isNaN =
              s.createOrFold<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
          Value oldIsNumber = s.createOrFold<arith::CmpFOp>(
              arith::CmpFPredicate::ORD, old, old);
          Value firstNaN = s.createOrFold<arith::AndIOp>(isNaN, oldIsNumber);
          better = s.createOrFold<arith::OrIOp>(better, firstNaN);
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

template <typename OpT, bool isMax> struct ArgPattern : OnnxPattern<OpT> {
  using OnnxPattern<OpT>::OnnxPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OnnxPattern<OpT>::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(adaptor.getData().getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "the operand's rank is unknown");
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), type.getRank());
    if (failed(axis))
      return rewriter.notifyMatchFailure(op, "its axis is out of range");
    Value result = createArgReduction(rewriter, op.getLoc(),
                                      getTyped(op.getData(), adaptor.getData()),
                                      *axis, isMax, op.getSelectLastIndex());
    if (op.getKeepdims())
      result = unsqueeze(rewriter, op.getLoc(), result, *axis);
    return this->replace(rewriter, op, result);
  }
};

/// Each element of the result is reduced from those before it: quadratic in the
/// axis' size, but parallel, and the axis may be known at run time only.
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
    int64_t rank = type.getRank();
    // One i1 for each dimension: is it the axis?
    SmallVector<Value> isAxis;
    FailureOr<SmallVector<Value>> axes =
        getIntListAsIndices(rewriter, loc, adaptor.getAxis(), 1, "axis");
    if (failed(axes))
      return rewriter.notifyMatchFailure(op, "axis is not one number");
    Value given = axes->front(), axis = given;
    Value negative =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, axis,
                              createIndex(rewriter, loc, 0));
    Value wrapped = arith::AddIOp::create(rewriter, loc, axis,
                                          createIndex(rewriter, loc, rank));
    axis = arith::SelectOp::create(rewriter, loc, negative, wrapped, axis);
    Sizes sizes = getSizes(rewriter, loc, x);
    Value extent = createIndex(rewriter, loc, 1);
    Value valid;
    for (int64_t d = 0; d < rank; ++d) {
      Value here = rewriter.createOrFold<arith::CmpIOp>(
          loc, arith::CmpIPredicate::eq, axis, createIndex(rewriter, loc, d));
      isAxis.push_back(here);
      valid =
          valid ? rewriter.createOrFold<arith::OrIOp>(loc, valid, here) : here;
      extent = rewriter.createOrFold<arith::SelectOp>(
          loc, here, asIndex(rewriter, loc, sizes[d]), extent);
    }
    createCheck(rewriter, loc, valid, "axis {0} is out of range",
                {Size(given)});
    return this->replace(rewriter, op,
                         build(rewriter, op, x, sizes, isAxis, extent));
  }

private:
  static Value build(OpBuilder &b, OpT op, Value x, ArrayRef<Size> sizes,
                     ArrayRef<Value> isAxis, Value extent) {
    Location loc = op.getLoc();
    int64_t rank = sizes.size();
    Type type = getOnnxElementType(op.getX());
    Type accumulator =
        type.isF16() || type.isBF16() ? Type(b.getF32Type()) : type;
    Value init = createIntConstant(b, loc, getComputeType(accumulator),
                                   isProduct ? 1 : 0);
    Value dest = createFilled(b, loc, sizes, init);
    Value steps = createEmpty(b, loc, {Size(extent)}, b.getI8Type());
    SmallVector<utils::IteratorType> iterators(rank,
                                               utils::IteratorType::parallel);
    iterators.push_back(utils::IteratorType::reduction);
    SmallVector<AffineExpr> outer;
    for (int64_t d = 0; d < rank; ++d)
      outer.push_back(b.getAffineDimExpr(d));
    SmallVector<AffineMap> maps = {
        AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank), b.getContext()),
        AffineMap::get(rank + 1, 0, outer, b.getContext())};
    bool exclusive = op.getExclusive(), reverse = op.getReverse();
    auto generic = linalg::GenericOp::create(
        b, loc, TypeRange{dest.getType()}, ValueRange{steps}, ValueRange{dest},
        maps, iterators, [&](OpBuilder &n, Location at, ValueRange args) {
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
          element = loadScalar(n, at, element, type);
          element = castScalar(n, at, element, type, accumulator);
          ScalarBuilder s(n, at, accumulator);
          Value next =
              isProduct ? s.mul(args[1], element) : s.add(args[1], element);
          linalg::YieldOp::create(n, at, s.select(counts, next, args[1]));
        });
    Value result = generic.getResult(0);
    if (accumulator == type)
      return result;
    return createMapped(
        b, loc, {{result, accumulator}}, {b.getMultiDimIdentityMap(rank)},
        sizes, type,
        [](OpBuilder &, Location, ValueRange args) { return args.front(); });
  }
};

} // namespace

void populateScanPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  patterns
      .add<ArgPattern<onnx::ArgMaxOp, true>, ArgPattern<onnx::ArgMinOp, false>,
           CumulativePattern<onnx::CumSumOp, false>,
           CumulativePattern<onnx::CumProdOp, true>>(converter,
                                                     patterns.getContext());
}

} // namespace sardonyx
