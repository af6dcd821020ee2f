//===- Sampling.cpp - Values between the points of a tensor ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Sampling.h"
#include "Support/Checks.h"

using namespace mlir;

namespace sardonyx {
namespace {

Value createOr(TensorBuilder &s, Value x, Value y) {
  return arith::OrIOp::create(s, x, y);
}

/// `x` reflected at both bounds as often as needed.
Value reflect(TensorBuilder &s, Value x, Value low, Value high) {
  Type type = x.getType();
  Value range = s.sub(high, low);
  Value before = s.greater(low, x);
  Value beyond = s.select(before, s.sub(low, x), s.sub(x, high));
  auto divide = [&](Value a, Value b) -> Value {
    return arith::DivFOp::create(s, a, b);
  };
  auto floor = [&](Value a) -> Value { return math::FloorOp::create(s, a); };
  Value turns = floor(divide(beyond, range));
  Value rest = s.sub(beyond, s.mul(turns, range));
  Value pairs = floor(s.mul(turns, s.scalar(type, 0.5)));
  Value isOdd = s.greater(turns, s.add(pairs, pairs));
  // After an even number of turns one comes from the bound that was crossed.
  Value fromLow = arith::XOrIOp::create(s, before, isOdd);
  Value inner = s.select(fromLow, s.add(low, rest), s.sub(high, rest));
  // A single point reflects to itself.
  Value isRange = s.greater(range, s.zero(type));
  inner = s.select(isRange, inner, low);
  return s.select(createOr(s, before, s.greater(x, high)), inner, x);
}

Value clampFloat(TensorBuilder &s, Value x, Value low, Value high) {
  Value atLeast = s.select(s.greater(x, low), x, low);
  return s.select(s.greater(high, atLeast), atLeast, high);
}

/// A coordinate moved to where its taps lie once padding has repeated points.
Value padCoordinate(TensorBuilder &s, const Sampler &sampler, Value x,
                    Value last) {
  if (sampler.padding == SamplePadding::Zeros)
    return x;
  Type type = x.getType();
  Value zero = s.zero(type);
  if (sampler.padding == SamplePadding::Border) {
    // Farther out, all taps are the border's point.
    Value reach = s.scalar(type, sampler.taps / 2);
    return clampFloat(s, x, s.sub(zero, reach), s.add(last, reach));
  }
  if (sampler.alignCorners)
    return reflect(s, x, zero, last);
  Value half = s.scalar(type, 0.5);
  return reflect(s, x, s.sub(zero, half), s.add(last, half));
}

/// The weight of a point at `distance` from the sample.
Value createWeight(TensorBuilder &s, int64_t taps, Value distance) {
  Type type = distance.getType();
  auto number = [&](double value) { return s.scalar(type, value); };
  Value x = math::AbsFOp::create(s, distance), one = number(1);
  if (taps == 2)
    return s.sub(one, x);
  // Keys' cubic convolution with a = -0.75.
  constexpr double a = -0.75;
  Value near = s.sub(s.mul(number(a + 2), x), number(a + 3));
  near = s.add(s.mul(s.mul(near, x), x), one);
  Value far = s.mul(s.sub(x, number(5)), number(a));
  far = s.add(s.mul(far, x), number(8 * a));
  far = s.sub(s.mul(far, x), number(4 * a));
  return s.select(s.greater(x, one), far, near);
}

SmallVector<Value> createIndices(TensorBuilder &s, int64_t count) {
  SmallVector<Value> result;
  for (int64_t dim = 0; dim < count; ++dim)
    result.push_back(linalg::IndexOp::create(s, dim));
  return result;
}

/// The indices of a tap in the last dimensions of the data, and whether it lies
/// outside (null where it never does).
Value appendPositions(TensorBuilder &s, const Sampler &sampler,
                      ValueRange positions, SmallVectorImpl<Value> &at) {
  Value outside, none = s.integer(s.getI64Type(), 0);
  for (Value position : positions) {
    if (sampler.padding == SamplePadding::Zeros) {
      Value here = s.compare(arith::CmpIPredicate::slt, position, none);
      outside = outside ? createOr(s, outside, here) : here;
      position = s.maximum(position, none);
    }
    at.push_back(s.convert(position, s.getIndexType()));
  }
  return outside;
}

} // namespace

Value clampToIndex(TensorBuilder &s, Value x, Value low, Value high) {
  Value whole =
      arith::FPToSIOp::create(s, s.getI64Type(), clampFloat(s, x, low, high));
  return s.convert(whole, s.getIndexType());
}

LogicalResult checkHasPoints(TensorBuilder &b, Value data, int64_t first) {
  for (int64_t dim = first, rank = rankedType(data).getRank(); dim < rank;
       ++dim)
    if (failed(checkRange(b, b.getLoc(), b.dim(data, dim), 1,
                          std::numeric_limits<int64_t>::max(),
                          "nothing can be sampled where there are no points")))
      return failure();
  return success();
}

SampleTable createSampleTable(TensorBuilder &b, const Sampler &sampler,
                              OpFoldResult size, ArrayRef<OpFoldResult> samples,
                              Type weightType, SampleCoordinate coordinate) {
  Type i64 = b.getI64Type();
  int64_t rank = samples.size();
  bool single = sampler.taps == 1;
  Sizes sizes(samples);
  SmallVector<Type> types{i64};
  if (!single) {
    sizes.push_back(b.size(sampler.taps));
    types.push_back(weightType);
  }
  auto body = [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
    Value x = coordinate(s, createIndices(s, rank));
    Type type = x.getType();
    Value zero = s.zero(type);
    Value last = s.convert(s.index(s.plus(size, -1)), type);
    if (single)
      x = math::RoundEvenOp::create(s, x);
    x = padCoordinate(s, sampler, x, last);
    Value position = x, weight;
    if (!single) {
      Value tap = s.convert(linalg::IndexOp::create(s, rank), type);
      Value below = s.scalar(type, sampler.taps / 2 - 1);
      Value floor = math::FloorOp::create(s, x);
      Value offset = s.sub(tap, below);
      position = s.add(floor, offset);
      weight = createWeight(s, sampler.taps, s.sub(s.sub(x, floor), offset));
    }
    if (sampler.padding == SamplePadding::Reflection)
      position = padCoordinate(s, sampler, position, last);
    Value index = s.convert(clampToIndex(s, position, zero, last), i64);
    if (sampler.padding == SamplePadding::Zeros) {
      // Nothing is beyond all bounds, also what is infinite or not a number.
      Value inside = arith::AndIOp::create(
          s,
          arith::CmpFOp::create(s, arith::CmpFPredicate::OGE, position, zero),
          arith::CmpFOp::create(s, arith::CmpFPredicate::OLE, position, last));
      index = s.select(inside, index, s.integer(i64, -1));
      if (weight)
        weight = s.select(inside, weight, zero);
    }
    if (single)
      return {index};
    return {index, s.convert(weight, weightType)};
  };
  SmallVector<Value> tables = b.elementwise(sizes, {}, {}, types, body);
  return {tables[0], single ? Value() : tables[1]};
}

/// As many channels are read at once, where they lie beside each other. An open
/// number of them is taken for many, as feature maps have.
static constexpr int64_t kMinChannels = 8;

Value createSamples(
    TensorBuilder &b, const Sampler &sampler, Value data,
    ArrayRef<OpFoldResult> sizes, ArrayRef<SampleTable> tables,
    ArrayRef<int64_t> tableDims, int64_t channel,
    function_ref<SmallVector<Value>(TensorBuilder &, ValueRange at)> outer) {
  int64_t rank = sizes.size(), count = tables.size();
  bool single = sampler.taps == 1;
  int64_t loops = rank + (single ? 0 : count);
  Type type = elementTypeOf(data);
  // The order of the loops, and that of the result's dimensions in it.
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  const bool isLast =
      getStaticSize(sizes[channel]).value_or(kMinChannels) >= kMinChannels;
  if (isLast) {
    order.erase(order.begin() + channel);
    order.push_back(channel);
    SmallVector<int64_t> last = {0};
    for (int64_t dim = 2; dim < rankedType(data).getRank(); ++dim)
      last.push_back(dim);
    last.push_back(1);
    data = b.transpose(data, last);
  }
  SmallVector<int64_t> loopOf(rank);
  Sizes ordered;
  for (auto [loop, dim] : llvm::enumerate(order)) {
    loopOf[dim] = loop;
    ordered.push_back(sizes[dim]);
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (auto [i, table] : llvm::enumerate(tables)) {
    SmallVector<int64_t> dims;
    for (int64_t dim : tableDims)
      dims.push_back(loopOf[dim]);
    inputs.push_back(table.positions);
    if (!single) {
      dims.push_back(rank + i);
      inputs.push_back(table.weights);
      maps.push_back(b.dimsMap(loops, dims));
    }
    maps.push_back(b.dimsMap(loops, dims));
  }
  auto body = [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
    SmallVector<Value> loopIndices = createIndices(s, rank), indices, positions;
    for (int64_t loop : loopOf)
      indices.push_back(loopIndices[loop]);
    SmallVector<Value> at = outer(s, indices);
    Value channelIndex = isLast ? at.pop_back_val() : Value();
    Value weight;
    for (int64_t i = 0; i < count; ++i) {
      positions.push_back(args[single ? i : 2 * i]);
      if (!single)
        weight = weight ? s.mul(weight, args[2 * i + 1]) : args[2 * i + 1];
    }
    Value outside = appendPositions(s, sampler, positions, at);
    if (channelIndex)
      at.push_back(channelIndex);
    Value value = s.extract(data, at);
    if (outside)
      value = s.select(outside, s.zero(type), value);
    if (single)
      return {value};
    return {s.add(args.back(), s.mul(weight, value))};
  };
  auto inOrder = [&](Value result) {
    return isLast ? b.transpose(result, loopOf) : result;
  };
  if (single)
    return inOrder(b.elementwise(ordered, inputs, maps, {type}, body).front());
  maps.push_back(
      b.dimsMap(loops, llvm::to_vector(llvm::seq<int64_t>(0, rank))));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  std::fill(iterators.begin() + rank, iterators.end(),
            utils::IteratorType::reduction);
  return inOrder(
      b.generic(inputs, b.zeros(ordered, type), maps, iterators, body).front());
}

} // namespace sardonyx
