//===- FourierTransform.cpp - Discrete Fourier transforms -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A length of small factors that is known when compiling is transformed by
// butterflies, and one with a large prime factor is brought to a power of two.
// A length that the run decides is taken apart by the run, stage by stage; what
// large prime is left of it costs the whole sum.
//
//===----------------------------------------------------------------------===//

#include "Signal/Butterflies.h"

#include "Support/RowLoop.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

OpFoldResult Lines::length(TensorBuilder &b) const {
  return b.times(b.dim(parts.re, 0), width);
}

Values Lines::place(TensorBuilder &b, Value n, Value p, Value t) const {
  if (width == 1)
    return {n, p, b.index(int64_t(0)), t};
  Value extent = b.index(width);
  return {arith::DivUIOp::create(b, n, extent), p,
          arith::RemUIOp::create(b, n, extent), t};
}

Lines makeLines(
    TensorBuilder &b, OpFoldResult p, OpFoldResult count, OpFoldResult t,
    int64_t width, Type type,
    llvm::function_ref<Complex(TensorBuilder &, Value, Value, Value)> body) {
  Sizes sizes = {b.floorDiv(count, b.size(width)), p, b.size(width), t};
  auto compute = [&](TensorBuilder &s, ValueRange) {
    Value n = linalg::IndexOp::create(s, 0);
    if (width > 1)
      n = s.add(s.mul(n, s.index(width)), linalg::IndexOp::create(s, 2));
    Complex number = body(s, n, linalg::IndexOp::create(s, 1),
                          linalg::IndexOp::create(s, 3));
    return Values{number.re, number.im};
  };
  Values parts = b.elementwise(sizes, {}, {}, {type, type}, compute);
  return {{parts[0], parts[1]}, width};
}

//===----------------------------------------------------------------------===//
// Transforms of any length
//===----------------------------------------------------------------------===//

/// The number of a line at a place.
static Complex extractNumber(TensorBuilder &b, Complex parts, ValueRange at) {
  return {b.extract(parts.re, at), b.extract(parts.im, at)};
}

/// One stage, as `transformStage`, by any factor: each number is a whole sum.
static Complex transformStageBySum(TensorBuilder &b, Complex x,
                                   OpFoldResult factor, bool inverse) {
  Sizes sizes = b.dims(x.re);
  OpFoldResult rest = b.floorDiv(sizes[1], factor), one = b.size(1);
  Value left = b.index(sizes[1]), count = b.index(factor);
  Value stride = b.index(rest), zero = b.index(int64_t(0));
  Type type = elementTypeOf(x.re), f64 = b.getF64Type();
  auto makeRoot = [&](TensorBuilder &s, Value k, Value, Value) {
    return rootOfUnity(s, k, left, inverse);
  };
  Complex roots = makeLines(b, one, sizes[1], one, 1, f64, makeRoot).parts;
  auto sum = [&](TensorBuilder &s, ValueRange) {
    Value k = linalg::IndexOp::create(s, 0),
          bin = linalg::IndexOp::create(s, 1);
    Value p = linalg::IndexOp::create(s, 2), q = linalg::IndexOp::create(s, 3);
    // Of the root for place i = p + rest * j the power is k * i, modulo `left`
    // and never rounded.
    Value first = arith::RemUIOp::create(s, s.mul(k, p), left);
    Value step = arith::RemUIOp::create(s, s.mul(k, stride), left);
    Value none = s.scalar(f64, 0);
    Values state = loop(
        s, zero, count, {none, none, first},
        [&](TensorBuilder &l, Value j, ValueRange state) {
          Value i = l.add(p, l.mul(j, stride));
          Complex value = extractNumber(l, x, {bin, i, q});
          value = {l.convert(value.re, f64), l.convert(value.im, f64)};
          Complex root = extractNumber(l, roots, {state[2], zero, zero, zero});
          Complex next = add(l, {state[0], state[1]}, multiply(l, value, root));
          Value power = l.add(state[2], step);
          Value wraps = l.compare(arith::CmpIPredicate::sge, power, left);
          power = l.select(wraps, l.sub(power, left), power);
          return Values{next.re, next.im, power};
        });
    return Values{s.convert(state[0], type), s.convert(state[1], type)};
  };
  Values parts = b.elementwise({factor, sizes[0], rest, sizes[2]}, {}, {},
                               {type, type}, sum);
  return reshape(b, {parts[0], parts[1]},
                 {b.times(sizes[0], factor), rest, sizes[2]});
}

static Lines transformBySum(TensorBuilder &b, const Lines &x, bool inverse) {
  Complex y = transformStageBySum(b, asStage(b, x.parts), x.length(b), inverse);
  return {reshape(b, y, b.dims(x.parts.re))};
}

