//===- FourierTransform.cpp - Discrete Fourier transforms -----------------===//
//
// A length that is known when compiling is taken apart into its prime factors
// (Cooley and Tukey, in Stockham's order): each is one small contraction. One
// with a large prime factor is brought to a power of two, and one that the run
// decides costs the whole sum.
//
//===----------------------------------------------------------------------===//

#include "Signal/Fourier.h"

#include "Support/RowLoop.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// exp(+-2 pi i k / n) for an index 0 <= k < n.
Complex rootOfUnity(TensorBuilder &b, Value k, Value n, bool inverse) {
  Type f64 = b.getF64Type();
  Value turn = arith::DivFOp::create(b, b.convert(k, f64), b.convert(n, f64));
  double circle = 2 * 3.14159265358979323846;
  Value angle = b.mul(turn, b.scalar(f64, inverse ? circle : -circle));
  return {math::CosOp::create(b, angle), math::SinOp::create(b, angle)};
}

Complex multiplyAdd(TensorBuilder &b, Complex x, Complex y, Complex sum) {
  Value re = b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im));
  Value im = b.add(b.mul(x.re, y.im), b.mul(x.im, y.re));
  return {b.add(sum.re, re), b.add(sum.im, im)};
}

//===----------------------------------------------------------------------===//
// Transforms of [P, N, T]
//===----------------------------------------------------------------------===//

/// The first `bins` of a transform of any length, each the whole sum.
Complex transformBySum(TensorBuilder &b, Complex x, OpFoldResult bins,
                       bool inverse) {
  Sizes sizes = b.dims(x.re);
  OpFoldResult length = sizes[1];
  Value count = b.index(length), zero = b.index(int64_t(0));
  Type f64 = b.getF64Type();
  auto makeRoot = [&](TensorBuilder &s, ValueRange) {
    Value k = linalg::IndexOp::create(s, 0);
    Complex root = rootOfUnity(s, k, count, inverse);
    return Values{root.re, root.im};
  };
  Values roots = b.elementwise({length}, {}, {}, {f64, f64}, makeRoot);
  auto sum = [&](TensorBuilder &s, ValueRange) {
    Value row = linalg::IndexOp::create(s, 0);
    Value bin = linalg::IndexOp::create(s, 1);
    Value column = linalg::IndexOp::create(s, 2);
    // The index of the root is that of the product of bin and position, and
    // never rounded.
    Value none = s.scalar(f64, 0);
    Values state =
        loop(s, zero, count, {none, none, zero},
             [&](TensorBuilder &t, Value i, ValueRange state) {
               Complex value = {t.extract(x.re, {row, i, column}),
                                t.extract(x.im, {row, i, column})};
               Complex root = {t.extract(roots[0], state[2]),
                               t.extract(roots[1], state[2])};
               Complex next = multiplyAdd(t, value, root, {state[0], state[1]});
               Value turned = t.add(state[2], bin);
               Value wraps =
                   t.compare(arith::CmpIPredicate::sge, turned, count);
               turned = t.select(wraps, t.sub(turned, count), turned);
               return Values{next.re, next.im, turned};
             });
    return Values{state[0], state[1]};
  };
  Values result =
      b.elementwise({sizes[0], bins, sizes[2]}, {}, {}, {f64, f64}, sum);
  return {result[0], result[1]};
}

/// What is left to transform, and what is done: [P, left * done, T].
struct Stage {
  int64_t left, done;
};

