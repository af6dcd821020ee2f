//===- DeformConv.cpp - DeformConv ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels see is sampled into columns, [N, C, K..., O...] for kernel
// positions K and output positions O. The rest is a convolution of one point
// over C times K channels.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Movement/Sampling.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

using DeformConv = Lowering<onnx::DeformConvOp>;

/// The sizes that the parts of the computation share.
struct Deformation {
  Window window;
  int64_t groups; // of offsets
  Type type;      // in which all is computed
  Sizes kernel;
  OpFoldResult batch, channels, kernelCount;

  int64_t rank() const { return window.rank(); }
};

/// `tensor` [N, G * K * parts, O...] as [N, G, K..., parts, O...], without the
/// parts where there is one. Fails when its sizes do not fit.
FailureOr<Value> splitChannels(DeformConv &b, const Deformation &d,
                               Value tensor, int64_t parts) {
  if (b.rank(tensor) != 2 + d.rank())
    return failure();
  OpFoldResult channels =
      b.times(b.times(d.kernelCount, b.size(d.groups)), parts);
  if (!b.sameSize(b.dim(tensor, 0), d.batch,
                  "the batches of the inputs differ") ||
      !b.sameSize(b.dim(tensor, 1), channels,
                  "offset or mask does not have as many channels as the "
                  "kernel has positions"))
    return failure();
  Sizes sizes{d.batch, b.size(d.groups)};
  sizes.append(d.kernel);
  if (parts > 1)
    sizes.push_back(b.size(parts));
  for (auto [dim, output] : llvm::enumerate(d.window.outputs)) {
    if (!b.sameSize(b.dim(tensor, 2 + dim), output,
                    "offset or mask is not as large as the output"))
      return failure();
    sizes.push_back(output);
  }
  return b.reshape(tensor, sizes);
}

/// Where each kernel position looks in dimension `dim`, at [n, g, k..., o...].
/// The first dimension's weights carry the mask.
SampleTable createTable(DeformConv &b, const Deformation &d, int64_t dim,
                        ArrayRef<OpFoldResult> samples, Value offset,
                        Value mask) {
  int64_t rank = d.rank(), position = 2 + dim, output = 2 + rank + dim;
  SampleTable table = createSampleTable(
      b, Sampler(), d.window.inputs[dim], samples, d.type,
      [&](TensorBuilder &s, ValueRange at) -> Value {
        Value regular =
            s.add(s.mul(at[output], s.index(d.window.strides[dim])),
                  s.mul(at[position], s.index(d.window.dilations[dim])));
        regular = s.sub(regular, s.index(d.window.padsBegin[dim]));
        SmallVector<Value> of(at);
        if (rank > 1)
          of.insert(of.begin() + 2 + rank, s.index(dim));
        Value moved = s.convert(s.extract(offset, of), d.type);
        return s.add(s.convert(regular, d.type), moved);
      });
  if (dim > 0 || !mask)
    return table;
  int64_t dims = samples.size();
  Sizes sizes(samples);
  sizes.push_back(b.size(Sampler().taps));
  table.weights =
      b.elementwise(
           sizes, {table.weights, mask},
           {b.identityMap(dims + 1),
            b.dimsMap(dims + 1, llvm::to_vector(llvm::seq<int64_t>(0, dims)))},
           {d.type},
           [&](TensorBuilder &s, ValueRange args) {
             return SmallVector<Value>{
                 s.mul(args[0], s.convert(args[1], d.type))};
           })
          .front();
  return table;
}

