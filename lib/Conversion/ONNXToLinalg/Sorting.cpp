//===- Sorting.cpp - TopK -------------------------------------------------===//
//
// Orders along one axis by a heap of the k best so far, whose root is the worst
// of them: of n elements most are compared with the root only. Of equal
// elements the one of the lower index is better.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"

#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The heaps of all rows, [rows,k], as what they are at some point of the
/// program.
struct Heaps {
  Value values, indices;

  SmallVector<Value> state() const { return {values, indices}; }
  static Heaps of(ValueRange state) { return {state[0], state[1]}; }
};

/// An element of a heap, as it is stored, and its place on the axis.
struct Entry {
  Value value, index;
};

/// Builds the selection of the best along the rows of a matrix.
class HeapSelection {
public:
  HeapSelection(Value input, Value k, Type onnxType, bool largest)
      : input(input), k(k), onnxType(onnxType), largest(largest) {}

  /// What the best k of each row are, the best first.
  Heaps build(OpBuilder &b, Location loc, Size rows);

private:
  Heaps selectRow(OpBuilder &b, Location loc, Value row, Heaps heaps);
  Heaps siftDown(OpBuilder &b, Location loc, Value row, Value from, Value count,
                 Heaps heaps);
  Entry read(OpBuilder &b, Location loc, Value row, Value slot, Heaps heaps);
  Heaps write(OpBuilder &b, Location loc, Value row, Value slot, Entry entry,
              Heaps heaps);
  Value isBefore(OpBuilder &b, Location loc, Value x, Value y);
  Value isWorse(OpBuilder &b, Location loc, Entry x, Entry y);
  Heaps
  loop(OpBuilder &b, Location loc, Value from, Value to, Heaps heaps,
       llvm::function_ref<Heaps(OpBuilder &, Location, Value, Heaps)> body);

  Value input, k;
  Type onnxType;
  bool largest;
  Value levels; // of a heap of k
};

Heaps HeapSelection::loop(
    OpBuilder &b, Location loc, Value from, Value to, Heaps heaps,
    llvm::function_ref<Heaps(OpBuilder &, Location, Value, Heaps)> body) {
  auto nest = scf::ForOp::create(
      b, loc, from, to, createIndex(b, loc, 1), heaps.state(),
      [&](OpBuilder &inner, Location at, Value i, ValueRange state) {
        Heaps next = body(inner, at, i, Heaps::of(state));
        scf::YieldOp::create(inner, at, next.state());
      });
  return Heaps::of(nest.getResults());
}

/// Whether the stored scalar `x` comes before `y` whatever their places are.
Value HeapSelection::isBefore(OpBuilder &b, Location loc, Value x, Value y) {
  x = loadScalar(b, loc, x, onnxType);
  y = loadScalar(b, loc, y, onnxType);
  if (isa<FloatType>(x.getType()))
    return arith::CmpFOp::create(
        b, loc, largest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT,
        x, y);
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = isUnsignedType(onnxType)
                            ? (largest ? Predicate::ugt : Predicate::ult)
                            : (largest ? Predicate::sgt : Predicate::slt);
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

Value HeapSelection::isWorse(OpBuilder &b, Location loc, Entry x, Entry y) {
  Value after = isBefore(b, loc, y.value, x.value);
  Value before = isBefore(b, loc, x.value, y.value);
  Value later = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                      x.index, y.index);
  Value none = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  Value tied = arith::SelectOp::create(b, loc, before, none, later);
  return arith::OrIOp::create(b, loc, after, tied);
}

Entry HeapSelection::read(OpBuilder &b, Location loc, Value row, Value slot,
                          Heaps heaps) {
  Value at[] = {row, slot};
  return {tensor::ExtractOp::create(b, loc, heaps.values, at),
          tensor::ExtractOp::create(b, loc, heaps.indices, at)};
}

Heaps HeapSelection::write(OpBuilder &b, Location loc, Value row, Value slot,
                           Entry entry, Heaps heaps) {
  Value at[] = {row, slot};
  return {tensor::InsertOp::create(b, loc, entry.value, heaps.values, at),
          tensor::InsertOp::create(b, loc, entry.index, heaps.indices, at)};
}

