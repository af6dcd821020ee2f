//===- LowerConv.cpp - Convolutions as products of tiles ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An implicit GEMM: for each image and group the filters, [OC, C*k...], are
// multiplied by the windows of the image, [C*k..., positions], of which a tile
// is gathered as it is needed. Results are in the model's own order, [N, OC,
// positions...].
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERCONV
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {

/// A convolution as a product, whatever the order of its dimensions.
template <typename OpT> class AnyConvKernel : public ProductKernel {
protected:
  AnyConvKernel(OpT op, MatmulPlanAttr plan, KernelBody &body, int64_t channels)
      : ProductKernel(cast<sdx::DenseOpInterface>(op.getOperation()),
                      getProductTypes(op), plan, body),
        conv(op), spatial(op.getNumSpatialDims()),
        groups(static_cast<int64_t>(op.getGroup())),
        filters(op.getWeights().getType().getDimSize(0) / groups),
        channels(channels), taps(llvm::product_of(op.getKernelShape())) {}

  bool hasOperands() override {
    return KernelBody::hasBuffer(conv.getInput()) &&
           KernelBody::hasBuffer(conv.getWeights());
  }

  int64_t countProducts() const { return channels * taps; }

  /// Finds the buffers, and the sizes of the image, whose first dimension is
  /// `dim`. Gives those of the output's.
  SmallVector<Value> findImage(ImplicitLocOpBuilder &b, int64_t dim) {
    input = body.getBuffer(conv.getInput());
    weights = body.getBuffer(conv.getWeights());
    Value output = body.getOutputs().front().memref;
    SmallVector<Value> outputSizes;
    for (int64_t end = dim + spatial; dim < end; ++dim) {
      inputSizes.push_back(sizeOf(b, input, dim));
      outputSizes.push_back(sizeOf(b, output, dim));
    }
    return outputSizes;
  }

  /// The filters of a group, a row each.
  TileSource findFilters(ImplicitLocOpBuilder &b, Value group) {
    Indices i(b);
    return TileSource::matrix(weights, group, i.constant(filters),
                              i.constant(countProducts()));
  }

  /// The element of plane number `plane` that output `at` sees by tap number
  /// `tap`; it is there if `exists` and inside of the image.
  TileSource::Element findElement(ImplicitLocOpBuilder &b, Value plane,
                                  ArrayRef<Value> at, Value tap, Value exists) {
    Indices i(b);
    SmallVector<Value> kernel;
    for (int64_t size : conv.getKernelShape())
      kernel.push_back(i.constant(size));
    SmallVector<Value> tapAt = i.unflatten(tap, kernel);
    for (int64_t dim = 0; dim < spatial; ++dim) {
      Value place = i.add(i.mul(at[dim], conv.getStrides()[dim]),
                          i.mul(tapAt[dim], conv.getDilations()[dim]));
      place = i.add(place, -conv.getPadsBegin()[dim]);
      // A position before the beginning is a huge number without a sign.
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place,
                                           inputSizes[dim]);
      exists = i.both(exists, inside);
      plane = i.add(i.mul(plane, inputSizes[dim]), place);
    }
    return {plane, exists};
  }

  OpT conv;
  const int64_t spatial, groups;
  const int64_t filters, channels; // of a group
  const int64_t taps;
  Value input, weights;
  SmallVector<Value> inputSizes;
};

/// Rows of the product are filters, columns positions.
class ConvKernel : public AnyConvKernel<sdx::ConvOp> {
public:
  ConvKernel(sdx::ConvOp op, MatmulPlanAttr plan, KernelBody &body)
      : AnyConvKernel(op, plan, body, op.getWeights().getType().getDimSize(1)) {
  }

private:
  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    Indices i(b);
    outputSizes = findImage(b, 2);
    Sizes sizes;
    sizes.pairs = i.mul(sizeOf(b, input, 0), groups);
    sizes.m = i.constant(filters);
    sizes.k = i.constant(countProducts());
    sizes.n = i.constant(1);
    for (Value size : outputSizes)
      sizes.n = i.mul(sizes.n, size);
    positions = sizes.n;
    return sizes;
  }

  Value groupOf(ImplicitLocOpBuilder &b, Value pair) {
    return Indices(b).rem(pair, groups);
  }

  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    return findFilters(b, groupOf(b, pair));
  }

  /// Row `k` of the windows is a channel and a tap, column `n` a position.
  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    Indices i(b);
    Value planes = i.add(i.mul(i.div(pair, groups), channels * groups),
                         i.mul(groupOf(b, pair), channels));
    TileSource source;
    source.memref = input;
    source.find = [this, planes](ImplicitLocOpBuilder &b, Value k, Value n) {
      Indices i(b);
      Value exists =
          i.both(i.less(k, i.constant(countProducts())), i.less(n, positions));
      return findElement(b, i.add(planes, i.div(k, taps)),
                         i.unflatten(n, outputSizes), i.rem(k, taps), exists);
    };
    return source;
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    Indices i(b);
    SmallVector<Value> index = {i.div(pair, groups),
                                i.add(i.mul(groupOf(b, pair), filters), m)};
    index.append(i.unflatten(n, outputSizes));
    return index;
  }

  Value positions;
  SmallVector<Value> outputSizes;
};

