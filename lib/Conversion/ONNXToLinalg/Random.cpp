//===- Random.cpp - Operators that draw random numbers --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime draws numbers from [0, 1); the rest is arithmetic on them. A node
// with a seed gives the same numbers in each run, one without others each time.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "Support/SmallFloats.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The seed that a float stands for: itself where it is one of numpy's, else
/// its bits.
std::optional<int64_t> toSeed(std::optional<APFloat> seed) {
  if (!seed || seed->isNaN())
    return std::nullopt;
  double value = seed->convertToDouble();
  if (value >= 0 && value < 0x1p32)
    return static_cast<int64_t>(value);
  return seed->bitcastToAPInt().getZExtValue();
}

/// f64 from [0, 1); all 0 where `wanted`, an i64, is.
Value draw(TensorBuilder &b, ArrayRef<OpFoldResult> sizes,
           std::optional<int64_t> seed, Value wanted) {
  return callRuntime(
      b, "sdx_rt_random_uniform",
      {wanted, asNumber(b, seed.has_value()), asNumber(b, seed.value_or(0))},
      sizes, b.getF64Type(), /*isStateful=*/!seed);
}

using Draw = llvm::function_ref<Value(TensorBuilder &, ValueRange)>;

/// `body` of `count` random numbers for each element, as elements of the
/// result.
template <typename OpT>
LogicalResult lowerDistribution(Lowering<OpT> &b, Sizes sizes, int64_t count,
                                Draw body) {
  checkSizes(b, b.getLoc(), sizes, b.getF64Type());
  Type type = getOnnxElementType(b.op.getOutput());
  if (!isa<FloatType>(type))
    return b.refuseAlways("its results are no floats");
  Sizes all = {b.size(count)};
  llvm::append_range(all, sizes);
  Value numbers = draw(b, all, toSeed(b.op.getSeed()), asNumber(b, 1));
  SmallVector<TypedTensor> inputs;
  for (int64_t i = 0; i < count; ++i)
    inputs.push_back({b.subTensor(numbers, 0, b.size(i)), b.getF64Type()});
  SmallVector<AffineMap> maps(count, b.identityMap(sizes.size()));
  return b.replace(createMapped(
      b, b.getLoc(), inputs, maps, sizes, type,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        TensorBuilder s(loc, builder);
        return castScalar(s, loc, body(s, args), s.getF64Type(), type);
      }));
}

template <typename OpT>
LogicalResult lowerUniform(Lowering<OpT> &b, Sizes sizes) {
  double low = b.op.getLow().convertToDouble();
  double high = b.op.getHigh().convertToDouble();
  return lowerDistribution(
      b, std::move(sizes), 1, [&](TensorBuilder &s, ValueRange u) {
        Value range = s.scalar(s.getF64Type(), high - low);
        return s.add(s.mul(u[0], range), s.scalar(s.getF64Type(), low));
      });
}

/// By the transform of G. E. P. Box and M. E. Muller (1958).
template <typename OpT>
LogicalResult lowerNormal(Lowering<OpT> &b, Sizes sizes) {
  double mean = b.op.getMean().convertToDouble();
  double scale = b.op.getScale().convertToDouble();
  return lowerDistribution(
      b, std::move(sizes), 2, [&](TensorBuilder &s, ValueRange u) {
        Type f64 = s.getF64Type();
        // 1 - u lies in (0, 1]: its logarithm is finite.
        Value rest = s.sub(s.scalar(f64, 1), u[0]);
        Value length = math::SqrtOp::create(
            s, s.mul(s.scalar(f64, -2), math::LogOp::create(s, rest)));
        Value angle = math::CosOp::create(
            s, s.mul(s.scalar(f64, 2 * 3.14159265358979323846), u[1]));
        return s.add(s.mul(s.mul(length, angle), s.scalar(f64, scale)),
                     s.scalar(f64, mean));
      });
}

template <typename OpT> Sizes shapeOf(Lowering<OpT> &b) {
  Sizes sizes;
  for (int64_t size : b.op.getShape())
    sizes.push_back(b.size(size));
  return sizes;
}

template <typename OpT> bool hasImpossibleShape(Lowering<OpT> &b) {
  return llvm::any_of(b.op.getShape(),
                      [](int64_t size) { return size < 0 || size > kMaxSize; });
}

LogicalResult lowerRandomUniform(Lowering<onnx::RandomUniformOp> &b) {
  if (hasImpossibleShape(b))
    return b.refuse("its shape is impossible");
  return lowerUniform(b, shapeOf(b));
}

