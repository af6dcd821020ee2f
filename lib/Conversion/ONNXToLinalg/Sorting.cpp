//===- Sorting.cpp - TopK -------------------------------------------------===//
//
// Orders along one axis, by insertion: K is small next to the axis in what
// models ask for, and ties must keep the lower index.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Whether stored scalar `x` stands before `y` or beside it.
Value isNotAfter(OpBuilder &b, Location loc, Value x, Value y, Type onnxType,
                 bool largest) {
  x = loadScalar(b, loc, x, onnxType);
  y = loadScalar(b, loc, y, onnxType);
  if (isa<FloatType>(x.getType())) {
    auto predicate =
        largest ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OLE;
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  bool isUnsigned = isUnsignedType(onnxType);
  arith::CmpIPredicate predicate =
      largest
          ? (isUnsigned ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge)
          : (isUnsigned ? arith::CmpIPredicate::ule
                        : arith::CmpIPredicate::sle);
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

struct TopKLowering : OnnxPattern<onnx::TopKOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::TopKOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = adaptor.getX();
    Sizes sizes = getSizes(rewriter, loc, x);
    int64_t rank = sizes.size();
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), rank);
    if (failed(axis))
      return rewriter.notifyMatchFailure(op, "axis out of range");
    Value k = toIndex(rewriter, loc, getScalar(rewriter, loc, adaptor.getK()));
    Value extent = asIndex(rewriter, loc, sizes[*axis]);
    Value fits = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ule,
                                       k, extent);
    createCheck(rewriter, loc, fits, "k is {0}, and the axis has {1} elements",
                {Size(k), Size(extent)});
    k = arith::SelectOp::create(rewriter, loc, fits, k, extent);

    // The axis goes last, everything else is rows.
    SmallVector<int64_t> order, back(rank);
    for (int64_t dim = 0; dim < rank; ++dim)
      if (dim != *axis)
        order.push_back(dim);
    order.push_back(*axis);
    for (auto [to, from] : llvm::enumerate(order))
      back[from] = to;
    Value moved = transpose(rewriter, loc, x, order);
    Sizes movedSizes = getSizes(rewriter, loc, moved);
    Size rows =
        productOfSizes(rewriter, loc, ArrayRef<Size>(movedSizes).drop_back());
    moved = reshape(rewriter, loc, moved, {rows, movedSizes.back()});
    auto [values, indices] =
        select(rewriter, loc, moved, rows, k, getOnnxElementType(op.getX()),
               op.getLargest() != 0);

    movedSizes.back() = Size(k);
    Value results[] = {values, indices};
    for (auto [i, value] : llvm::enumerate(results)) {
      value = reshape(rewriter, loc, value, movedSizes);
      value = transpose(rewriter, loc, value, back);
    }
    return replace(rewriter, op, results);
  }

private:
  static std::pair<Value, Value> select(OpBuilder &b, Location loc, Value input,
                                        Size rows, Value k, Type onnxType,
                                        bool largest) {
    Type element = cast<RankedTensorType>(input.getType()).getElementType();
    Value values = createEmpty(b, loc, {rows, Size(k)}, element);
    Value indices = createEmpty(b, loc, {rows, Size(k)}, b.getI64Type());
    Value extent = asIndex(b, loc, getSize(b, loc, input, 1));
    Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
    scf::LoopNest nest = scf::buildLoopNest(
        b, loc, {zero, zero}, {asIndex(b, loc, rows), extent}, {one, one},
        {values, indices},
        [&](OpBuilder &inner, Location at, ValueRange i,
            ValueRange state) -> scf::ValueVector {
          Value candidate = tensor::ExtractOp::create(inner, at, input, i);
          Value held = arith::MinSIOp::create(inner, at, i[1], k);
          auto before = scf::ForOp::create(
              inner, at, zero, held, one, zero,
              [&](OpBuilder &body, Location where, Value t, ValueRange count) {
                Value other = tensor::ExtractOp::create(body, where, state[0],
                                                        ValueRange{i[0], t});
                Value stays = isNotAfter(body, where, other, candidate,
                                         onnxType, largest);
                Value add =
                    arith::SelectOp::create(body, where, stays, one, zero);
                Value sum =
                    arith::AddIOp::create(body, where, count.front(), add);
                scf::YieldOp::create(body, where, sum);
              });
          return insert(inner, at, i, before.getResult(0), candidate, k, state);
        });
    return {nest.results[0], nest.results[1]};
  }

  /// Puts `candidate` (number i[1] of row i[0]) at `position` if that is among
  /// the first k, moving what follows down by one.
  static scf::ValueVector insert(OpBuilder &b, Location loc, ValueRange i,
                                 Value position, Value candidate, Value k,
                                 ValueRange state) {
    Value one = createIndex(b, loc, 1);
    Value wanted =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, k);
    Value lastSlot = arith::SubIOp::create(b, loc, k, one);
    Value end = arith::MinSIOp::create(b, loc, i[1], lastSlot);
    auto branch = scf::IfOp::create(
        b, loc, wanted,
        [&](OpBuilder &then, Location at) {
          auto shift = scf::ForOp::create(
              then, at, position, end, one, state,
              [&](OpBuilder &body, Location where, Value t, ValueRange inner) {
                // t counts up from `position`; the slots are moved from `end`.
                Value offset = arith::SubIOp::create(body, where, t, position);
                Value to = arith::SubIOp::create(body, where, end, offset);
                Value from = arith::SubIOp::create(body, where, to, one);
                SmallVector<Value> next;
                for (Value tensor : inner) {
                  Value moved = tensor::ExtractOp::create(
                      body, where, tensor, ValueRange{i[0], from});
                  next.push_back(tensor::InsertOp::create(
                      body, where, moved, tensor, ValueRange{i[0], to}));
                }
                scf::YieldOp::create(body, where, next);
              });
          Value number =
              arith::IndexCastOp::create(then, at, then.getI64Type(), i[1]);
          Value first =
              tensor::InsertOp::create(then, at, candidate, shift.getResult(0),
                                       ValueRange{i[0], position});
          Value second = tensor::InsertOp::create(
              then, at, number, shift.getResult(1), ValueRange{i[0], position});
          scf::YieldOp::create(then, at, ValueRange{first, second});
        },
        [&](OpBuilder &otherwise, Location at) {
          scf::YieldOp::create(otherwise, at, state);
        });
    return {branch.getResult(0), branch.getResult(1)};
  }
};

} // namespace

void populateSortingPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  patterns.add<TopKLowering>(converter, patterns.getContext());
}

} // namespace sardonyx