/// With channels last: rows of the product are positions, columns filters.
class LastConvKernel : public AnyConvKernel<ConvOp> {
public:
  LastConvKernel(ConvOp op, MatmulPlanAttr plan, KernelBody &body)
      : AnyConvKernel(op, plan, body,
                      op.getWeights().getType().getShape().back()) {}

private:
  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    Indices i(b);
    positions = findImage(b, 1);
    positions.insert(positions.begin(), sizeOf(b, input, 0));
    Sizes sizes;
    sizes.pairs = i.constant(groups);
    sizes.n = i.constant(filters);
    sizes.k = i.constant(countProducts());
    sizes.m = i.constant(1);
    for (Value size : positions)
      sizes.m = i.mul(sizes.m, size);
    numRows = sizes.m;
    return sizes;
  }

  /// Row `m` of the windows is a position, column `k` a tap and a channel.
  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    TileSource source;
    source.memref = input;
    source.width = countInPiece(getElementTypeOrSelf(input));
    source.find = [this, pair](ImplicitLocOpBuilder &b, Value m,
                               Value k) -> TileSource::Element {
      Indices i(b);
      Value exists =
          i.both(i.less(m, numRows), i.less(k, i.constant(countProducts())));
      SmallVector<Value> at = i.unflatten(m, positions);
      TileSource::Element element = findElement(
          b, at[0], ArrayRef(at).drop_front(), i.div(k, channels), exists);
      Value channel = i.add(i.mul(pair, channels), i.rem(k, channels));
      element.index = i.add(i.mul(element.index, channels * groups), channel);
      return element;
    };
    return source;
  }

  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    return findFilters(b, pair);
  }

  MappedSource mapRhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    Indices i(b);
    return MappedSource::matrix(
        b, weights, {i.constant(countProducts()), i.constant(filters)},
        {boxCols, boxRows}, types.areRounded());
  }

  /// Where a window is a pixel, windows are a matrix. Else the hardware goes
  /// over the pixels that windows begin at, and copies what lies a tap behind
  /// them.
  MappedSource mapLhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    Indices i(b);
    if (isPointwise(conv))
      return MappedSource::matrix(b, input, {i.constant(channels), numRows},
                                  {boxCols, boxRows}, types.areRounded());
    SmallVector<Value> extents = {i.constant(channels)};
    SmallVector<int64_t> lower, upper, steps = {1};
    for (int64_t dim = spatial - 1; dim >= 0; --dim) {
      extents.push_back(inputSizes[dim]);
      lower.push_back(-conv.getPadsBegin()[dim]);
      upper.push_back(conv.getPadsEnd()[dim] - reachOf(conv, dim));
      steps.push_back(conv.getStrides()[dim]);
    }
    extents.push_back(positions[0]);
    steps.push_back(1);
    MappedSource source;
    source.map = TensorMapOp::create(
        b, input, extents, {boxCols, boxRows}, kMapRowBytes, types.areRounded(),
        b.getDenseI64ArrayAttr(lower), b.getDenseI64ArrayAttr(upper),
        b.getDenseI64ArrayAttr(steps));
    source.find = [this](ImplicitLocOpBuilder &b, Value m,
                         Value k) -> MappedSource::Place {
      Indices i(b);
      SmallVector<Value> kernel;
      for (int64_t size : conv.getKernelShape())
        kernel.push_back(i.constant(size));
      SmallVector<Value> at = i.unflatten(m, positions);
      SmallVector<Value> tap = i.unflatten(i.div(k, channels), kernel);
      MappedSource::Place place;
      place.coordinates.push_back(i.rem(k, channels));
      for (int64_t dim = spatial - 1; dim >= 0; --dim) {
        place.coordinates.push_back(
            i.add(i.mul(at[dim + 1], conv.getStrides()[dim]),
                  -conv.getPadsBegin()[dim]));
        place.offsets.push_back(i.mul(tap[dim], conv.getDilations()[dim]));
      }
      place.coordinates.push_back(at[0]);
      return place;
    };
    return source;
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    Indices i(b);
    SmallVector<Value> index = i.unflatten(m, positions);
    index.push_back(i.add(i.mul(pair, filters), n));
    return index;
  }

  Value numRows;
  SmallVector<Value> positions; // images as well
};

struct LowerConvPass : sardonyx::impl::NVLowerConvBase<LowerConvPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (auto root = findProduct<sdx::ConvOp>(func))
      lower<ConvKernel>(func, root);
    else if (auto root = findProduct<ConvOp>(func))
      lower<LastConvKernel>(func, root);
  }

private:
  template <typename KernelT, typename OpT>
  void lower(func::FuncOp func, OpT root) {
    std::optional<MatmulPlanAttr> plan = getPlan(func, root);
    if (!plan)
      return;
    KernelBody body(func);
    KernelT kernel(root, *plan, body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