/// Lets the element in slot `from` of a heap of `count` sink to its level.
Heaps HeapSelection::siftDown(OpBuilder &b, Location loc, Value row, Value from,
                              Value count, Heaps heaps) {
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  auto sink = scf::ForOp::create(
      b, loc, zero, levels, one, ValueRange{heaps.values, heaps.indices, from},
      [&](OpBuilder &body, Location at, Value, ValueRange state) {
        Heaps heaps = Heaps::of(state);
        Value slot = state[2];
        Value left = arith::AddIOp::create(
            body, at, arith::AddIOp::create(body, at, slot, slot), one);
        Value right = arith::AddIOp::create(body, at, left, one);
        auto isIn = [&](OpBuilder &b, Value child) -> Value {
          return arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, child,
                                       count);
        };
        auto done = [&](OpBuilder &b) {
          scf::YieldOp::create(b, at,
                               ValueRange{heaps.values, heaps.indices, count});
        };
        auto step = scf::IfOp::create(
            body, at, isIn(body, left),
            [&](OpBuilder &then, Location at) {
              // Without a right child the left one stands for it.
              Value second = arith::SelectOp::create(
                  then, at, isIn(then, right), right, left);
              Entry here = read(then, at, row, slot, heaps);
              Entry x = read(then, at, row, left, heaps);
              Entry y = read(then, at, row, second, heaps);
              Value isRight = isWorse(then, at, y, x);
              auto pick = [&](Value ifRight, Value ifLeft) -> Value {
                return arith::SelectOp::create(then, at, isRight, ifRight,
                                               ifLeft);
              };
              Value child = pick(second, left);
              Entry worse = {pick(y.value, x.value), pick(y.index, x.index)};
              auto swap = scf::IfOp::create(
                  then, at, isWorse(then, at, worse, here),
                  [&](OpBuilder &b, Location at) {
                    Heaps next = write(b, at, row, slot, worse, heaps);
                    next = write(b, at, row, child, here, next);
                    scf::YieldOp::create(
                        b, at, ValueRange{next.values, next.indices, child});
                  },
                  [&](OpBuilder &b, Location) { done(b); });
              scf::YieldOp::create(then, at, swap.getResults());
            },
            [&](OpBuilder &otherwise, Location) { done(otherwise); });
        scf::YieldOp::create(body, at, step.getResults());
      });
  return Heaps::of(sink.getResults());
}

Heaps HeapSelection::selectRow(OpBuilder &b, Location loc, Value row,
                               Heaps heaps) {
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  Value extent = asIndex(b, loc, getSize(b, loc, input, 1));
  auto element = [&](OpBuilder &b, Location at, Value i) -> Entry {
    return {tensor::ExtractOp::create(b, at, input, ValueRange{row, i}),
            arith::IndexCastOp::create(b, at, b.getI64Type(), i)};
  };
  // The first k make a heap from the bottom up ...
  heaps = loop(b, loc, zero, k, heaps,
               [&](OpBuilder &b, Location at, Value i, Heaps heaps) {
                 return write(b, at, row, i, element(b, at, i), heaps);
               });
  Value half = arith::DivUIOp::create(b, loc, k, createIndex(b, loc, 2));
  heaps = loop(b, loc, zero, half, heaps,
               [&](OpBuilder &b, Location at, Value i, Heaps heaps) {
                 Value last = arith::SubIOp::create(b, at, half, one);
                 Value slot = arith::SubIOp::create(b, at, last, i);
                 return siftDown(b, at, row, slot, k, heaps);
               });
  // ... better ones take the place of the worst ...
  Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, k, zero);
  Value end = arith::SelectOp::create(b, loc, none, k, extent);
  heaps = loop(b, loc, k, end, heaps,
               [&](OpBuilder &b, Location at, Value i, Heaps heaps) {
                 Entry next = element(b, at, i);
                 Entry worst = read(b, at, row, zero, heaps);
                 auto branch = scf::IfOp::create(
                     b, at, isBefore(b, at, next.value, worst.value),
                     [&](OpBuilder &then, Location at) {
                       Heaps placed = write(then, at, row, zero, next, heaps);
                       placed = siftDown(then, at, row, zero, k, placed);
                       scf::YieldOp::create(then, at, placed.state());
                     },
                     [&](OpBuilder &otherwise, Location at) {
                       scf::YieldOp::create(otherwise, at, heaps.state());
                     });
                 return Heaps::of(branch.getResults());
               });
  // ... and the worst of all that are left goes last.
  return loop(b, loc, one, k, heaps,
              [&](OpBuilder &b, Location at, Value i, Heaps heaps) {
                Value last = arith::SubIOp::create(b, at, k, i);
                Entry worst = read(b, at, row, zero, heaps);
                Entry moved = read(b, at, row, last, heaps);
                Heaps next = write(b, at, row, last, worst, heaps);
                next = write(b, at, row, zero, moved, next);
                return siftDown(b, at, row, zero, last, next);
              });
}

Heaps HeapSelection::build(OpBuilder &b, Location loc, Size rows) {
  Type element = cast<RankedTensorType>(input.getType()).getElementType();
  Heaps heaps = {createEmpty(b, loc, {rows, Size(k)}, element),
                 createEmpty(b, loc, {rows, Size(k)}, b.getI64Type())};
  // The number of bits of k.
  Type i64 = b.getI64Type();
  Value zeros = math::CountLeadingZerosOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i64, k));
  levels = arith::SubIOp::create(
      b, loc, createIndex(b, loc, 64),
      arith::IndexCastOp::create(b, loc, b.getIndexType(), zeros));
  return loop(b, loc, createIndex(b, loc, 0), asIndex(b, loc, rows), heaps,
              [&](OpBuilder &b, Location at, Value row, Heaps heaps) {
                return selectRow(b, at, row, heaps);
              });
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
      return refuse(op, "axis out of range");
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
    HeapSelection selection(moved, k, getOnnxElementType(op.getX()),
                            op.getLargest() != 0);
    Heaps best = selection.build(rewriter, loc, rows);

    movedSizes.back() = Size(k);
    Value results[] = {best.values, best.indices};
    for (auto [i, value] : llvm::enumerate(results)) {
      value = reshape(rewriter, loc, value, movedSizes);
      value = transpose(rewriter, loc, value, back);
    }
    return replace(rewriter, op, results);
  }
};

} // namespace

void populateSortingPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  patterns.add<TopKLowering>(converter, patterns.getContext());
}

} // namespace sardonyx
