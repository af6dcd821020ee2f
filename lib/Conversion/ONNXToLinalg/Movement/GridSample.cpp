//===- GridSample.cpp - GridSample and AffineGrid -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Sampling.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace sardonyx {
namespace {

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

FailureOr<Sampler> getSampler(onnx::GridSampleOp op) {
  Sampler sampler;
  sampler.alignCorners = op.getAlignCorners() != 0;
  sampler.taps = llvm::StringSwitch<int64_t>(op.getMode())
                     .Case("nearest", 1)
                     .Cases({"linear", "bilinear"}, 2)
                     .Cases({"cubic", "bicubic"}, 4)
                     .Default(0);
  auto padding =
      llvm::StringSwitch<std::optional<SamplePadding>>(op.getPaddingMode())
          .Case("zeros", SamplePadding::Zeros)
          .Case("border", SamplePadding::Border)
          .Case("reflection", SamplePadding::Reflection)
          .Default(std::nullopt);
  if (sampler.taps == 0 || !padding)
    return failure();
  sampler.padding = *padding;
  return sampler;
}

/// A coordinate between -1 and 1 as one between points.
Value denormalize(TensorBuilder &s, Value x, OpFoldResult size,
                  bool alignCorners) {
  // In the specification's order: which point is nearest hangs on the rounding.
  Type type = x.getType();
  Value one = s.scalar(type, 1), half = s.scalar(type, 0.5);
  Value points = s.convert(s.index(size), type), above = s.add(x, one);
  if (alignCorners)
    return s.mul(s.mul(above, half), s.sub(points, one));
  return s.mul(s.sub(s.mul(above, points), one), half);
}

LogicalResult lowerGridSample(Lowering<onnx::GridSampleOp> &b) {
  Value data = b.in.getX(), grid = b.in.getGrid();
  int64_t rank = b.rank(data), spatial = rank - 2;
  if (spatial < 1 || b.rank(grid) != rank)
    return b.refuse("the grid's rank does not fit the input's");
  FailureOr<Sampler> sampler = getSampler(b.op);
  if (failed(sampler))
    return b.refuseAlways("unknown mode or padding");
  Type element = elementTypeOf(data);
  if (sampler->taps > 1 && !isa<FloatType>(element))
    return b.refuseAlways("only floats are interpolated");
  if (!b.sameSize(b.dim(grid, rank - 1), b.size(spatial),
                  "the grid does not have a coordinate for each dimension") ||
      !b.sameSize(b.dim(data, 0), b.dim(grid, 0),
                  "the batches of input and grid differ"))
    return b.refuse("the grid's sizes do not fit the input's");
  if (failed(checkHasPoints(b, data, 2)))
    return b.refuse("there is nothing to sample");

  Type stored = elementTypeOf(grid), f32 = b.getF32Type();
  Type compute = element.isF64() ? element : f32;
  Type position = stored.isF64() ? stored : compute;
  Sizes samples = b.dims(grid);
  samples.pop_back();
  SmallVector<SampleTable> tables;
  for (int64_t dim = 0; dim < spatial; ++dim) {
    OpFoldResult size = b.dim(data, 2 + dim);
    tables.push_back(createSampleTable(
        b, *sampler, size, samples, compute,
        [&](TensorBuilder &s, ValueRange at) -> Value {
          // The fastest dimension comes first.
          SmallVector<Value> of(at);
          of.push_back(s.index(spatial - 1 - dim));
          Value x = s.convert(s.extract(grid, of), position);
          return denormalize(s, x, size, sampler->alignCorners);
        }));
  }
  Sizes sizes = samples;
  sizes.insert(sizes.begin() + 1, b.dim(data, 1));
  SmallVector<int64_t> tableDims = llvm::to_vector(llvm::seq<int64_t>(1, rank));
  tableDims.front() = 0;
  if (sampler->taps > 1)
    data = b.convertElements(data, compute);
  Value result =
      createSamples(b, *sampler, data, sizes, tables, tableDims, /*channel=*/1,
                    [](TensorBuilder &, ValueRange at) -> SmallVector<Value> {
                      return {at[0], at[1]};
                    });
  return b.replace(b.convertElements(result, element));
}

//===----------------------------------------------------------------------===//
// AffineGrid
//===----------------------------------------------------------------------===//

/// The number of spatial dimensions, 2 or 3, from whatever tells it; else 0.
int64_t getSpatialRank(Lowering<onnx::AffineGridOp> &b) {
  RankedTensorType theta = rankedType(b.in.getTheta());
  RankedTensorType size = rankedType(b.in.getSize());
  RankedTensorType declared = b.declared();
  int64_t rank = 0;
  if (!theta.isDynamicDim(1))
    rank = theta.getDimSize(1);
  else if (!theta.isDynamicDim(2))
    rank = theta.getDimSize(2) - 1;
  else if (!size.isDynamicDim(0))
    rank = size.getDimSize(0) - 2;
  else if (declared)
    rank = declared.getRank() - 2;
  return rank == 2 || rank == 3 ? rank : 0;
}

/// Point `at` of `size` that lie evenly between -1 and 1.
Value createEvenPoint(TensorBuilder &s, Value at, OpFoldResult size,
                      bool alignCorners, Type type) {
  Value one = s.scalar(type, 1), two = s.scalar(type, 2);
  Value points = s.convert(s.index(size), type);
  Value first = s.scalar(type, -1);
  if (alignCorners)
    points = s.sub(points, one);
  Value step = arith::DivFOp::create(s, two, points);
  if (alignCorners) // A single point is the first.
    step = s.select(s.greater(points, s.zero(type)), step, s.zero(type));
  else
    first = s.add(first, s.mul(step, s.scalar(type, 0.5)));
  return s.add(first, s.mul(s.convert(at, type), step));
}

LogicalResult lowerAffineGrid(Lowering<onnx::AffineGridOp> &b) {
  Value theta = b.in.getTheta();
  if (b.rank(theta) != 3 || b.rank(b.in.getSize()) != 1)
    return b.refuse("theta must be matrices and size a list");
  int64_t spatial = getSpatialRank(b);
  if (!spatial)
    return b.refuse("neither for two nor for three dimensions");
  Location loc = b.getLoc();
  FailureOr<Sizes> size =
      getIntListAsSizes(b, loc, b.in.getSize(), spatial + 2, "size");
  if (failed(size) ||
      !b.sameSize(b.dim(theta, 1), b.size(spatial),
                  "theta has another number of rows than dimensions") ||
      !b.sameSize(b.dim(theta, 2), b.size(spatial + 1),
                  "theta's columns are not one more than its rows") ||
      !b.sameSize(b.dim(theta, 0), (*size)[0],
                  "theta and size differ in the batch"))
    return b.refuse("theta and size do not fit");
  Sizes sizes{b.dim(theta, 0)};
  for (OpFoldResult extent : ArrayRef(*size).drop_front(2)) {
    if (failed(checkRange(b, loc, extent, 0, kMaxSize,
                          "an element of input 'size' is impossible")))
      return b.refuse("a size is impossible");
    sizes.push_back(extent);
  }
  sizes.push_back(b.size(spatial));
  Type stored = elementTypeOf(theta);
  checkSizes(b, loc, sizes, stored);
  Type type = stored.isF64() ? stored : Type(b.getF32Type());
  bool alignCorners = b.op.getAlignCorners() != 0;
  Value result = createIndexed(
      b, loc, sizes, stored,
      [&](OpBuilder &builder, Location at, ValueRange i) -> Value {
        TensorBuilder s(at, builder);
        auto factor = [&](int64_t column) {
          Value row[] = {i.front(), i.back(), s.index(column)};
          return s.convert(s.extract(theta, row), type);
        };
        Value sum = factor(spatial);
        for (int64_t axis = 0; axis < spatial; ++axis) {
          int64_t dim = spatial - axis; // x is the fastest dimension.
          Value x = createEvenPoint(s, i[dim], sizes[dim], alignCorners, type);
          sum = s.add(sum, s.mul(factor(axis), x));
        }
        return s.convert(sum, stored);
      });
  return b.replace(result);
}

} // namespace

void populateGridSamplePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  addLowering<onnx::GridSampleOp, lowerGridSample>(patterns, converter);
  addLowering<onnx::AffineGridOp, lowerAffineGrid>(patterns, converter);
}

} // namespace sardonyx
