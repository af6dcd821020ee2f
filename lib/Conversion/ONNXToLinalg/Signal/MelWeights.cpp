//===- MelWeights.cpp - MelWeightMatrix -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

// mel(f) = 2595 * log10(1 + f / 700)
constexpr double kMels = 2595, kHertz = 700, kLogOf10 = 2.302585092994045684;

Value divide(TensorBuilder &s, Value x, Value y) {
  return arith::DivFOp::create(s, x, y);
}

/// Where the triangles have their corners: evenly on the scale of mels.
struct Corners {
  Value low, step; // in mels
  Value bins, rate;

  /// The spectrum's bin of the corner `at`, a whole f64. In the
  /// specification's order, as the floor hangs on the rounding.
  Value getBin(TensorBuilder &s, Value at) const {
    Type f64 = s.getF64Type();
    Value mels = s.add(s.mul(s.convert(at, f64), step), low);
    Value power =
        s.mul(divide(s, mels, s.scalar(f64, kMels)), s.scalar(f64, kLogOf10));
    Value hertz = s.mul(s.scalar(f64, kHertz), math::ExpM1Op::create(s, power));
    return math::FloorOp::create(s, divide(s, s.mul(bins, hertz), rate));
  }
};

Value createMels(TensorBuilder &b, Value hertz) {
  Type f64 = b.getF64Type();
  Value log = math::Log1pOp::create(b, divide(b, hertz, b.scalar(f64, kHertz)));
  return divide(b, b.mul(b.scalar(f64, kMels), log), b.scalar(f64, kLogOf10));
}

/// The weight of the spectrum's bin `x` in the triangle of these corners.
Value createTriangle(TensorBuilder &s, Value x, Value left, Value centre,
                     Value right) {
  Type f64 = s.getF64Type();
  Value zero = s.zero(f64), one = s.scalar(f64, 1);
  auto within = [&](Value from, Value to) -> Value { // [from, to)
    return arith::AndIOp::create(
        s, arith::CmpFOp::create(s, arith::CmpFPredicate::OLE, from, x),
        s.greater(to, x));
  };
  Value rising = divide(s, s.sub(x, left), s.sub(centre, left));
  Value falling = divide(s, s.sub(right, x), s.sub(right, centre));
  Value weight = s.select(within(left, centre), rising, zero);
  weight = s.select(within(centre, right), falling, weight);
  // A triangle of no width still has its peak.
  Value peak = arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ, x, centre);
  Value sound =
      arith::CmpFOp::create(s, arith::CmpFPredicate::OLE, left, centre);
  return s.select(arith::AndIOp::create(s, peak, sound), one, weight);
}

LogicalResult lowerMelWeights(Lowering<onnx::MelWeightMatrixOp> &b) {
  Location loc = b.getLoc();
  auto count = [&](Value input, StringRef name,
                   int64_t least) -> FailureOr<Size> {
    FailureOr<Sizes> value = getIntListAsSizes(b, loc, input, 1, name);
    if (failed(value) ||
        failed(checkRange(b, loc, value->front(), least, kMaxSize,
                          "input '" + name + "' is impossible")))
      return failure();
    return value->front();
  };
  FailureOr<Size> bands = count(b.in.getNumMelBins(), "num_mel_bins", 0);
  FailureOr<Size> length = count(b.in.getDftLength(), "dft_length", 0);
  FailureOr<Size> rate = count(b.in.getSampleRate(), "sample_rate", 1);
  if (failed(bands) || failed(length) || failed(rate))
    return b.refuse("a number is impossible");
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("its element type is not known");

  Type f64 = b.getF64Type(), stored = declared.getElementType();
  auto number = [&](Value input) {
    return b.convert(getScalar(b, loc, input), f64);
  };
  auto asFloat = [&](OpFoldResult size) {
    return b.convert(b.index(size), f64);
  };
  Corners corners;
  corners.low = createMels(b, number(b.in.getLowerEdgeHertz()));
  Value high = createMels(b, number(b.in.getUpperEdgeHertz()));
  corners.step =
      divide(b, b.sub(high, corners.low), asFloat(b.plus(*bands, 2)));
  corners.bins = asFloat(b.plus(*length, 1));
  corners.rate = asFloat(*rate);
  Sizes sizes{b.plus(b.floorDiv(*length, b.size(2)), 1), *bands};
  checkSizes(b, loc, sizes, f64);
  sizes = refineSizes(b, sizes, declared);
  Type element = getOnnxElementType(b.op.getOutput());
  Value result = createIndexed(
      b, loc, sizes, stored,
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        auto corner = [&](int64_t offset) {
          return corners.getBin(s, s.add(i[1], s.index(offset)));
        };
        Value weight = createTriangle(s, s.convert(i[0], f64), corner(0),
                                      corner(1), corner(2));
        return storeScalar(s, at, castScalar(s, at, weight, f64, element),
                           element);
      });
  return b.replace(result);
}

} // namespace

void populateMelWeightPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  addLowering<onnx::MelWeightMatrixOp, lowerMelWeights>(patterns, converter);
}

} // namespace sardonyx
