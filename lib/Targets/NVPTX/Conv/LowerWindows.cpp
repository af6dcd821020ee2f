//===- LowerWindows.cpp - Convolutions and pools by threads ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has a strip of outputs, some below each other, and neighbouring
// threads have neighbouring strips, so that what they read and write at a time
// lies in a row. Each element of the input is read once for all outputs of the
// strip, and filters, that see it.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/PointEvaluator.h"
#include "Matmul/ProductKernel.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <set>

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERWINDOWS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// The most filters and outputs below each other that a thread has.
static constexpr int64_t kMostFilters = 4, kMostRows = 4;
/// The most taps of a window that are written one after the other, and products
/// of all outputs of a thread.
static constexpr int64_t kMostTaps = 64, kMostProducts = 400;

namespace {

/// What a window is and what is computed of it.
struct Window {
  sdx::DenseOpInterface op;
  Value input, weights, init; // weights: null where the largest is wanted
  SmallVector<int64_t> kernel, strides, dilations, pads;
  int64_t groups = 0; // 0: each channel
  /// Whether channels are the last dimension, of weights as well.
  bool isLast = false;

  template <typename OpT> static Window ofConv(OpT op, bool isLast) {
    return {cast<sdx::DenseOpInterface>(op.getOperation()),
            op.getInput(),
            op.getWeights(),
            op.getInit(),
            SmallVector<int64_t>(op.getKernelShape()),
            SmallVector<int64_t>(op.getStrides()),
            SmallVector<int64_t>(op.getDilations()),
            SmallVector<int64_t>(op.getPadsBegin()),
            static_cast<int64_t>(op.getGroup()),
            isLast};
  }
  template <typename OpT> static Window ofPool(OpT op, bool isLast) {
    return {cast<sdx::DenseOpInterface>(op.getOperation()),
            op.getInput(),
            Value(),
            op.getInit(),
            SmallVector<int64_t>(op.getKernelShape()),
            SmallVector<int64_t>(op.getStrides()),
            SmallVector<int64_t>(op.getNumSpatialDims(), 1),
            SmallVector<int64_t>(op.getPadsBegin()),
            /*groups=*/0,
            isLast};
  }

  /// The dimension of channels, and the first of the image.
  int64_t channelDim() const { return isLast ? kernel.size() + 1 : 1; }
  int64_t imageDim() const { return isLast ? 1 : 2; }
};

class WindowKernel {
public:
  WindowKernel(Window window, KernelBody &body)
      : w(std::move(window)), body(body), points(body),
        spatial(w.kernel.size()),
        kernelRows(spatial > 1 ? w.kernel[spatial - 2] : 1),
        kernelCols(w.kernel.back()),
        type(cast<ShapedType>(w.init.getType()).getElementType()) {
    points.declare(w.op->getResult(0));
  }

