//===- Fourier.cpp - DFT and STFT -----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both bring their signals into lines, with the real and imaginary parts as
// tensors of their own.
//
//===----------------------------------------------------------------------===//

#include "Signal/Fourier.h"
#include "Support/Patterns.h"

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// [P, bins, T, parts] of the first bins of a result, each times `scale`.
Value interleave(TensorBuilder &b, const Lines &x, OpFoldResult bins,
                 int64_t parts, Value scale, Type type) {
  Sizes lines = b.dims(x.parts.re);
  Sizes sizes = {lines[1], bins, lines[3], b.size(parts)};
  return createIndexed(
      b, b.getLoc(), sizes, type,
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Values place = x.place(s, i[1], i[0], i[2]);
        Value value = s.extract(x.parts.re, place);
        if (parts == 2) {
          Value isReal = s.compare(arith::CmpIPredicate::eq, i.back(),
                                   s.index(int64_t(0)));
          value = s.select(isReal, value, s.extract(x.parts.im, place));
        }
        if (scale)
          value = arith::DivFOp::create(s, value, scale);
        return s.convert(value, type);
      });
}

/// A scalar of integers as an index in [low, 2^30]: lengths and steps.
FailureOr<OpFoldResult> getCount(TensorBuilder &b, Value given, int64_t low,
                                 const Twine &name) {
  Location loc = b.getLoc();
  OpFoldResult count;
  if (std::optional<SmallVector<int64_t>> known = getConstantInts(given);
      known && known->size() == 1)
    count = b.size(known->front());
  else
    count = toIndex(b, loc, getScalar(b, loc, given));
  if (failed(checkRange(b, loc, count, low, int64_t(1) << 30,
                        "input '" + name + "' is impossible")))
    return failure();
  return count;
}

//===----------------------------------------------------------------------===//
// DFT
//===----------------------------------------------------------------------===//

/// A tensor whose dimension `axis` is transformed: [P, n, T, parts].
struct Signal {
  Value tensor;

  /// The number at a place, in a float type: zero past the end, the imaginary
  /// part of real numbers is zero.
  Complex read(TensorBuilder &b, Value row, Value i, Value column,
               Type type) const {
    Value zero = b.index(int64_t(0)), none = b.scalar(type, 0);
    Value extent = b.index(b.dim(tensor, 1));
    Value parts = b.index(b.dim(tensor, 3));
    Value isIn = b.compare(arith::CmpIPredicate::slt, i, extent);
    Values numbers = when(b, isIn, {none, none}, [&](TensorBuilder &s) {
      Value last = s.sub(parts, s.index(1));
      Value re = s.convert(s.extract(tensor, {row, i, column, zero}), type);
      Value im = s.convert(s.extract(tensor, {row, i, column, last}), type);
      Value isReal = s.compare(arith::CmpIPredicate::eq, last, zero);
      return Values{re, s.select(isReal, none, im)};
    });
    return {numbers[0], numbers[1]};
  }
};

/// The `length` numbers to transform. Those past the middle of a one-sided
/// spectrum are the conjugates of those before it.
Lines load(TensorBuilder &b, Signal signal, OpFoldResult length, bool inverse,
           bool isHalf) {
  OpFoldResult columns = b.dim(signal.tensor, 2);
  TransformForm form =
      TransformForm::of(length, columns, elementTypeOf(signal.tensor), inverse);
  Value count = b.index(length);
  auto body = [&](TensorBuilder &s, Value i, Value row, Value column) {
    if (!isHalf)
      return signal.read(s, row, i, column, form.type);
    Value mirror = s.sub(count, i);
    Value isLow = s.compare(arith::CmpIPredicate::sle, i, mirror);
    Value place = s.select(isLow, i, mirror);
    Complex value = signal.read(s, row, place, column, form.type);
    Value conjugate = arith::NegFOp::create(s, value.im);
    return Complex{value.re, s.select(isLow, value.im, conjugate)};
  };
  return makeLines(b, b.dim(signal.tensor, 0), length, columns, form.width,
                   form.type, body);
}

OpFoldResult halfOf(TensorBuilder &b, OpFoldResult length) {
  return b.plus(b.floorDiv(length, b.size(2)), 1);
}

/// The sizes before, of and after an axis, which may be known to the run only.
/// The last dimension, of real and imaginary part, is none of them.
struct AxisSizes {
  OpFoldResult outer, extent, inner;
  /// Whether a dimension is the axis, null where the axis is known.
  SmallVector<Value> isAxis;
  int64_t axis = 0;

