//===- Butterflies.cpp - Transforms of lengths of small factors -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A length is taken apart into its factors (Cooley and Tukey, in Stockham's
// order, decimated in frequency): each is one stage, a transform of so few
// numbers that it is written out, and a turn of its results by roots of unity.
// The real and imaginary parts are tensors of their own, so that a stage is
// elementwise over slices of them. Products and sums stay apart and in this
// order, as in numpy's transform in the same type, whose rounding it thus has.
//
//===----------------------------------------------------------------------===//

#include "Signal/Butterflies.h"

#include "Support/RowLoop.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace sardonyx {
namespace {

constexpr double kCircle = 2 * 3.14159265358979323846;

Complex subtract(TensorBuilder &b, Complex x, Complex y) {
  return {b.sub(x.re, y.re), b.sub(x.im, y.im)};
}

/// x + i y and x - i y.
std::pair<Complex, Complex> addTurned(TensorBuilder &b, Complex x, Complex y) {
  return {{b.sub(x.re, y.im), b.add(x.im, y.re)},
          {b.add(x.re, y.im), b.sub(x.im, y.re)}};
}

//===----------------------------------------------------------------------===//
// Transforms of a few numbers
//===----------------------------------------------------------------------===//

SmallVector<Complex> transformFour(TensorBuilder &b, ArrayRef<Complex> x,
                                   bool inverse) {
  Complex even = add(b, x[0], x[2]), odd = add(b, x[1], x[3]);
  auto [up, down] =
      addTurned(b, subtract(b, x[0], x[2]), subtract(b, x[1], x[3]));
  if (!inverse)
    std::swap(up, down);
  return {add(b, even, odd), up, subtract(b, even, odd), down};
}

/// An odd count r. As exp(2 pi i (r - j) k / r) is the conjugate of exp(2 pi i
/// j k / r), numbers j and r - j, and results k and r - k, share products.
SmallVector<Complex> transformOdd(TensorBuilder &b, ArrayRef<Complex> x,
                                  bool inverse) {
  int64_t count = x.size(), half = count / 2;
  Type type = x[0].re.getType();
  SmallVector<Complex> sums, differences, result(count, x[0]);
  for (int64_t j = 1; j <= half; ++j) {
    sums.push_back(add(b, x[j], x[count - j]));
    differences.push_back(subtract(b, x[j], x[count - j]));
    result[0] = add(b, result[0], sums.back());
  }
  auto scale = [&](double factor, Complex y) -> Complex {
    Value value = b.scalar(type, factor);
    return {b.mul(value, y.re), b.mul(value, y.im)};
  };
  for (int64_t k = 1; k <= half; ++k) {
    Complex along = x[0], across;
    for (int64_t j = 1; j <= half; ++j) {
      double angle = kCircle * (j * k % count) / count;
      double sine = inverse ? std::sin(angle) : -std::sin(angle);
      along = add(b, along, scale(std::cos(angle), sums[j - 1]));
      Complex part = scale(sine, differences[j - 1]);
      across = j == 1 ? part : add(b, across, part);
    }
    std::tie(result[k], result[count - k]) = addTurned(b, along, across);
  }
  return result;
}

/// y[k] = sum_j exp(-+2 pi i j k / r) x[j]
SmallVector<Complex> transformFew(TensorBuilder &b, ArrayRef<Complex> x,
                                  bool inverse) {
  if (x.size() == 2)
    return {add(b, x[0], x[1]), subtract(b, x[0], x[1])};
  return x.size() == 4 ? transformFour(b, x, inverse)
                       : transformOdd(b, x, inverse);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// Factors of a length, fours first, then a two, then odd primes; empty if one
/// of them has no butterfly.
SmallVector<int64_t> factorize(int64_t length) {
  SmallVector<int64_t> factors;
  for (int64_t factor : {4, 2, 3, 5, 7, 11, 13})
    for (; length % factor == 0; length /= factor)
      factors.push_back(factor);
  return length == 1 ? factors : SmallVector<int64_t>();
}

/// exp(-+2 pi i p k / (rest * factor)) for each 0 < k < factor as a list over
/// 0 <= p < rest: first the real parts, then the imaginary ones. Those of known
/// lengths are computed once in a session.
Values makeTurns(TensorBuilder &b, OpFoldResult rest, int64_t factor,
                 bool inverse, Type type) {
  Value left = b.index(b.times(rest, factor));
  auto body = [&](TensorBuilder &s, ValueRange) {
    Value p = linalg::IndexOp::create(s, 0);
    Values re, im;
    for (int64_t k = 1; k < factor; ++k) {
      Complex root = rootOfUnity(s, s.mul(p, s.index(k)), left, inverse);
      re.push_back(s.convert(root.re, type));
      im.push_back(s.convert(root.im, type));
    }
    llvm::append_range(re, im);
    return re;
  };
  SmallVector<Type> types(2 * (factor - 1), type);
  return b.elementwise({rest}, {}, {}, types, body);
}

/// `factor` tensors [K, rest, C] one after the other: [factor, K, rest, C].
Value putTogether(TensorBuilder &b, ValueRange parts) {
  Sizes sizes = b.dims(parts[0]), offsets(4, b.size(0));
  sizes.insert(sizes.begin(), b.size(parts.size()));
  Value whole = b.empty(sizes, elementTypeOf(parts[0]));
  sizes[0] = b.size(1);
  for (auto [k, part] : llvm::enumerate(parts)) {
    offsets[0] = b.size(k);
    whole = b.insert(part, whole, offsets, sizes);
  }
  return whole;
}

/// [N, P, W, T] along N by its factors, one after the other.
Complex transformByStages(TensorBuilder &b, Complex x,
                          ArrayRef<int64_t> factors, bool inverse) {
  Sizes sizes = b.dims(x.re);
  x = asStage(b, x);
  for (int64_t factor : factors)
    x = transformStage(b, x, factor, inverse);
  return reshape(b, x, sizes);
}

//===----------------------------------------------------------------------===//
// Lines as matrices
//===----------------------------------------------------------------------===//

/// x[k, P, j, T] times exp(-+2 pi i k j / (rows * columns)).
Complex turn(TensorBuilder &b, Complex x, bool inverse) {
  Type type = elementTypeOf(x.re);
  Sizes sizes = b.dims(x.re);
  // Columns and the lines beside them are one dimension, a vector's.
  Sizes flat = {sizes[0], sizes[1], b.times(sizes[2], sizes[3])};
  auto makeRoot = [&](TensorBuilder &s, ValueRange) {
    Value k = linalg::IndexOp::create(s, 0), jt = linalg::IndexOp::create(s, 1);
    Value j = arith::DivUIOp::create(s, jt, s.index(sizes[3]));
    Value count = s.index(s.times(sizes[0], sizes[2]));
    Complex root = rootOfUnity(s, s.mul(k, j), count, inverse);
    return Values{s.convert(root.re, type), s.convert(root.im, type)};
  };
  Values roots =
      b.elementwise({flat[0], flat[2]}, {}, {}, {type, type}, makeRoot);
  AffineMap data = b.identityMap(3), root = b.dimsMap(3, {0, 2});
  Values inputs = {b.reshape(x.re, flat), b.reshape(x.im, flat)};
  llvm::append_range(inputs, roots);
  Values parts =
      b.elementwise(flat, inputs, {data, data, root, root}, {type, type},
                    [&](TensorBuilder &s, ValueRange in) {
                      Complex product =
                          multiply(s, {in[0], in[1]}, {in[2], in[3]});
                      return Values{product.re, product.im};
                    });
  return reshape(b, {parts[0], parts[1]}, sizes);
}

/// How many of the first factors make a length that is nearest to the length of
/// the rest.
size_t splitInHalves(ArrayRef<int64_t> factors) {
  int64_t before = 1, after = llvm::product_of(factors);
  int64_t best = after;
  size_t count = 0;
  for (auto [index, factor] : llvm::enumerate(factors)) {
    before *= factor;
    after /= factor;
    if (int64_t longer = std::max(before, after); longer < best) {
      best = longer;
      count = index + 1;
    }
  }
  return count;
}

} // namespace

Complex reshape(TensorBuilder &b, Complex x, ArrayRef<OpFoldResult> sizes) {
  return {b.reshape(x.re, sizes), b.reshape(x.im, sizes)};
}

Complex asStage(TensorBuilder &b, Complex lines) {
  Sizes sizes = b.dims(lines.re);
  OpFoldResult columns = b.product(ArrayRef(sizes).drop_front());
  return reshape(b, lines, {b.size(1), sizes[0], columns});
}

Complex add(TensorBuilder &b, Complex x, Complex y) {
  return {b.add(x.re, y.re), b.add(x.im, y.im)};
}

Complex multiply(TensorBuilder &b, Complex x, Complex y) {
  return {b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im)),
          b.add(b.mul(x.re, y.im), b.mul(x.im, y.re))};
}

