//===- ConvTranspose.cpp - ConvTranspose ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transposed convolution is a convolution with stride one: of the input with
// stride - 1 zeros between its elements, with the kernel reversed and its
// channels exchanged.
//
// Where there are no dilations, the zeros need not be multiplied. Output
// q * stride + r is a sum over the taps r, r + stride, r + 2 * stride, ... of
// the inputs q, q - 1, q - 2, ...: each phase r is a convolution of its own,
// whose outputs are interleaved with the others'. Many phases with as many taps
// each are made as so many more output channels, and those of a single tap.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// [N,C,D...] to [N,C,(D-1)*stride+1...] with zeros in between.
Value spreadInput(TensorBuilder &b, Value input, ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }))
    return input;
  Sizes sizes = b.dims(input);
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    OpFoldResult &size = sizes[dim + 2];
    size = b.atLeast(b.plus(b.times(b.plus(size, -1), stride), 1), 0);
  }
  Type type = elementTypeOf(input);
  return b
      .elementwise(
          sizes, {}, {}, {type},
          [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
            SmallVector<Value> from;
            Value hit;
            for (int64_t dim = 0, rank = sizes.size(); dim < rank; ++dim) {
              Value to = linalg::IndexOp::create(s, dim);
              int64_t stride = dim < 2 ? 1 : strides[dim - 2];
              if (stride == 1) {
                from.push_back(to);
                continue;
              }
              Value step = s.index(stride);
              from.push_back(arith::DivUIOp::create(s, to, step));
              Value rest = arith::RemUIOp::create(s, to, step);
              Value here = s.compare(arith::CmpIPredicate::eq, rest,
                                     s.index(int64_t(0)));
              hit = hit ? arith::AndIOp::create(s, hit, here) : here;
            }
            return {s.select(hit, s.extract(input, from), s.zero(type))};
          })
      .front();
}

/// The taps of each phase r as a kernel of its own: weights [C,F/G,k...] as
/// [F*S,C/G,u...], S the product of the strides, channels in the order (f, r)
/// and taps reversed. `taps` are the sizes u, k / stride. With strides of one
/// there is one phase, all of the kernel.
Value phaseWeights(TensorBuilder &b, Value weights, int64_t group,
                   ArrayRef<int64_t> strides, ArrayRef<int64_t> taps) {
  Sizes from = b.dims(weights);
  int64_t rank = strides.size();
  OpFoldResult channels = b.floorDiv(from[0], b.size(group));
  Sizes sizes{b.size(group), from[1]};
  for (int64_t stride : strides)
    if (stride > 1)
      sizes.push_back(b.size(stride));
  int64_t first = sizes.size(); // of a kernel's dimensions
  sizes.push_back(channels);
  for (int64_t count : taps)
    sizes.push_back(b.size(count));
  Type type = elementTypeOf(weights);
  Value perGroup = b.index(channels);
  Value split =
      b.elementwise(
           sizes, {}, {}, {type},
           [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
             SmallVector<Value> at;
             for (int64_t dim = 0, end = sizes.size(); dim < end; ++dim)
               at.push_back(linalg::IndexOp::create(s, dim));
             SmallVector<Value> source{s.add(s.mul(at[0], perGroup), at[first]),
                                       at[1]};
             for (int64_t dim = 0, phase = 2; dim < rank; ++dim) {
               Value tap = s.sub(s.index(taps[dim] - 1), at[first + 1 + dim]);
               if (strides[dim] > 1)
                 tap = s.add(s.mul(tap, s.index(strides[dim])), at[phase++]);
               source.push_back(tap);
             }
             return {s.extract(weights, source)};
           })
          .front();
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, first);
  for (int64_t dim = 0; dim <= rank; ++dim)
    appendGroup(groups, first + dim, 1);
  return b.collapse(split, groups);
}