  static FailureOr<AxisSizes> of(TensorBuilder &b, ArrayRef<OpFoldResult> sizes,
                                 Value given);
  /// `sizes` with that of the axis replaced.
  Sizes replace(TensorBuilder &b, ArrayRef<OpFoldResult> sizes,
                OpFoldResult length) const;
};

FailureOr<AxisSizes> AxisSizes::of(TensorBuilder &b,
                                   ArrayRef<OpFoldResult> sizes, Value given) {
  int64_t rank = sizes.size();
  AxisSizes result;
  std::optional<SmallVector<int64_t>> known = SmallVector<int64_t>{-2};
  if (given)
    known = getConstantInts(given);
  if (known && known->size() == 1) {
    FailureOr<int64_t> axis = normalizeAxis(known->front(), rank);
    if (failed(axis) || *axis == rank - 1)
      return failure();
    result.axis = *axis;
    result.outer = b.product(sizes.take_front(*axis));
    result.extent = sizes[*axis];
    result.inner = b.product(sizes.drop_front(*axis + 1).drop_back());
    return result;
  }
  Value axis = toIndex(b, b.getLoc(), getScalar(b, b.getLoc(), given));
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value negative = b.compare(arith::CmpIPredicate::slt, axis, zero);
  Value wrapped = b.select(negative, b.add(axis, b.index(rank)), axis);
  Value fits = b.compare(arith::CmpIPredicate::ult, wrapped, b.index(rank - 1));
  createCheck(b, b.getLoc(), fits, "axis {0} is out of range", {Size(axis)});
  axis = b.select(fits, wrapped, zero);
  Value outer = one, extent = one, inner = one;
  for (int64_t dim = 0; dim < rank - 1; ++dim) {
    auto choose = [&](arith::CmpIPredicate predicate, Value product) {
      Value is = b.compare(predicate, b.index(dim), axis);
      return b.mul(product, b.select(is, b.index(sizes[dim]), one));
    };
    outer = choose(arith::CmpIPredicate::slt, outer);
    extent = choose(arith::CmpIPredicate::eq, extent);
    inner = choose(arith::CmpIPredicate::sgt, inner);
    result.isAxis.push_back(
        b.compare(arith::CmpIPredicate::eq, b.index(dim), axis));
  }
  result.outer = outer;
  result.extent = extent;
  result.inner = inner;
  return result;
}

Sizes AxisSizes::replace(TensorBuilder &b, ArrayRef<OpFoldResult> sizes,
                         OpFoldResult length) const {
  Sizes result(sizes);
  if (isAxis.empty())
    result[axis] = length;
  for (auto [dim, is] : llvm::enumerate(isAxis))
    result[dim] = b.select(is, b.index(length), b.index(sizes[dim]));
  return result;
}

LogicalResult lowerDFT(Lowering<onnx::DFTOp> &b) {
  Value input = b.in.getInput();
  Sizes sizes = b.dims(input);
  bool inverse = b.op.getInverse() != 0, onesided = b.op.getOnesided() != 0;
  if (sizes.size() < 2)
    return b.refuse("needs a dimension to transform");
  if (failed(checkRange(b, b.getLoc(), sizes.back(), 1, 2,
                        "numbers have one part or two")))
    return b.refuse("numbers have one part or two");
  FailureOr<AxisSizes> around = AxisSizes::of(b, sizes, b.in.getAxis());
  if (failed(around))
    return b.refuse("axis out of range");
  OpFoldResult length = around->extent;
  if (inverse && onesided)
    length = b.times(b.minus(length, b.size(1)), 2);
  if (Value given = b.in.getDftLength()) {
    FailureOr<OpFoldResult> count = getCount(b, given, 1, "dft_length");
    if (failed(count))
      return b.refuse("dft_length is impossible");
    length = *count;
  } else if (failed(checkRange(b, b.getLoc(), length, onesided ? 1 : 0,
                               kMaxSize, "there is nothing to transform"))) {
    return b.refuse("there is nothing to transform");
  }
  Signal signal = {b.reshape(
      input, {around->outer, around->extent, around->inner, sizes.back()})};
  OpFoldResult bins = onesided && !inverse ? halfOf(b, length) : length;
  Type type = elementTypeOf(input);
  checkSizes(b, b.getLoc(), {around->outer, length, around->inner, b.size(4)},
             b.getF64Type());
  // Of nothing comes nothing: one zero is transformed and none of it is used.
  OpFoldResult points = getAsOpFoldResult(
      b.createOrFold<arith::MaxSIOp>(b.index(length), b.index(1)));
  Lines x = load(b, signal, points, inverse, inverse && onesided);
  Lines y = transform(b, x, inverse);
  int64_t parts = inverse && onesided ? 1 : 2;
  Value scale =
      inverse ? b.convert(b.index(length), elementTypeOf(y.parts.re)) : Value();
  Value result = interleave(b, y, bins, parts, scale, type);
  Sizes made = around->replace(b, sizes, bins);
  made.back() = b.size(parts);
  return b.replace(b.reshape(result, made));
}