LogicalResult lowerRandomNormal(Lowering<onnx::RandomNormalOp> &b) {
  if (hasImpossibleShape(b))
    return b.refuse("its shape is impossible");
  return lowerNormal(b, shapeOf(b));
}

LogicalResult lowerRandomUniformLike(Lowering<onnx::RandomUniformLikeOp> &b) {
  return lowerUniform(b, b.dims(b.in.getInput()));
}

LogicalResult lowerRandomNormalLike(Lowering<onnx::RandomNormalLikeOp> &b) {
  return lowerNormal(b, b.dims(b.in.getInput()));
}

/// True with the probability that the input says. (The function body of the
/// schema has it the other way round.)
LogicalResult lowerBernoulli(Lowering<onnx::BernoulliOp> &b) {
  Value input = b.in.getInput();
  Type from = getOnnxElementType(b.op.getInput());
  Type to = getOnnxElementType(b.op.getOutput());
  Type f64 = b.getF64Type(), i1 = b.getI1Type();
  Sizes sizes = b.dims(input);
  AffineMap map = b.identityMap(sizes.size());
  Value numbers = draw(b, sizes, toSeed(b.op.getSeed()), asNumber(b, 1));
  return b.replace(createMapped(
      b, b.getLoc(), {TypedTensor{input, from}, TypedTensor{numbers, f64}},
      {map, map}, sizes, to, [&](OpBuilder &s, Location loc, ValueRange args) {
        Value p = castScalar(s, loc, args[0], from, f64);
        Value hit = arith::CmpFOp::create(s, loc, arith::CmpFPredicate::OLT,
                                          args[1], p);
        return castScalar(s, loc, hit, i1, to);
      }));
}

/// A row of logarithms of weights, f64.
struct Weights {
  Value tensor, row, classes;
  Type onnxType;

  Value logOf(TensorBuilder &b, Value k) const {
    Value stored = b.extract(tensor, {row, k});
    Value x = loadScalar(b, b.getLoc(), stored, onnxType);
    return castScalar(b, b.getLoc(), x, onnxType, b.getF64Type());
  }
  using Body = llvm::function_ref<SmallVector<Value>(TensorBuilder &, Value,
                                                     ValueRange)>;
  SmallVector<Value> fold(TensorBuilder &b, ValueRange init, Body body) const {
    auto loop = scf::ForOp::create(
        b, b.index(int64_t(0)), classes, b.index(1), init,
        [&](OpBuilder &inner, Location loc, Value k, ValueRange state) {
          TensorBuilder s(loc, inner);
          scf::YieldOp::create(s, body(s, k, state));
        });
    return SmallVector<Value>(loop.getResults());
  }
  /// The first class at which the sum of weights passes `part` of the whole
  /// sum.
  Value find(TensorBuilder &b, Value part) const;
};

Value Weights::find(TensorBuilder &b, Value part) const {
  Type f64 = b.getF64Type();
  Value lowest = b.lowest(f64, /*isUnsigned=*/false);
  auto larger = [&](TensorBuilder &s, Value k, ValueRange most) {
    return SmallVector<Value>{s.maximum(most[0], logOf(s, k))};
  };
  Value most = fold(b, lowest, larger).front();
  auto add = [&](TensorBuilder &s, Value k, Value sum) {
    return s.add(sum, math::ExpOp::create(s, s.sub(logOf(s, k), most)));
  };
  auto sum = [&](TensorBuilder &s, Value k, ValueRange sum) {
    return SmallVector<Value>{add(s, k, sum[0])};
  };
  Value goal = b.mul(part, fold(b, b.zero(f64), sum).front());
  // How many classes do not reach it; the last one takes what rounding leaves.
  auto count = [&](TensorBuilder &s, Value k, ValueRange state) {
    Value upTo = add(s, k, state[0]);
    Value next = s.add(state[1], s.index(1));
    Value reached = s.greater(upTo, goal);
    return SmallVector<Value>{upTo, s.select(reached, state[1], next)};
  };
  Value zero = b.index(int64_t(0));
  Value before = fold(b, {b.zero(f64), zero}, count).back();
  return b.minimum(before, b.sub(classes, b.index(1)));
}

LogicalResult lowerMultinomial(Lowering<onnx::MultinomialOp> &b) {
  Value input = b.in.getInput();
  int64_t samples = b.op.getSampleSize();
  if (b.rank(input) != 2 || samples < 0 || samples > kMaxSize)
    return b.refuse("its input must be a matrix and its sample size a size");
  Value classes = b.index(b.dim(input, 1));
  createCheck(
      b, b.getLoc(),
      b.compare(arith::CmpIPredicate::sgt, classes, b.index(int64_t(0))),
      "the input has no classes");
  Sizes sizes = {b.dim(input, 0), b.size(samples)};
  Value numbers = draw(b, sizes, toSeed(b.op.getSeed()), asNumber(b, 1));
  Type to = convertElementType(getOnnxElementType(b.op.getOutput()));
  Type from = getOnnxElementType(b.op.getInput());
  return b.replace(createIndexed(
      b, b.getLoc(), sizes, to,
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Weights weights{input, i[0], classes, from};
        return s.convert(weights.find(s, s.extract(numbers, i)), to);
      }));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// Where it does not train, or drops nothing, the input as it is.