/// [N,F*S,q...] as [N,F,q*s...], the phases interleaved.
Value interleavePhases(TensorBuilder &b, Value phases,
                       ArrayRef<int64_t> strides) {
  int64_t rank = strides.size(), all = 1;
  Sizes sizes = b.dims(phases);
  SmallVector<ReassociationIndices> split, merge;
  appendGroup(split, 0, 1);
  appendGroup(split, 1, 1 + rank);
  appendGroup(merge, 0, 1);
  appendGroup(merge, 1, 1);
  SmallVector<int64_t> order{0, 1};
  for (int64_t dim = 0; dim < rank; ++dim) {
    all *= strides[dim];
    appendGroup(split, 2 + rank + dim, 1);
    appendGroup(merge, 2 + 2 * dim, 2);
    order.append({2 + rank + dim, 2 + dim});
  }
  Sizes wide{sizes[0], b.floorDiv(sizes[1], b.size(all))};
  for (int64_t stride : strides)
    wide.push_back(b.size(stride));
  wide.append(sizes.begin() + 2, sizes.end());
  return b.collapse(b.transpose(b.expand(phases, split, wide), order), merge);
}

/// Pads of the result, begin then end, and output_padding: what is cut off
/// and what is added at the end. Fails when they depend on a dynamic size.
LogicalResult getPads(TensorBuilder &b, onnx::ConvTransposeOp op,
                      const Window &window, SmallVector<int64_t> &pads,
                      SmallVector<int64_t> &extra) {
  int64_t rank = window.rank();
  std::optional<ArrayRef<int64_t>> outputPadding = op.getOutputPadding();
  extra.assign(rank, 0);
  if (outputPadding && static_cast<int64_t>(outputPadding->size()) == rank)
    extra.assign(outputPadding->begin(), outputPadding->end());
  pads.assign(2 * rank, 0);
  std::optional<ArrayRef<int64_t>> outputShape = op.getOutputShape();
  bool hasShape = outputShape && !outputShape->empty();
  StringRef autoPad = op.getAutoPad();
  bool upper = autoPad == "SAME_UPPER", same = upper || autoPad == "SAME_LOWER";
  if (!hasShape && !same) {
    std::optional<ArrayRef<int64_t>> attribute = op.getPads();
    if (autoPad == "VALID" || !attribute || attribute->empty())
      return success();
    if (static_cast<int64_t>(attribute->size()) != 2 * rank)
      return failure();
    pads.assign(attribute->begin(), attribute->end());
    return success();
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t total = window.span(dim);
    if (hasShape) {
      // Some write all of the shape, others only its spatial sizes.
      std::optional<int64_t> input = getStaticSize(window.inputs[dim]);
      if (!input || static_cast<int64_t>(outputShape->size()) < rank)
        return failure();
      total += extra[dim] + window.strides[dim] * (*input - 1) -
               outputShape->take_back(rank)[dim];
    } else {
      // Until the result is as long as the strides over the input are;
      // what output_padding adds is cut off again.
      total = std::max<int64_t>(total + extra[dim] - window.strides[dim], 0);
    }
    // What is missing is added behind the result.
    if (total < 0) {
      extra[dim] -= total;
      total = 0;
    }
    pads[dim] = upper ? total / 2 : total - total / 2;
    pads[rank + dim] = total - pads[dim];
  }
  return success();
}

/// Whether to compute phase by phase: there are zeros to be spared, and each
/// phase has as many taps. Zeros for those that are missing would make NaN of
/// an infinite input.
bool hasPhases(const Window &window, ArrayRef<int64_t> extra) {
  bool strided = false;
  for (int64_t dim = 0; dim < window.rank(); ++dim) {
    if (window.dilations[dim] != 1 || extra[dim] != 0 ||
        window.kernel[dim] % window.strides[dim] != 0)
      return false;
    strided |= window.strides[dim] > 1;
  }
  return strided;
}

