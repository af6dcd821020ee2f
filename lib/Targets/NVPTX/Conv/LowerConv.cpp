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

class ConvKernel : public ProductKernel {
public:
  ConvKernel(sdx::ConvOp op, MatmulPlanAttr plan, KernelBody &body)
      : ProductKernel(cast<sdx::DenseOpInterface>(op.getOperation()),
                      getProductTypes(op), plan, body),
        conv(op), spatial(op.getNumSpatialDims()),
        filters(op.getWeights().getType().getDimSize(0) / op.getGroup()),
        channels(op.getWeights().getType().getDimSize(1)) {}

private:
  bool hasOperands() override {
    return KernelBody::hasBuffer(conv.getInput()) &&
           KernelBody::hasBuffer(conv.getWeights());
  }

  int64_t countTaps() {
    int64_t taps = 1;
    for (int64_t size : conv.getKernelShape())
      taps *= size;
    return taps;
  }

  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    Indices i(b);
    input = body.getBuffer(conv.getInput());
    weights = body.getBuffer(conv.getWeights());
    Value output = body.getOutputs().front().memref;
    Sizes sizes;
    sizes.pairs = i.mul(sizeOf(b, input, 0), conv.getGroup());
    sizes.m = i.constant(filters);
    sizes.k = i.constant(channels * countTaps());
    sizes.n = i.constant(1);
    for (int64_t dim = 0; dim < spatial; ++dim) {
      inputSizes.push_back(sizeOf(b, input, dim + 2));
      outputSizes.push_back(sizeOf(b, output, dim + 2));
      sizes.n = i.mul(sizes.n, outputSizes.back());
    }
    positions = sizes.n;
    return sizes;
  }

  Value groupOf(ImplicitLocOpBuilder &b, Value pair) {
    return Indices(b).rem(pair, conv.getGroup());
  }

  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    Indices i(b);
    return TileSource::matrix(weights, groupOf(b, pair), i.constant(filters),
                              i.constant(channels * countTaps()));
  }

  /// Row `k` of the windows is a channel and a tap, column `n` a position.
  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    Indices i(b);
    Value image = i.div(pair, conv.getGroup());
    Value planes = i.add(i.mul(image, channels * conv.getGroup()),
                         i.mul(groupOf(b, pair), channels));
    TileSource source;
    source.memref = input;
    source.find = [this, planes](ImplicitLocOpBuilder &b, Value k,
                                 Value n) -> TileSource::Element {
      Indices i(b);
      Value exists = i.both(i.less(k, i.constant(channels * countTaps())),
                            i.less(n, positions));
      Value channel = i.div(k, countTaps());
      SmallVector<Value> kernel;
      for (int64_t size : conv.getKernelShape())
        kernel.push_back(i.constant(size));
      SmallVector<Value> taps = i.unflatten(i.rem(k, countTaps()), kernel);
      SmallVector<Value> at = i.unflatten(n, outputSizes);
      Value flat = i.add(planes, channel);
      for (int64_t dim = 0; dim < spatial; ++dim) {
        Value place = i.add(i.mul(at[dim], conv.getStrides()[dim]),
                            i.mul(taps[dim], conv.getDilations()[dim]));
        place = i.add(place, -conv.getPadsBegin()[dim]);
        // A position before the beginning is a huge number without a sign.
        Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                             place, inputSizes[dim]);
        exists = i.both(exists, inside);
        flat = i.add(i.mul(flat, inputSizes[dim]), place);
      }
      return {flat, exists};
    };
    return source;
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    Indices i(b);
    SmallVector<Value> index = {i.div(pair, conv.getGroup()),
                                i.add(i.mul(groupOf(b, pair), filters), m)};
    index.append(i.unflatten(n, outputSizes));
    return index;
  }

  sdx::ConvOp conv;
  const int64_t spatial;
  const int64_t filters, channels; // of a group
  Value input, weights, positions;
  SmallVector<Value> inputSizes, outputSizes;
};

/// With channels last: rows of the product are positions, columns filters.
class LastConvKernel : public ProductKernel {
public:
  LastConvKernel(ConvOp op, MatmulPlanAttr plan, KernelBody &body)
      : ProductKernel(cast<sdx::DenseOpInterface>(op.getOperation()),
                      getProductTypes(op), plan, body),
        conv(op), spatial(op.getNumSpatialDims()),
        groups(static_cast<int64_t>(op.getGroup())),
        filters(op.getWeights().getType().getDimSize(0) / groups),
        channels(op.getWeights().getType().getShape().back()) {}

private:
  bool hasOperands() override {
    return KernelBody::hasBuffer(conv.getInput()) &&
           KernelBody::hasBuffer(conv.getWeights());
  }

  int64_t countProducts() {
    int64_t count = channels;
    for (int64_t size : conv.getKernelShape())
      count *= size;
    return count;
  }

  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    Indices i(b);
    input = body.getBuffer(conv.getInput());
    weights = body.getBuffer(conv.getWeights());
    Value output = body.getOutputs().front().memref;
    Sizes sizes;
    sizes.pairs = i.constant(groups);
    sizes.n = i.constant(filters);
    sizes.k = i.constant(countProducts());
    positions = {sizeOf(b, input, 0)};
    for (int64_t dim = 0; dim < spatial; ++dim) {
      inputSizes.push_back(sizeOf(b, input, dim + 1));
      positions.push_back(sizeOf(b, output, dim + 1));
    }
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
    source.width = 128 / getElementTypeOrSelf(input).getIntOrFloatBitWidth();
    source.find = [this, pair](ImplicitLocOpBuilder &b, Value m,
                               Value k) -> TileSource::Element {
      Indices i(b);
      Value exists =
          i.both(i.less(m, numRows), i.less(k, i.constant(countProducts())));
      SmallVector<Value> kernel;
      for (int64_t size : conv.getKernelShape())
        kernel.push_back(i.constant(size));
      SmallVector<Value> taps = i.unflatten(i.div(k, channels), kernel);
      SmallVector<Value> at = i.unflatten(m, positions);
      Value flat = at[0];
      for (int64_t dim = 0; dim < spatial; ++dim) {
        Value place = i.add(i.mul(at[dim + 1], conv.getStrides()[dim]),
                            i.mul(taps[dim], conv.getDilations()[dim]));
        place = i.add(place, -conv.getPadsBegin()[dim]);
        // A position before the beginning is a huge number without a sign.
        Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                             place, inputSizes[dim]);
        exists = i.both(exists, inside);
        flat = i.add(i.mul(flat, inputSizes[dim]), place);
      }
      Value channel = i.add(i.mul(pair, channels), i.rem(k, channels));
      return {i.add(i.mul(flat, channels * groups), channel), exists};
    };
    return source;
  }

  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    Indices i(b);
    return TileSource::matrix(weights, pair, i.constant(filters),
                              i.constant(countProducts()));
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    Indices i(b);
    SmallVector<Value> index = i.unflatten(m, positions);
    index.push_back(i.add(i.mul(pair, filters), n));
    return index;
  }

  ConvOp conv;
  const int64_t spatial, groups;
  const int64_t filters, channels; // of a group
  Value input, weights, numRows;
  SmallVector<Value> inputSizes, positions; // positions: images as well
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
    if (failed(emitProductKernel(func, kernel, body)))
      signalPassFailure();
  }
};

} // namespace