LogicalResult lowerIdleDropout(Lowering<onnx::DropoutOp> &b) {
  SmallVector<Value> results = {b.in.getData()};
  if (b.op->getNumResults() > 1)
    results.push_back(
        isResultUsed(b.op, 1)
            ? b.filled(b.dims(b.in.getData()), b.integer(b.getI8Type(), 1))
            : Value());
  return b.replace(results);
}

LogicalResult lowerDropout(Lowering<onnx::DropoutOp> &b) {
  Location loc = b.getLoc();
  Value training = b.in.getTrainingMode(), data = b.in.getData();
  auto mode = training ? getConstantInts(b.op.getTrainingMode())
                       : SmallVector<int64_t>{0};
  auto known = b.op.getRatio() ? getConstantFloats(b.op.getRatio())
                               : SmallVector<double>{0.5};
  if ((mode && mode->size() == 1 && !mode->front()) ||
      (known && known->size() == 1 && known->front() == 0))
    return lowerIdleDropout(b);
  Type type = getOnnxElementType(b.op.getData());
  if (isSmallFloat(type))
    return b.refuseAlways(
        "training mode on numbers of 8 bits is not supported");

  Type f64 = b.getF64Type();
  Value zero = b.scalar(f64, 0), one = b.scalar(f64, 1);
  Value ratio = b.scalar(f64, 0.5);
  if (b.op.getRatio()) {
    Type type = getOnnxElementType(b.op.getRatio());
    ratio = castScalar(
        b, loc, loadScalar(b, loc, getScalar(b, loc, b.in.getRatio()), type),
        type, f64);
  }
  Value isOn = loadScalar(b, loc, getScalar(b, loc, training), b.getI1Type());
  ratio = b.select(isOn, ratio, zero);
  Value fits = arith::AndIOp::create(
      b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, ratio, zero),
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, ratio, one));
  createCheck(b, loc, fits, "the ratio lies outside of [0, 1)");
  Value scale = arith::DivFOp::create(b, one, b.sub(one, ratio));

  Sizes sizes = b.dims(data);
  std::optional<int64_t> seed = b.op.getSeed();
  Value numbers =
      draw(b, sizes, seed ? std::optional<int64_t>(*seed & 0xffffffff) : seed,
           b.convert(isOn, b.getI64Type(), /*isUnsigned=*/true));
  AffineMap map = b.identityMap(sizes.size());
  auto stays = [&](OpBuilder &s, Location at, Value number) -> Value {
    return arith::CmpFOp::create(s, at, arith::CmpFPredicate::OGE, number,
                                 ratio);
  };
  SmallVector<Value> results = {createMapped(
      b, loc, {TypedTensor{data, type}, TypedTensor{numbers, f64}}, {map, map},
      sizes, type, [&](OpBuilder &builder, Location at, ValueRange args) {
        TensorBuilder s(at, builder);
        Type compute = args[0].getType();
        Value factor = s.select(stays(s, at, args[1]), scale, zero);
        return s.mul(args[0], s.convert(factor, compute));
      })};
  if (b.op->getNumResults() > 1)
    results.push_back(createMapped(
        b, loc, TypedTensor{numbers, f64}, map, sizes, b.getI1Type(),
        [&](OpBuilder &s, Location at, ValueRange args) {
          return stays(s, at, args[0]);
        }));
  return b.replace(results);
}

} // namespace

void populateRandomPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::RandomUniformOp, lowerRandomUniform>(patterns, converter);
  addLowering<onnx::RandomUniformLikeOp, lowerRandomUniformLike>(patterns,
                                                                 converter);
  addLowering<onnx::RandomNormalOp, lowerRandomNormal>(patterns, converter);
  addLowering<onnx::RandomNormalLikeOp, lowerRandomNormalLike>(patterns,
                                                               converter);
  addLowering<onnx::BernoulliOp, lowerBernoulli>(patterns, converter);
  addLowering<onnx::MultinomialOp, lowerMultinomial>(patterns, converter);
  addLowering<onnx::DropoutOp, lowerDropout>(patterns, converter);
}

} // namespace sardonyx