/// The result with its bias, as `element`, computed phase by phase.
FailureOr<Value> buildPhases(TensorBuilder &b, Value input, Value weights,
                             Value bias, Type element, const Window &window,
                             int64_t group, ArrayRef<int64_t> pads) {
  int64_t rank = window.rank(), all = 1;
  WindowAttributes plain;
  SmallVector<int64_t> reach;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t stride = window.strides[dim];
    all *= stride;
    plain.kernel.push_back(window.kernel[dim] / stride);
    reach.push_back(plain.kernel.back() - 1);
  }
  reach.append(SmallVector<int64_t>(reach));
  plain.pads = ArrayRef<int64_t>(reach);
  FailureOr<Window> forward = getWindow(b, input, plain);
  if (failed(forward))
    return failure();
  weights = phaseWeights(b, weights, group, window.strides, plain.kernel);
  FailureOr<Value> product = createConv(b, input, weights, *forward, group);
  if (failed(product))
    return failure();
  if (bias) {
    // One for each phase.
    bias = b.elementwise(
                {b.dim(bias, 0), b.size(all)}, {bias}, {b.dimsMap(2, {0})},
                {element},
                [](TensorBuilder &, ValueRange args) -> SmallVector<Value> {
                  return {args[0]};
                })
               .front();
    bias = b.collapse(bias, {{0, 1}});
  }
  FailureOr<Value> phases = addBias(b, *product, bias, element);
  if (failed(phases))
    return failure();
  Value result = interleavePhases(b, *phases, window.strides);
  Sizes sizes = b.dims(result), offsets(2, b.size(0)), part = sizes;
  bool whole = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t stride = window.strides[dim];
    int64_t cut = window.kernel[dim] - stride - pads[dim] - pads[rank + dim];
    offsets.push_back(b.size(pads[dim]));
    part[2 + dim] =
        b.atLeast(b.plus(b.times(window.inputs[dim], stride), cut), 0);
    whole &= pads[dim] == 0 && pads[rank + dim] == 0;
  }
  return whole ? result : b.slice(result, offsets, part);
}

/// A phase of the result along one dimension: positions q * stride + `phase`.
struct Phase {
  /// The first tap, of which each `stride`th follows, and how many there are.
  int64_t first, taps;
  /// Pads of the convolution by these taps, which may be negative.
  int64_t padBegin, padEnd;
};

/// `extent` is how much longer than the input times the stride the result is.
Phase getPhase(int64_t phase, int64_t kernel, int64_t stride, int64_t pad,
               int64_t extent) {
  const int64_t first = (phase + pad) % stride,
                skipped = (phase + pad) / stride;
  const int64_t taps = llvm::divideCeil(kernel - first, stride);
  return {first, taps, taps - 1 - skipped,
          llvm::divideCeilSigned(extent, stride) + skipped};
}

/// The taps of `phases`, one for each dimension, of weights [C,F/G,k...] as a
/// kernel [F,C/G,u...], reversed.
Value onePhaseWeights(TensorBuilder &b, Value weights, int64_t group,
                      ArrayRef<int64_t> strides, ArrayRef<Phase> phases) {
  Sizes from = b.dims(weights);
  OpFoldResult channels = b.floorDiv(from[0], b.size(group));
  Sizes sizes{b.size(group), from[1], channels};
  for (const Phase &phase : phases)
    sizes.push_back(b.size(phase.taps));
  Value perGroup = b.index(channels);
  Value split =
      b.elementwise(
           sizes, {}, {}, {elementTypeOf(weights)},
           [&](TensorBuilder &s, ValueRange) -> SmallVector<Value> {
             auto at = [&](int64_t dim) {
               return linalg::IndexOp::create(s, dim).getResult();
             };
             SmallVector<Value> source{s.add(s.mul(at(0), perGroup), at(2)),
                                       at(1)};
             for (auto [dim, phase] : llvm::enumerate(phases)) {
               Value tap = s.sub(s.index(phase.taps - 1), at(3 + dim));
               source.push_back(s.add(s.mul(tap, s.index(strides[dim])),
                                      s.index(phase.first)));
             }
             return {s.extract(weights, source)};
           })
          .front();
  SmallVector<ReassociationIndices> groups;
  appendGroup(groups, 0, 2);
  for (int64_t dim = 2, rank = sizes.size(); dim < rank; ++dim)
    appendGroup(groups, dim, 1);
  return b.collapse(split, groups);
}