/// One step of a transform by a factor of what is left:
///   y[p, k, q] = sum_j exp(-2 pi i k (p + m j) / left) x[j, p, q]
/// with m = left / factor.
Complex transformByFactor(TensorBuilder &b, Complex x, Stage stage,
                          int64_t factor, bool inverse) {
  int64_t rest = stage.left / factor;
  Sizes sizes = b.dims(x.re);
  auto size = [&](int64_t n) { return b.size(n); };
  Type f64 = b.getF64Type();
  // The roots do not depend on data: they are computed once in a session.
  auto makeRoot = [&](TensorBuilder &s, ValueRange) {
    Value p = linalg::IndexOp::create(s, 0), k = linalg::IndexOp::create(s, 1),
          j = linalg::IndexOp::create(s, 2);
    Value left = s.index(stage.left);
    Value position = s.add(p, s.mul(j, s.index(rest)));
    Value turns = arith::RemUIOp::create(s, s.mul(k, position), left);
    Complex root = rootOfUnity(s, turns, left, inverse);
    return Values{root.re, root.im};
  };
  Values roots = b.elementwise({size(rest), size(factor), size(factor)}, {}, {},
                               {f64, f64}, makeRoot);
  Sizes from = {sizes[0], size(factor), size(rest), size(stage.done), sizes[2]};
  Sizes to = {sizes[0], size(rest), size(factor), size(stage.done), sizes[2]};
  // (row, p, k, q, column, j)
  AffineMap data = b.dimsMap(6, {0, 5, 1, 3, 4}),
            matrix = b.dimsMap(6, {1, 2, 5}),
            result = b.dimsMap(6, {0, 1, 2, 3, 4});
  SmallVector<utils::IteratorType> kinds(6, utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  Value zeros = b.zeros(to, f64);
  Values sums = b.generic(
      {b.reshape(x.re, from), b.reshape(x.im, from), roots[0], roots[1]},
      {zeros, zeros}, {data, data, matrix, matrix, result, result}, kinds,
      [&](TensorBuilder &s, ValueRange in) {
        Complex sum =
            multiplyAdd(s, {in[0], in[1]}, {in[2], in[3]}, {in[4], in[5]});
        return Values{sum.re, sum.im};
      });
  return {b.reshape(sums[0], sizes), b.reshape(sums[1], sizes)};
}

/// Factors of a length, none of which has a factor itself but 4.
SmallVector<int64_t> factorize(int64_t length) {
  SmallVector<int64_t> factors;
  for (int64_t factor = 4; length > 1; factor = factor == 4   ? 2
                                                : factor == 2 ? 3
                                                              : factor + 2) {
    if (factor > 4 && factor * factor > length)
      factor = length;
    for (; length % factor == 0; length /= factor)
      factors.push_back(factor);
  }
  return factors;
}

/// The transform of a length that is known, by its factors.
Complex transformByFactors(TensorBuilder &b, Complex x,
                           ArrayRef<int64_t> factors, bool inverse) {
  Stage stage = {1, 1};
  for (int64_t factor : factors)
    stage.left *= factor;
  for (int64_t factor : factors) {
    x = transformByFactor(b, x, stage, factor, inverse);
    stage = {stage.left / factor, stage.done * factor};
  }
  return x;
}

/// Element by element: x times y, which is a list along the second dimension.
/// The result has `length` elements there, zero where x ends.
Complex multiplyList(TensorBuilder &b, Complex x, Complex y, int64_t length) {
  Sizes sizes = b.dims(x.re);
  Value extent = b.index(sizes[1]);
  Type f64 = b.getF64Type();
  auto body = [&](TensorBuilder &s, ValueRange) {
    Value at[] = {linalg::IndexOp::create(s, 0), linalg::IndexOp::create(s, 1),
                  linalg::IndexOp::create(s, 2)};
    Value none = s.scalar(f64, 0);
    Value isIn = s.compare(arith::CmpIPredicate::slt, at[1], extent);
    return when(s, isIn, {none, none}, [&](TensorBuilder &t) {
      Complex left = {t.extract(x.re, at), t.extract(x.im, at)};
      Complex right = {t.extract(y.re, at[1]), t.extract(y.im, at[1])};
      Complex product = multiplyAdd(t, left, right, {none, none});
      return Values{product.re, product.im};
    });
  };
  Values parts = b.elementwise({sizes[0], b.size(length), sizes[2]}, {}, {},
                               {f64, f64}, body);
  return {parts[0], parts[1]};
}

/// exp(+-pi i k^2 / length) for `count` distances k, counted from both ends of
/// the list.
Complex makeChirp(TensorBuilder &b, int64_t length, int64_t count,
                  bool inverse) {
  Type f64 = b.getF64Type();
  auto body = [&](TensorBuilder &s, ValueRange) {
    Value i = linalg::IndexOp::create(s, 0);
    Value k = s.minimum(i, s.sub(s.index(count), i));
    // The square is known modulo twice the length.
    Value period = s.index(2 * length);
    Value square = arith::RemUIOp::create(s, s.mul(k, k), period);
    Complex root = rootOfUnity(s, square, period, inverse);
    return Values{root.re, root.im};
  };
  Values parts = b.elementwise({b.size(count)}, {}, {}, {f64, f64}, body);
  return {parts[0], parts[1]};
}

/// A length with a large prime factor, after Bluestein: as 2kj = k^2 + j^2 -
/// (k - j)^2, the transform is a convolution with a chirp, which transforms of
/// a power of two compute.
Complex transformByChirp(TensorBuilder &b, Complex x, int64_t length,
                         bool inverse) {
  int64_t longer = llvm::PowerOf2Ceil(2 * length - 1);
  SmallVector<int64_t> factors = factorize(longer);
  Complex chirp = makeChirp(b, length, longer, inverse);
  Complex conjugate = makeChirp(b, length, longer, !inverse);
  auto asColumn = [&](Value list) {
    return b.reshape(list, {b.size(1), b.size(longer), b.size(1)});
  };
  auto asList = [&](Value column) { return b.reshape(column, b.size(longer)); };
  Complex kernel = transformByFactors(
      b, {asColumn(conjugate.re), asColumn(conjugate.im)}, factors, false);
  Complex signal = multiplyList(b, x, chirp, longer);
  signal = transformByFactors(b, signal, factors, false);
  signal =
      multiplyList(b, signal, {asList(kernel.re), asList(kernel.im)}, longer);
  signal = transformByFactors(b, signal, factors, true);
  signal = multiplyList(b, signal, chirp, length);
  // The transform back is not divided by its length.
  auto divide = [&](Value part) {
    return b.map(part, b.getF64Type(), [&](TensorBuilder &s, ValueRange in) {
      return Values{s.mul(in[0], s.scalar(s.getF64Type(), 1.0 / longer))};
    });
  };
  return {divide(signal.re), divide(signal.im)};
}

} // namespace

Complex transform(TensorBuilder &b, Complex x, OpFoldResult bins,
                  bool inverse) {
  std::optional<int64_t> length = getStaticSize(b.dim(x.re, 1));
  // So that a product of indices fits.
  constexpr int64_t longest = int64_t(1) << 28;
  constexpr int64_t largestFactor = 64;
  if (!length || *length > longest)
    return transformBySum(b, x, bins, inverse);
  SmallVector<int64_t> factors = factorize(*length);
  if (!factors.empty() && factors.back() > largestFactor)
    return transformByChirp(b, x, *length, inverse);
  if (factors.size() < 2)
    return transformBySum(b, x, bins, inverse);
  return transformByFactors(b, x, factors, inverse);
}

} // namespace sardonyx