Complex rootOfUnity(TensorBuilder &b, Value k, Value n, bool inverse) {
  Type f64 = b.getF64Type();
  Value turn = arith::DivFOp::create(b, b.convert(k, f64), b.convert(n, f64));
  Value angle = b.mul(turn, b.scalar(f64, inverse ? kCircle : -kCircle));
  return {math::CosOp::create(b, angle), math::SinOp::create(b, angle)};
}

Complex transformStage(TensorBuilder &b, Complex x, int64_t factor,
                       bool inverse) {
  Type type = elementTypeOf(x.re);
  Sizes sizes = b.dims(x.re);
  OpFoldResult rest = b.floorDiv(sizes[1], b.size(factor));
  Sizes apart = {sizes[0], b.size(factor), rest, sizes[2]};
  Values inputs;
  SmallVector<AffineMap> maps;
  AffineExpr bin = b.getAffineDimExpr(0), p = b.getAffineDimExpr(1),
             column = b.getAffineDimExpr(2);
  for (Value part : {x.re, x.im}) {
    inputs.append(factor, b.reshape(part, apart));
    for (int64_t j = 0; j < factor; ++j)
      maps.push_back(AffineMap::get(
          3, 0, {bin, b.getAffineConstantExpr(j), p, column}, b.getContext()));
  }
  if (!isOneInteger(rest)) {
    llvm::append_range(inputs, makeTurns(b, rest, factor, inverse, type));
    maps.append(2 * (factor - 1), b.dimsMap(3, {1}));
  }
  auto body = [&](TensorBuilder &s, ValueRange in) {
    SmallVector<Complex> numbers;
    for (int64_t j = 0; j < factor; ++j)
      numbers.push_back({in[j], in[factor + j]});
    numbers = transformFew(s, numbers, inverse);
    ValueRange turns = in.drop_front(2 * factor);
    for (int64_t k = 1; k < factor && !turns.empty(); ++k)
      numbers[k] =
          multiply(s, numbers[k], {turns[k - 1], turns[factor + k - 2]});
    Values results;
    for (Complex number : numbers)
      results.push_back(number.re);
    for (Complex number : numbers)
      results.push_back(number.im);
    return results;
  };
  SmallVector<Type> types(2 * factor, type);
  Values parts =
      b.elementwise({sizes[0], rest, sizes[2]}, inputs, maps, types, body);
  Sizes next = {b.times(sizes[0], factor), rest, sizes[2]};
  auto join = [&](ValueRange half) {
    return b.reshape(putTogether(b, half), next);
  };
  return {join(ValueRange(parts).take_front(factor)),
          join(ValueRange(parts).drop_front(factor))};
}