/// Phases [S,N,F,q...] as [N,F,q*s...].
Value interleaveEach(TensorBuilder &b, Value phases,
                     ArrayRef<int64_t> strides) {
  const int64_t rank = strides.size();
  SmallVector<ReassociationIndices> split, merge;
  Sizes sizes = b.dims(phases), wide;
  appendGroup(split, 0, rank);
  for (int64_t stride : strides)
    wide.push_back(b.size(stride));
  SmallVector<int64_t> order{rank, rank + 1};
  appendGroup(merge, 0, 1);
  appendGroup(merge, 1, 1);
  for (int64_t dim = 1; dim < 3 + rank; ++dim) {
    appendGroup(split, rank + dim - 1, 1);
    wide.push_back(sizes[dim]);
  }
  for (int64_t dim = 0; dim < rank; ++dim) {
    order.append({rank + 2 + dim, dim});
    appendGroup(merge, 2 + 2 * dim, 2);
  }
  return b.collapse(b.transpose(b.expand(phases, split, wide), order), merge);
}

/// Whether to compute each phase by itself: all of them have taps, of which
/// some see pads, and there are few.
bool hasFewPhases(const Window &window, ArrayRef<int64_t> extra) {
  constexpr int64_t kMostPhases = 9;
  int64_t all = 1;
  bool hasPads = false;
  for (int64_t dim = 0; dim < window.rank(); ++dim) {
    if (window.dilations[dim] != 1 ||
        window.kernel[dim] < window.strides[dim] ||
        window.strides[dim] > kMostPhases)
      return false;
    all *= window.strides[dim];
    hasPads |= window.kernel[dim] != window.strides[dim] || extra[dim] != 0;
  }
  return all > 1 && all <= kMostPhases && hasPads;
}

/// The result with its bias, as `element`, each phase by itself.
FailureOr<Value> buildEachPhase(TensorBuilder &b, Value input, Value weights,
                                Value bias, Type element, const Window &window,
                                int64_t group, ArrayRef<int64_t> pads,
                                ArrayRef<int64_t> extra) {
  const int64_t rank = window.rank();
  SmallVector<int64_t> extents;
  int64_t count = 1;
  for (int64_t dim = 0; dim < rank; ++dim) {
    extents.push_back(window.kernel[dim] - window.strides[dim] + extra[dim] -
                      pads[dim] - pads[rank + dim]);
    count *= window.strides[dim];
  }
  SmallVector<Value> parts;
  for (int64_t index = 0; index < count; ++index) {
    SmallVector<Phase> phases(rank);
    for (int64_t dim = rank, rest = index; dim-- > 0;) {
      const int64_t stride = window.strides[dim];
      phases[dim] = getPhase(rest % stride, window.kernel[dim], stride,
                             pads[dim], extents[dim]);
      rest /= stride;
    }
    WindowAttributes plain;
    SmallVector<int64_t> reach(2 * rank);
    for (auto [dim, phase] : llvm::enumerate(phases)) {
      plain.kernel.push_back(phase.taps);
      reach[dim] = phase.padBegin;
      reach[rank + dim] = phase.padEnd;
    }
    plain.pads = ArrayRef<int64_t>(reach);
    FailureOr<Window> forward = getWindow(b, input, plain);
    if (failed(forward))
      return failure();
    FailureOr<Value> product = createConv(
        b, input, onePhaseWeights(b, weights, group, window.strides, phases),
        *forward, group);
    if (failed(product))
      return failure();
    FailureOr<Value> part = addBias(b, *product, bias, element);
    if (failed(part))
      return failure();
    Sizes sizes = b.dims(*part);
    sizes.insert(sizes.begin(), b.size(1));
    SmallVector<ReassociationIndices> groups;
    appendGroup(groups, 0, 2);
    for (int64_t dim = 2; dim < rank + 3; ++dim)
      appendGroup(groups, dim, 1);
    parts.push_back(b.expand(*part, groups, sizes));
  }
  Value result =
      interleaveEach(b, tensor::ConcatOp::create(b, 0, parts), window.strides);
  Sizes sizes = b.dims(result), offsets(sizes.size(), b.size(0));
  bool isWhole = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    const int64_t stride = window.strides[dim];
    isWhole &= extents[dim] % stride == 0;
    sizes[2 + dim] =
        b.atLeast(b.plus(b.times(window.inputs[dim], stride), extents[dim]), 0);
  }
  return isWhole ? result : b.slice(result, offsets, sizes);
}