/// [N, C * K, O], the spatial dimensions as one.
Value createColumns(DeformConv &b, const Deformation &d, Value data,
                    Value offset, Value mask) {
  int64_t rank = d.rank();
  OpFoldResult perGroup = b.floorDiv(d.channels, b.size(d.groups));
  Sizes samples{d.batch, b.size(d.groups)};
  samples.append(d.kernel);
  samples.append(d.window.outputs);
  SmallVector<SampleTable> tables;
  for (int64_t dim = 0; dim < rank; ++dim)
    tables.push_back(createTable(b, d, dim, samples, offset, mask));

  // (n, g, c, k..., o...): the tables know nothing of channels in a group.
  Sizes sizes = samples;
  sizes.insert(sizes.begin() + 2, perGroup);
  SmallVector<int64_t> tableDims{0, 1};
  for (int64_t dim = 0; dim < 2 * rank; ++dim)
    tableDims.push_back(3 + dim);
  Value columns = createSamples(
      b, Sampler(), b.convertElements(data, d.type), sizes, tables, tableDims,
      /*channel=*/2,
      [&](TensorBuilder &s, ValueRange at) -> SmallVector<Value> {
        if (d.groups == 1)
          return {at[0], at[2]};
        Value first = s.mul(at[1], s.index(perGroup));
        return {at[0], s.add(first, at[2])};
      });
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, 1);
  appendGroup(groups, 1, 2 + rank);
  appendGroup(groups, 3 + rank, rank);
  return b.collapse(columns, groups);
}

LogicalResult lowerDeformConv(DeformConv &b) {
  Value data = b.in.getX(), weights = b.in.getW();
  if (b.rank(data) < 3 || b.rank(weights) != b.rank(data))
    return b.refuse("ranks do not fit");
  FailureOr<SmallVector<int64_t>> kernel =
      getKernelShape(b, weights, b.op.getKernelShape());
  if (failed(kernel))
    return b.refuse("kernel sizes are not known");
  WindowAttributes attributes;
  attributes.kernel = *kernel;
  attributes.strides = b.op.getStrides();
  attributes.dilations = b.op.getDilations();
  attributes.pads = b.op.getPads();
  FailureOr<Window> window = getWindow(b, data, attributes);
  if (failed(window) || b.op.getOffsetGroup() < 1 ||
      b.op.getOffsetGroup() > INT32_MAX)
    return b.refuse("attributes do not fit the input");
  if (failed(checkHasPoints(b, data, 2)))
    return b.refuse("the input is empty");

  Deformation d{*window,
                static_cast<int64_t>(b.op.getOffsetGroup()),
                getAccumulatorType(elementTypeOf(data)),
                {},
                b.dim(data, 0),
                b.dim(data, 1),
                {}};
  for (int64_t size : *kernel)
    d.kernel.push_back(b.size(size));
  d.kernelCount = b.product(d.kernel);
  OpFoldResult perGroup = b.floorDiv(d.channels, b.size(d.groups));
  if (!b.sameSize(d.channels, b.times(perGroup, d.groups),
                  "channels are no multiple of offset_group"))
    return b.refuse("channels are no multiple of offset_group");
  FailureOr<Value> offset = splitChannels(b, d, b.in.getOffset(), d.rank());
  FailureOr<Value> mask = Value();
  if (b.in.getMask())
    mask = splitChannels(b, d, b.in.getMask(), 1);
  if (failed(offset) || failed(mask))
    return b.refuse("offset or mask does not fit");

  Value columns = createColumns(b, d, data, *offset, *mask);
  Sizes flat{b.dim(weights, 0), b.times(b.dim(weights, 1), d.kernelCount),
             b.size(1)};
  WindowAttributes point;
  point.kernel = {1};
  FailureOr<Window> pointWindow = getWindow(b, columns, point);
  if (failed(pointWindow))
    return b.refuse("the columns have no window");
  FailureOr<Value> product = createConv(
      b, columns, b.convertElements(b.reshape(weights, flat), d.type),
      *pointWindow, b.op.getGroup());
  if (failed(product))
    return b.refuse("channels do not fit the weights or the groups");
  Sizes sizes{d.batch, b.dim(weights, 0)};
  sizes.append(d.window.outputs);
  FailureOr<Value> result =
      addBias(b, b.reshape(*product, sizes), b.in.getB(), elementTypeOf(data));
  if (failed(result))
    return b.refuse("the bias does not fit");
  return b.replace(*result);
}

} // namespace

void populateDeformConvPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  addLowering<onnx::DeformConvOp, lowerDeformConv>(patterns, converter);
}

} // namespace sardonyx