bool hasButterflies(int64_t length) {
  return length == 1 || !factorize(length).empty();
}

int64_t getRowLength(int64_t length, std::optional<int64_t> columns) {
  // As many columns keep a vector busy in every stage.
  constexpr int64_t enoughColumns = 16;
  // Shorter lines are not worth a transposition.
  constexpr int64_t longLine = 64;
  if (length < longLine || !columns || *columns >= enoughColumns)
    return 1;
  SmallVector<int64_t> factors = factorize(length);
  size_t first = splitInHalves(factors);
  return first == 0 ? 1 : llvm::product_of(ArrayRef(factors).drop_front(first));
}

Lines transformByButterflies(TensorBuilder &b, const Lines &x, bool inverse) {
  SmallVector<int64_t> factors = factorize(*getStaticSize(x.length(b)));
  if (x.width == 1)
    return {transformByStages(b, x.parts, factors, inverse)};
  // A line is a matrix: its columns are transformed side by side, turned, and
  // after a transposition its rows in the same way (Bailey's four steps).
  size_t half = splitInHalves(factors);
  ArrayRef<int64_t> first = ArrayRef(factors).take_front(half);
  ArrayRef<int64_t> second = ArrayRef(factors).drop_front(half);
  Complex y = transformByStages(b, x.parts, first, inverse);
  y = turn(b, y, inverse);
  y = {b.transpose(y.re, {2, 1, 0, 3}), b.transpose(y.im, {2, 1, 0, 3})};
  return {transformByStages(b, y, second, inverse), llvm::product_of(first)};
}

} // namespace sardonyx