/// The product without its bias, as a convolution of the input with zeros
/// between its elements.
FailureOr<Value> buildSpread(Lowering<onnx::ConvTransposeOp> &b, Value input,
                             Value weights, const Window &window, int64_t group,
                             ArrayRef<int64_t> pads, ArrayRef<int64_t> extra) {
  int64_t rank = window.rank();
  input = spreadInput(b, input, window.strides);
  weights = phaseWeights(b, weights, group, SmallVector<int64_t>(rank, 1),
                         window.kernel);
  SmallVector<int64_t> reach;
  for (int64_t dim = 0; dim < rank; ++dim)
    reach.push_back(window.span(dim) - 1 - pads[dim]);
  for (int64_t dim = 0; dim < rank; ++dim)
    reach.push_back(window.span(dim) - 1 - pads[rank + dim] + extra[dim]);
  WindowAttributes plain;
  plain.kernel = window.kernel;
  plain.dilations = ArrayRef<int64_t>(window.dilations);
  plain.pads = ArrayRef<int64_t>(reach);
  FailureOr<Window> forward = getWindow(b, input, plain);
  if (failed(forward))
    return b.refuse("pads do not fit");
  FailureOr<Value> product = createConv(b, input, weights, *forward, group);
  if (failed(product))
    return b.refuse("channels do not fit, or more than 3 spatial dimensions");
  return product;
}

LogicalResult lowerConvTranspose(Lowering<onnx::ConvTransposeOp> &b) {
  Type element = getOnnxElementType(b.op.getX());
  auto floatType = dyn_cast_or_null<FloatType>(element);
  int64_t group = b.op.getGroup();
  if (!floatType || floatType.getWidth() < 16 || group < 1)
    return b.refuse("type or group is not supported");
  Value weights = b.in.getW();
  FailureOr<SmallVector<int64_t>> kernel =
      getKernelShape(b, weights, b.op.getKernelShape());
  if (failed(kernel))
    return b.refuse("kernel sizes are not known");
  WindowAttributes attributes;
  attributes.kernel = *kernel;
  attributes.strides = b.op.getStrides();
  attributes.dilations = b.op.getDilations();
  FailureOr<Window> window = getWindow(b, b.in.getX(), attributes);
  SmallVector<int64_t> pads, extra;
  if (failed(window) || failed(getPads(b, b.op, *window, pads, extra)))
    return b.refuse(
        "attributes do not fit, or output_shape with dynamic sizes");
  if (std::optional<int64_t> known = getStaticSize(b.dim(weights, 0));
      (known && *known % group != 0) ||
      !b.sameSize(b.dim(b.in.getX(), 1), b.dim(weights, 0),
                  "channels of the input and the weights differ"))
    return b.refuse("channels do not fit");

  Type accumulator = getAccumulatorType(element);
  Value input = b.convertElements(b.in.getX(), accumulator);
  weights = b.convertElements(weights, accumulator);
  const bool isEach = hasFewPhases(*window, extra);
  if (isEach || hasPhases(*window, extra)) {
    FailureOr<Value> result =
        isEach ? buildEachPhase(b, input, weights, b.in.getB(), element,
                                *window, group, pads, extra)
               : buildPhases(b, input, weights, b.in.getB(), element, *window,
                             group, pads);
    if (failed(result))
      return b.refuse("sizes do not fit");
    return b.replace(*result);
  }
  FailureOr<Value> product =
      buildSpread(b, input, weights, *window, group, pads, extra);
  if (failed(product))
    return failure();
  FailureOr<Value> result = addBias(b, *product, b.in.getB(), element);
  if (failed(result))
    return b.refuse("bias does not fit");
  return b.replace(*result);
}

} // namespace

void populateConvTransposePatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addLowering<onnx::ConvTransposeOp, lowerConvTranspose>(patterns, converter);
}

} // namespace sardonyx