  bool isPossible() {
    const int64_t rank = cast<ShapedType>(w.init.getType()).getRank();
    return KernelBody::hasBuffer(w.input) &&
           (!w.weights || KernelBody::hasBuffer(w.weights)) &&
           points.canEvaluate(w.init) &&
           llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
             return cast<MemRefType>(out.memref.getType()).getRank() == rank &&
                    points.canEvaluate(out.tensor);
           });
  }

  void emit(ImplicitLocOpBuilder &b) {
    Indices i(b);
    findSizes(b);
    choosePlan();
    SmallVector<Value> strips(outputSizes);
    if (spatial > 1)
      strips[spatial - 2] = i.ceilDiv(strips[spatial - 2], numRows);
    // Neighbours in memory are neighbouring threads.
    SmallVector<Value> grid = {images};
    if (w.isLast)
      grid.append(strips);
    grid.append({groups, i.div(filters, numFilters)});
    if (!w.isLast)
      grid.append(strips);
    Value count = i.constant(1);
    for (Value size : grid)
      count = i.mul(count, size);
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop = startBlocks(b, i.ceilDiv(count, kThreads), kThreads,
                                       w.weights ? "conv" : "pool");
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(loop.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    SmallVector<Value> at = i.unflatten(number, grid);
    image = at[0];
    const int64_t channelsAt = w.isLast ? spatial + 1 : 1;
    const int64_t stripAt = w.isLast ? 1 : 3;
    group = at[channelsAt];
    filter0 = i.mul(at[channelsAt + 1], numFilters);
    first.assign(at.begin() + stripAt, at.begin() + stripAt + spatial);
    if (spatial > 1)
      first[spatial - 2] = i.mul(first[spatial - 2], numRows);
    emitResults(b, emitPlanes(b));
  }

private:
  void findSizes(ImplicitLocOpBuilder &b) {
    Indices i(b);
    input = body.getBuffer(w.input);
    Value output = body.getOutputs().front().memref;
    images = sizeOf(b, output, 0);
    Value outputChannels = sizeOf(b, output, w.channelDim());
    groups = w.groups ? i.constant(w.groups) : outputChannels;
    filters = i.div(outputChannels, groups);
    channels = i.constant(1);
    if (w.weights) {
      weights = body.getBuffer(w.weights);
      channels = sizeOf(b, weights, w.channelDim());
    }
    for (int64_t dim = 0; dim < spatial; ++dim) {
      inputSizes.push_back(sizeOf(b, input, dim + w.imageDim()));
      outputSizes.push_back(sizeOf(b, output, dim + w.imageDim()));
    }
    mayBeEmpty = llvm::any_of(inputSizes, [](Value size) {
      return getConstantIntValue(size).value_or(0) == 0;
    });
  }

  /// Strips as long as leave work for all threads of a device.
  void choosePlan() {
    const int64_t taps = kernelRows * kernelCols;
    numFilters = 1;
    if (std::optional<int64_t> known = getConstantIntValue(filters))
      for (int64_t n = 1; n <= kMostFilters; ++n)
        if (*known % n == 0)
          numFilters = n;
    isUnrolled = taps <= kMostTaps;
    while (numFilters > 1 && (!isUnrolled || taps * numFilters > kMostProducts))
      numFilters = numFilters == 3 ? 1 : numFilters / 2;
    numRows = 1;
    std::optional<int64_t> height =
        spatial > 1 ? getConstantIntValue(outputSizes[spatial - 2]) : 1;
    while (isUnrolled && spatial > 1 && numRows < kMostRows &&
           2 * numRows * taps * numFilters <= kMostProducts &&
           (!height || numRows < *height))
      numRows *= 2;
  }

  /// The position in the input that output `at` sees by `tap`.
  Value placeOf(ImplicitLocOpBuilder &b, int64_t dim, Value at, Value tap) {
    Indices i(b);
    return i.add(i.add(i.mul(at, w.strides[dim]), i.mul(tap, w.dilations[dim])),
                 -w.pads[dim]);
  }

  /// A position that is inside, and whether `place` is.
  struct Place {
    Value at, exists;
  };
  Place check(ImplicitLocOpBuilder &b, Value place, Value size) {
    // A position before the beginning is a huge number without a sign.
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, size);
    if (mayBeEmpty)
      return {place, exists};
    Value zero = arith::ConstantIndexOp::create(b, 0);
    return {arith::SelectOp::create(b, exists, place, zero), exists};
  }

  Value lowest(ImplicitLocOpBuilder &b) {
    if (w.weights)
      return arith::ConstantOp::create(b, b.getZeroAttr(type));
    auto element = cast<FloatType>(type);
    return arith::ConstantOp::create(
        b, b.getFloatAttr(element,
                          APFloat::getInf(element.getFloatSemantics(), true)));
  }

  Value extend(ImplicitLocOpBuilder &b, Value value) {
    if (value.getType() == type)
      return value;
    if (isa<FloatType>(type))
      return arith::ExtFOp::create(b, type, value);
    return arith::ExtSIOp::create(b, type, value);
  }

  /// Element `at` of the input where it exists, else what changes no result.
  Value load(ImplicitLocOpBuilder &b, Value at, Value exists) {
    if (!mayBeEmpty) {
      Value value = extend(b, loadAt(b, input, at));
      return arith::SelectOp::create(b, exists, value, lowest(b));
    }
    auto found = scf::IfOp::create(b, type, exists, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(found.thenBlock());
    scf::YieldOp::create(b, extend(b, loadAt(b, input, at)));
    b.setInsertionPointToStart(found.elseBlock());
    scf::YieldOp::create(b, lowest(b));
    return found.getResult(0);
  }

  Value combine(ImplicitLocOpBuilder &b, Value sum, Value value, Value weight) {
    if (!w.weights)
      return arith::MaximumFOp::create(b, sum, value);
    if (isa<FloatType>(type))
      return math::FmaOp::create(b, value, weight, sum);
    return arith::AddIOp::create(b, sum,
                                 arith::MulIOp::create(b, value, weight));
  }

  /// The outputs of the strip, [numRows, numFilters].
  SmallVector<Value> emitPlanes(ImplicitLocOpBuilder &b) {
    Indices i(b);
    SmallVector<Value> sums(numRows * numFilters, lowest(b));
    int64_t leading = 1;
    for (int64_t dim = 0; dim < spatial - 2; ++dim)
      leading *= w.kernel[dim];
    Value planes = i.mul(channels, leading);
    if (isConstantIntValue(planes, 1))
      return emitPlane(b, i.constant(0), leading, sums);
    auto loop =
        scf::ForOp::create(b, i.constant(0), planes, i.constant(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next =
        emitPlane(b, loop.getInductionVar(), leading,
                  SmallVector<Value>(loop.getRegionIterArgs()));
    scf::YieldOp::create(b, next);
    return SmallVector<Value>(loop.getResults());
  }

  /// Plane number `plane` of the window: a channel, and a tap in each dimension
  /// but the last two.
  SmallVector<Value> emitPlane(ImplicitLocOpBuilder &b, Value plane,
                               int64_t leading, SmallVector<Value> sums) {
    Indices i(b);
    channel = i.div(plane, leading);
    Value tap = i.rem(plane, leading);
    Value flat = image;
    if (!w.isLast)
      flat =
          i.add(i.mul(i.add(i.mul(image, groups), group), channels), channel);
    SmallVector<Value> shape;
    for (int64_t dim = 0; dim < spatial - 2; ++dim)
      shape.push_back(i.constant(w.kernel[dim]));
    Value exists;
    for (auto [dim, at] : llvm::enumerate(i.unflatten(tap, shape))) {
      Place place = check(b, placeOf(b, dim, first[dim], at), inputSizes[dim]);
      exists = exists ? i.both(exists, place.exists) : place.exists;
      flat = i.add(i.mul(flat, inputSizes[dim]), place.at);
    }
    // Of each filter, the first of the plane's weights.
    const int64_t taps = kernelRows * kernelCols;
    SmallVector<Value> weightsAt;
    for (int64_t f = 0; f < numFilters; ++f) {
      Value filter = i.add(i.mul(group, filters), i.add(filter0, f));
      Value at = filter;
      if (!w.isLast)
        at = i.add(i.mul(filter, channels), channel);
      weightsAt.push_back(i.mul(i.add(i.mul(at, leading), tap), taps));
    }
    return isUnrolled ? emitTaps(b, flat, exists, weightsAt, std::move(sums))
                      : loopTaps(b, flat, exists, weightsAt, sums);
  }

  /// The weight of tap `at`, counted through all filters and planes.
  Value loadWeight(ImplicitLocOpBuilder &b, Value at) {
    Indices i(b);
    if (!weights)
      return Value();
    if (w.isLast)
      at = i.add(i.mul(at, channels), channel);
    return extend(b, loadAt(b, weights, at));
  }

  /// The element of the plane's channel at a place in the row of number `row`
  /// of all rows.
  Value loadFrom(ImplicitLocOpBuilder &b, Value row, Value col, Value exists) {
    Indices i(b);
    Value at = i.add(i.mul(row, inputSizes.back()), col);
    if (w.isLast)
      at = i.add(i.mul(at, i.mul(groups, channels)),
                 i.add(i.mul(group, channels), channel));
    return load(b, at, exists);
  }

  /// The row that the strip's first output sees by a tap that is so many rows
  /// below the first one. In images of one dimension a plane is a row.
  Place findRow(ImplicitLocOpBuilder &b, Value plane, Value exists,
                Value below) {
    Indices i(b);
    if (spatial == 1)
      return {plane, exists};
    const int64_t dim = spatial - 2;
    Value none = i.constant(0);
    Place place = check(b, i.add(placeOf(b, dim, first[dim], none), below),
                        inputSizes[dim]);
    if (exists)
      place.exists = i.both(exists, place.exists);
    return {i.add(i.mul(plane, inputSizes[dim]), place.at), place.exists};
  }

  /// All taps of a plane, one after the other: each row that any output of the
  /// strip sees is read once.
  SmallVector<Value> emitTaps(ImplicitLocOpBuilder &b, Value plane,
                              Value exists, ArrayRef<Value> weightsAt,
                              SmallVector<Value> sums) {
    Indices i(b);
    SmallVector<Value> ofTaps; // [kernelRows, kernelCols, numFilters]
    for (int64_t tap = 0; tap < kernelRows * kernelCols; ++tap)
      for (Value at : weightsAt)
        ofTaps.push_back(loadWeight(b, i.add(at, tap)));
    SmallVector<Place> cols;
    for (int64_t c = 0; c < kernelCols; ++c)
      cols.push_back(check(b,
                           placeOf(b, spatial - 1, first.back(), i.constant(c)),
                           inputSizes.back()));
    const int64_t stride = spatial > 1 ? w.strides[spatial - 2] : 1;
    const int64_t dilation = spatial > 1 ? w.dilations[spatial - 2] : 1;
    std::set<int64_t> offsets;
    for (int64_t r = 0; r < numRows; ++r)
      for (int64_t k = 0; k < kernelRows; ++k)
        offsets.insert(r * stride + k * dilation);
    for (int64_t offset : offsets) {
      Place row = findRow(b, plane, exists, i.constant(offset));
      for (int64_t c = 0; c < kernelCols; ++c) {
        Value inside =
            row.exists ? i.both(row.exists, cols[c].exists) : cols[c].exists;
        Value value = loadFrom(b, row.at, cols[c].at, inside);
        for (int64_t r = 0; r < numRows; ++r) {
          const int64_t k = (offset - r * stride) / dilation;
          if (offset < r * stride || (offset - r * stride) % dilation ||
              k >= kernelRows)
            continue;
          for (int64_t f = 0; f < numFilters; ++f) {
            Value &sum = sums[r * numFilters + f];
            sum = combine(b, sum, value,
                          ofTaps[(k * kernelCols + c) * numFilters + f]);
          }
        }
      }
    }
    return sums;
  }

  /// The taps of a large window, in a loop.
  SmallVector<Value> loopTaps(ImplicitLocOpBuilder &b, Value plane,
                              Value exists, ArrayRef<Value> weightsAt,
                              ArrayRef<Value> sums) {
    Indices i(b);
    auto loop = scf::ForOp::create(b, i.constant(0),
                                   i.constant(kernelRows * kernelCols),
                                   i.constant(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tap = loop.getInductionVar();
    Value below = i.div(tap, kernelCols);
    if (spatial > 1)
      below = i.mul(below, w.dilations[spatial - 2]);
    Place row = findRow(b, plane, exists, below);
    Place col =
        check(b, placeOf(b, spatial - 1, first.back(), i.rem(tap, kernelCols)),
              inputSizes.back());
    Value inside = row.exists ? i.both(row.exists, col.exists) : col.exists;
    Value value = loadFrom(b, row.at, col.at, inside);
    Value sum = combine(b, loop.getRegionIterArgs()[0], value,
                        loadWeight(b, i.add(weightsAt[0], tap)));
    scf::YieldOp::create(b, sum);
    return SmallVector<Value>(loop.getResults());
  }

  /// What follows.
  void emitResults(ImplicitLocOpBuilder &b, ArrayRef<Value> sums) {
    Indices i(b);
    for (int64_t r = 0; r < numRows; ++r) {
      OpBuilder::InsertionGuard guard(b);
      SmallVector<Value> position(first);
      if (spatial > 1)
        position[spatial - 2] = i.add(position[spatial - 2], r);
      if (r > 0) {
        Value exists = i.less(position[spatial - 2], outputSizes[spatial - 2]);
        auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
        b.setInsertionPoint(some.thenYield());
      }
      SmallVector<SmallVector<Value>> indices;
      SmallVector<PointEvaluator::Point> known(numFilters);
      for (int64_t f = 0; f < numFilters; ++f) {
        SmallVector<Value> &index = indices.emplace_back();
        index.push_back(image);
        index.append(position);
        index.insert(index.begin() + w.channelDim(),
                     i.add(i.mul(group, filters), i.add(filter0, f)));
        known[f].add(w.op->getResult(0), index,
                     addInit(b, sums[r * numFilters + f], index, known[f]));
      }
      points.store(b, body.getOutputs(), indices, known);
    }
  }

  Value addInit(ImplicitLocOpBuilder &b, Value sum, ArrayRef<Value> index,
                PointEvaluator::Point &point) {
    if (w.weights && isZeroFilled(w.init))
      return sum;
    Value other = points.evaluate(b, w.init, index, point);
    if (!w.weights)
      return arith::MaximumFOp::create(b, other, sum);
    if (isa<FloatType>(type))
      return arith::AddFOp::create(b, other, sum);
    return arith::AddIOp::create(b, other, sum);
  }

  const Window w;
  KernelBody &body;
  PointEvaluator points;
  const int64_t spatial, kernelRows, kernelCols;
  const Type type;                                         // of sums
  Value input, weights, images, groups, filters, channels; // all of a group's
  SmallVector<Value> inputSizes, outputSizes;
  /// Whether there may be nothing to read.
  bool mayBeEmpty = false;
  int64_t numRows = 1, numFilters = 1;
  bool isUnrolled = true;
  // What a thread has: the position of its first output.
  Value image, group, filter0;
  Value channel; // of the plane that is read, in its group
  SmallVector<Value> first;
};

struct LowerWindowsPass : sardonyx::impl::NVLowerWindowsBase<LowerWindowsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    std::optional<Window> window;
    if (auto conv = findProduct<sdx::ConvOp>(func))
      window = Window::ofConv(conv, /*isLast=*/false);
    else if (auto pool = findProduct<sdx::MaxPoolOp>(func))
      window = Window::ofPool(pool, /*isLast=*/false);
    else if (auto conv = findProduct<ConvOp>(func))
      window = Window::ofConv(conv, /*isLast=*/true);
    else if (auto pool = findProduct<MaxPoolOp>(func))
      window = Window::ofPool(pool, /*isLast=*/true);
    if (!window)
      return;
    KernelBody body(func);
    WindowKernel kernel(*window, body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