//===----------------------------------------------------------------------===//
// STFT
//===----------------------------------------------------------------------===//

/// The frames of [batch, length, 1, parts] under a window, batch * frames
/// lines.
Lines loadFrames(TensorBuilder &b, Signal signal, Value window,
                 OpFoldResult frames, OpFoldResult step, OpFoldResult length) {
  TransformForm form = TransformForm::of(
      length, b.size(1), elementTypeOf(signal.tensor), /*inverse=*/false);
  Value count = b.index(frames), stride = b.index(step);
  auto body = [&](TensorBuilder &s, Value i, Value row, Value zero) -> Complex {
    Value batch = arith::DivUIOp::create(s, row, count);
    Value frame = arith::RemUIOp::create(s, row, count);
    Value position = s.add(s.mul(frame, stride), i);
    Complex value = signal.read(s, batch, position, zero, form.type);
    if (!window)
      return value;
    Value weight = s.convert(s.extract(window, i), form.type);
    return {s.mul(value.re, weight), s.mul(value.im, weight)};
  };
  OpFoldResult rows = b.times(b.dim(signal.tensor, 0), frames);
  return makeLines(b, rows, length, b.size(1), form.width, form.type, body);
}

LogicalResult lowerSTFT(Lowering<onnx::STFTOp> &b) {
  Value input = b.in.getSignal(), window = b.in.getWindow();
  // Real numbers may go without the dimension of their parts.
  if (b.rank(input) == 2)
    input = unsqueeze(b, b.getLoc(), input, 2);
  if (b.rank(input) != 3 || (window && b.rank(window) != 1))
    return b.refuse("needs a signal of two or three dimensions and a list as "
                    "window");
  Sizes sizes = b.dims(input);
  if (failed(checkRange(b, b.getLoc(), sizes[2], 1, 2,
                        "numbers have one part or two")))
    return b.refuse("numbers have one part or two");
  FailureOr<OpFoldResult> step =
      getCount(b, b.in.getFrameStep(), 1, "frame_step");
  FailureOr<OpFoldResult> length =
      b.in.getFrameLength()
          ? getCount(b, b.in.getFrameLength(), 1, "frame_length")
          : FailureOr<OpFoldResult>(window ? b.dim(window, 0) : sizes[1]);
  if (failed(step) || failed(length))
    return b.refuse("frame_step or frame_length is impossible");
  if (window) {
    *length = b.sameSize(*length, b.dim(window, 0),
                         "the window is not as long as a frame");
    if (!*length)
      return b.refuse("the window is not as long as a frame");
  }
  if (failed(
          checkRange(b, b.getLoc(), *length, 1, kMaxSize, "a frame is empty")))
    return b.refuse("a frame is empty");
  std::optional<int64_t> have = getStaticSize(sizes[1]);
  if (std::optional<int64_t> need = getStaticSize(*length);
      need && have && *need > *have)
    return b.refuse("a frame is longer than the signal");
  checkSizeAtMost(b, b.getLoc(), *length, sizes[1],
                  "a frame is longer than the signal");
  OpFoldResult frames =
      b.plus(b.floorDiv(b.minus(sizes[1], *length), *step), 1);
  checkSizes(b, b.getLoc(), {sizes[0], frames, *length, b.size(4)},
             b.getF64Type());
  Signal signal = {b.reshape(input, {sizes[0], sizes[1], b.size(1), sizes[2]})};
  Lines x = loadFrames(b, signal, window, frames, *step, *length);
  OpFoldResult bins = b.op.getOnesided() ? halfOf(b, *length) : *length;
  Lines y = transform(b, x, /*inverse=*/false);
  Value result = interleave(b, y, bins, 2, {}, elementTypeOf(input));
  return b.replace(b.reshape(result, {sizes[0], frames, bins, b.size(2)}));
}

} // namespace

void populateFourierPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::DFTOp, lowerDFT>(patterns, converter);
  addLowering<onnx::STFTOp, lowerSTFT>(patterns, converter);
}

} // namespace sardonyx