//===----------------------------------------------------------------------===//
// Lengths that the run decides
//===----------------------------------------------------------------------===//

/// The least divisor of `left` from 7 on, where it has none below; `left`
/// itself if that is a prime.
static Value findLargeFactor(TensorBuilder &b, Value left) {
  Value two = b.index(2), zero = b.index(int64_t(0));
  auto op = scf::WhileOp::create(
      b, TypeRange(b.getIndexType()), ValueRange(b.index(7)),
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value factor = state[0];
        Value fits =
            s.compare(arith::CmpIPredicate::sle, s.mul(factor, factor), left);
        Value rest = arith::RemUIOp::create(s, left, factor);
        Value divides = s.compare(arith::CmpIPredicate::ne, rest, zero);
        scf::ConditionOp::create(s, arith::AndIOp::create(s, fits, divides),
                                 state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        scf::YieldOp::create(s, s.add(state[0], two));
      });
  Value factor = op.getResult(0);
  Value fits =
      b.compare(arith::CmpIPredicate::sle, b.mul(factor, factor), left);
  return b.select(fits, factor, left);
}

/// One stage by the first of `factors` that divides what is left, or else by
/// its least factor. The results have the types of `x`.
static Complex transformOpenStage(TensorBuilder &b, Complex x,
                                  ArrayRef<int64_t> factors, bool inverse) {
  Type type = x.re.getType();
  Value left = b.index(b.dim(x.re, 1));
  auto finish = [&](TensorBuilder &s, Complex y) {
    scf::YieldOp::create(s, ValueRange{s.cast(y.re, type), s.cast(y.im, type)});
  };
  if (factors.empty()) {
    OpFoldResult factor = findLargeFactor(b, left);
    Complex y = transformStageBySum(b, x, factor, inverse);
    return {b.cast(y.re, type), b.cast(y.im, type)};
  }
  int64_t factor = factors.front();
  Value rest = arith::RemUIOp::create(b, left, b.index(factor));
  Value divides =
      b.compare(arith::CmpIPredicate::eq, rest, b.index(int64_t(0)));
  auto op = scf::IfOp::create(
      b, divides,
      [&](OpBuilder &builder, Location loc) {
        TensorBuilder s(loc, builder);
        finish(s, transformStage(s, x, factor, inverse));
      },
      [&](OpBuilder &builder, Location loc) {
        TensorBuilder s(loc, builder);
        finish(s, transformOpenStage(s, x, factors.drop_front(), inverse));
      });
  return {op.getResult(0), op.getResult(1)};
}

/// Lines of a length that only the run knows: a loop over its factors.
static Lines transformOpen(TensorBuilder &b, const Lines &x, bool inverse) {
  Complex first = asStage(b, x.parts);
  auto type = RankedTensorType::get(
      SmallVector<int64_t>(3, ShapedType::kDynamic), elementTypeOf(first.re));
  Values state = {b.cast(first.re, type), b.cast(first.im, type)};
  auto op = scf::WhileOp::create(
      b, TypeRange(state), state,
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Value left = s.index(s.dim(state[0], 1));
        Value goOn = s.compare(arith::CmpIPredicate::sgt, left, s.index(1));
        scf::ConditionOp::create(s, goOn, state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        TensorBuilder s(loc, builder);
        Complex y =
            transformOpenStage(s, {state[0], state[1]}, {4, 2, 3, 5}, inverse);
        scf::YieldOp::create(s, ValueRange{y.re, y.im});
      });
  Complex last = {op.getResult(0), op.getResult(1)};
  return {reshape(b, last, b.dims(x.parts.re))};
}

//===----------------------------------------------------------------------===//
// Lengths with a large prime factor
//===----------------------------------------------------------------------===//

/// Number by number: x times the line y. The result has `length` numbers, zero
/// where x ends.
static Lines multiplyLine(TensorBuilder &b, const Lines &x, const Lines &y,
                          int64_t length, int64_t width) {
  Sizes sizes = b.dims(x.parts.re);
  Value extent = b.index(x.length(b)), zero = b.index(int64_t(0));
  Type type = elementTypeOf(x.parts.re);
  auto body = [&](TensorBuilder &s, Value n, Value p, Value t) -> Complex {
    Value none = s.scalar(type, 0);
    Value isIn = s.compare(arith::CmpIPredicate::slt, n, extent);
    Values product = when(s, isIn, {none, none}, [&](TensorBuilder &w) {
      Complex left = extractNumber(w, x.parts, x.place(w, n, p, t));
      Complex right = extractNumber(w, y.parts, y.place(w, n, zero, zero));
      Complex product = multiply(w, left, right);
      return Values{product.re, product.im};
    });
    return {product[0], product[1]};
  };
  return makeLines(b, sizes[1], b.size(length), sizes[3], width, type, body);
}

/// exp(+-pi i k^2 / length) for `count` distances k, counted from both ends of
/// the line.
static Lines makeChirp(TensorBuilder &b, int64_t length, int64_t count,
                       bool inverse, int64_t width) {
  auto body = [&](TensorBuilder &s, Value i, Value, Value) {
    Value k = s.minimum(i, s.sub(s.index(count), i));
    // The square is known modulo twice the length.
    Value period = s.index(2 * length);
    Value square = arith::RemUIOp::create(s, s.mul(k, k), period);
    return rootOfUnity(s, square, period, inverse);
  };
  OpFoldResult one = b.size(1);
  return makeLines(b, one, b.size(count), one, width, b.getF64Type(), body);
}

/// A length with a large prime factor, after Bluestein: as 2kj = k^2 + j^2 -
/// (k - j)^2, the transform is a convolution with a chirp, which transforms of
/// a power of two compute.
static Lines transformByChirp(TensorBuilder &b, const Lines &x, int64_t length,
                              bool inverse) {
  int64_t longer = llvm::PowerOf2Ceil(2 * length - 1);
  Type f64 = b.getF64Type();
  auto widthFor = [&](OpFoldResult columns) {
    return TransformForm::of(b.size(longer), columns, f64, inverse).width;
  };
  int64_t width = widthFor(b.dim(x.parts.re, 3)), alone = widthFor(b.size(1));
  Lines chirp = makeChirp(b, length, longer, inverse, 1);
  Lines kernel = transformByButterflies(
      b, makeChirp(b, length, longer, !inverse, alone), false);
  Lines signal = multiplyLine(b, x, chirp, longer, width);
  signal = transformByButterflies(b, signal, false);
  signal = multiplyLine(b, signal, kernel, longer, width);
  signal = transformByButterflies(b, signal, true);
  signal = multiplyLine(b, signal, chirp, length, 1);
  // The transform back is not divided by its length.
  auto divide = [&](Value part) {
    return b.map(part, f64, [&](TensorBuilder &s, ValueRange in) {
      return Values{s.mul(in[0], s.scalar(f64, 1.0 / longer))};
    });
  };
  return {{divide(signal.parts.re), divide(signal.parts.im)}, signal.width};
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

// So that a product of indices fits.
static constexpr int64_t kLongest = int64_t(1) << 28;

// A sum is shorter than three transforms of twice the length.
static constexpr int64_t kFewNumbers = 64;

namespace {
enum class Algorithm { Butterflies, Sum, Chirp, Open };
} // namespace

static Algorithm chooseAlgorithm(OpFoldResult length) {
  std::optional<int64_t> known = getStaticSize(length);
  if (!known || *known > kLongest)
    return Algorithm::Open;
  if (hasButterflies(*known))
    return Algorithm::Butterflies;
  return *known <= kFewNumbers ? Algorithm::Sum : Algorithm::Chirp;
}

TransformForm TransformForm::of(OpFoldResult length, OpFoldResult columns,
                                Type type, bool inverse) {
  MLIRContext *context = type.getContext();
  Algorithm algorithm = chooseAlgorithm(length);
  // A spectrum is often looked at by its logarithm, so that what cancels must
  // not be noise of the largest bin's rounding; the samples that a spectrum
  // makes are as exact as it is. (numpy's transforms of single precision are
  // the same.) A convolution with a chirp rounds more often.
  bool isSingle = type.isF32() ? inverse : !type.isF64();
  if (algorithm == Algorithm::Chirp || !isSingle)
    type = Float64Type::get(context);
  else
    type = Float32Type::get(context);
  if (algorithm != Algorithm::Butterflies)
    return {type};
  return {type, getRowLength(*getStaticSize(length), getStaticSize(columns))};
}

Lines transform(TensorBuilder &b, const Lines &x, bool inverse) {
  OpFoldResult length = x.length(b);
  switch (chooseAlgorithm(length)) {
  case Algorithm::Butterflies:
    return transformByButterflies(b, x, inverse);
  case Algorithm::Sum:
    return transformBySum(b, x, inverse);
  case Algorithm::Chirp:
    return transformByChirp(b, x, *getStaticSize(length), inverse);
  case Algorithm::Open:
    return transformOpen(b, x, inverse);
  }
  return x;
}

} // namespace sardonyx
