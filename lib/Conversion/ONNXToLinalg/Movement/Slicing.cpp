//===- Slicing.cpp - Slice, Split, Concat and Pad -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Boxes cut out of tensors and put into others. Unit and positive steps become
// tensor slices, which cost a copy at most; everything else reads element by
// element through createIndexed.
//
//===----------------------------------------------------------------------===//

#include "Movement/RepeatedEnds.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate,
              Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

Value toIndex(OpBuilder &b, Location loc, Value integer) {
  if (isa<IndexType>(integer.getType()))
    return integer;
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), integer);
}

Value createIndexed(
    OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes, Type elementType,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  Value empty = createEmpty(b, loc, sizes, elementType);
  int64_t rank = sizes.size();
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  auto generic = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange{}, empty, identity, iterators,
      [&](OpBuilder &inner, Location at, ValueRange) {
        SmallVector<Value> indices;
        for (int64_t dim = 0; dim < rank; ++dim)
          indices.push_back(linalg::IndexOp::create(inner, at, dim));
        Value value = body(inner, at, indices);
        linalg::YieldOp::create(inner, at, value);
      });
  return generic.getResult(0);
}

namespace {

/// max(low, min(value, high)) of index values.
Value clamp(OpBuilder &b, Location loc, Value value, Value low, Value high) {
  value = arith::MinSIOp::create(b, loc, value, high);
  return arith::MaxSIOp::create(b, loc, value, low);
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

/// Start, step and number of elements of a Slice along one dimension.
struct Range {
  Size start, step, size;
};

/// Numpy's rule for `start:end:step` on a dimension of size `dim`: negative
/// bounds count from the end, both are clamped to [0, dim], or to [-1, dim - 1]
/// when going backwards.
Range getRange(OpBuilder &b, Location loc, Size dim, Size start, Size end,
               Size step) {
  std::optional<int64_t> s = getStaticSize(start), e = getStaticSize(end),
                         t = getStaticSize(step), d = getStaticSize(dim);
  if (s && e && t && d && *t != 0) {
    int64_t low = *t > 0 ? 0 : -1, high = *t > 0 ? *d : *d - 1;
    auto bound = [&](int64_t v, int64_t least) {
      if (v < 0)
        v += *d; // The lowest int64 stays far below, whatever the size.
      return std::min(std::max(v, least), high);
    };
    int64_t first = bound(*s, *t > 0 ? 0 : (*d ? 0 : -1)),
            last = bound(*e, low);
    int64_t span = *t > 0 ? last - first : first - last;
    *t = std::clamp(*t, -kMaxSize, kMaxSize);
    int64_t stride = std::abs(*t);
    int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    return {asSize(b, first), asSize(b, *t), asSize(b, count)};
  }
  // From the front to a bound that is certainly past the end: everything.
  if (s == 0 && t == 1 && e && *e >= INT32_MAX)
    return {start, step, dim};
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  Value dimValue = asIndex(b, loc, dim), stepValue = asIndex(b, loc, step);
  // No dimension is so large that longer steps would make a difference, and
  // these can be negated and added to positions.
  if (!t) {
    stepValue = clamp(b, loc, stepValue, createIndex(b, loc, -kMaxSize),
                      createIndex(b, loc, kMaxSize));
    step = stepValue;
  }
  Value forward = compare(b, loc, arith::CmpIPredicate::sgt, stepValue, zero);
  Value lastIndex = arith::SubIOp::create(b, loc, dimValue, one);
  Value minusOne = createIndex(b, loc, -1);
  Value high = arith::SelectOp::create(b, loc, forward, dimValue, lastIndex);
  auto bound = [&](Size size, Value low) -> Value {
    Value v = asIndex(b, loc, size);
    Value negative = compare(b, loc, arith::CmpIPredicate::slt, v, zero);
    Value wrapped = arith::AddIOp::create(b, loc, v, dimValue);
    v = arith::SelectOp::create(b, loc, negative, wrapped, v);
    return clamp(b, loc, v, low, high);
  };
  Value endLow = arith::SelectOp::create(b, loc, forward, zero, minusOne);
  // Going backwards, an empty dimension has no first element.
  Value startLow = arith::MinSIOp::create(b, loc, zero, high);
  Value first = bound(start, startLow), last = bound(end, endLow);
  Value up = arith::SubIOp::create(b, loc, last, first);
  Value down = arith::SubIOp::create(b, loc, first, last);
  Value span = arith::SelectOp::create(b, loc, forward, up, down);
  Value negated = arith::SubIOp::create(b, loc, zero, stepValue);
  Value stride = arith::SelectOp::create(b, loc, forward, stepValue, negated);
  stride = arith::MaxSIOp::create(b, loc, stride, one);
  span = arith::MaxSIOp::create(b, loc, span, zero);
  Value count = arith::CeilDivUIOp::create(b, loc, span, stride);
  return {first, step, count};
}

/// Narrows the range of `axis`; when the axis is known only at run time, each
/// dimension asks whether it is meant.
void narrowRange(OpBuilder &b, Location loc, Size axis, Sizes &in, Size start,
                 Size end, Size step, MutableArrayRef<Range> ranges) {
  if (std::optional<int64_t> known = getStaticSize(axis)) {
    ranges[*known] = getRange(b, loc, in[*known], start, end, step);
    return;
  }
  Value value = cast<Value>(axis);
  for (int64_t dim = 0, rank = in.size(); dim < rank; ++dim) {
    Value meant = compare(b, loc, arith::CmpIPredicate::eq, value,
                          createIndex(b, loc, dim));
    Range range = getRange(b, loc, in[dim], start, end, step);
    auto choose = [&](Size yes, Size no) -> Size {
      return arith::SelectOp::create(b, loc, meant, asIndex(b, loc, yes),
                                     asIndex(b, loc, no))
          .getResult();
    };
    ranges[dim] = {choose(range.start, ranges[dim].start),
                   choose(range.step, ranges[dim].step),
                   choose(range.size, ranges[dim].size)};
  }
}

Value readBackwards(OpBuilder &b, Location loc, Value data,
                    const Sizes &offsets, const Sizes &sizes,
                    const Sizes &strides) {
  SmallVector<Value> first, step;
  for (auto [offset, stride] : llvm::zip_equal(offsets, strides)) {
    first.push_back(asIndex(b, loc, offset));
    step.push_back(asIndex(b, loc, stride));
  }
  Type element = cast<RankedTensorType>(data.getType()).getElementType();
  return createIndexed(
      b, loc, sizes, element,
      [&](OpBuilder &inner, Location at, ValueRange indices) -> Value {
        SmallVector<Value> source;
        for (auto [i, index] : llvm::enumerate(indices)) {
          Value scaled = arith::MulIOp::create(inner, at, index, step[i]);
          source.push_back(arith::AddIOp::create(inner, at, first[i], scaled));
        }
        return tensor::ExtractOp::create(inner, at, data, source);
      });
}

/// Slice's lists, each with an element for each axis that is named.
struct SliceLists {
  Sizes starts, ends, axes, steps;
};

/// How many axes are named: any of the lists may tell, as all are of one
/// length; -1 where none does.
FailureOr<int64_t> getAxisCount(Lowering<onnx::SliceOp> &b) {
  std::optional<int64_t> count;
  for (Value list :
       {b.in.getStarts(), b.in.getEnds(), b.in.getAxes(), b.in.getSteps()}) {
    if (!list)
      continue;
    RankedTensorType type = rankedType(list);
    if (type.getRank() != 1)
      return b.refuse("starts, ends, axes and steps must be lists");
    if (!count && !type.isDynamicDim(0))
      count = type.getDimSize(0);
  }
  return count.value_or(-1);
}

/// Reads lists whose length only the run knows: they begin with the first axis,
/// and leave whole those that they have nothing for.
FailureOr<SliceLists> readOpenLists(Lowering<onnx::SliceOp> &b, int64_t rank) {
  if (b.in.getAxes())
    return b.refuse("number of starts is not known");
  Location loc = b.getLoc();
  Size length = b.dim(b.in.getStarts(), 0), most = b.size(rank);
  Value fits = compare(b, loc, arith::CmpIPredicate::sle, b.index(length),
                       b.index(most));
  createCheck(b, loc, fits, "there are {0} starts for {1} dimensions",
              {length, most});
  auto read = [&](Value list, int64_t otherwise) -> Sizes {
    if (!list)
      return Sizes(rank, b.size(otherwise));
    checkSameSize(b, loc, b.dim(list, 0), length,
                  "starts, ends, axes and steps differ in length");
    Sizes all;
    for (int64_t i = 0; i < rank; ++i) {
      Value isThere = compare(b, loc, arith::CmpIPredicate::sgt,
                              b.index(b.dim(list, 0)), b.index(i));
      Values value =
          when(b, isThere, b.index(otherwise), [&](TensorBuilder &s) -> Values {
            return {s.convert(s.extract(list, s.index(i)), s.getIndexType())};
          });
      all.push_back(value.front());
    }
    return all;
  };
  SliceLists lists{read(b.in.getStarts(), 0),
                   read(b.in.getEnds(), std::numeric_limits<int64_t>::max()),
                   Sizes(), read(b.in.getSteps(), 1)};
  for (int64_t i = 0; i < rank; ++i)
    lists.axes.push_back(b.size(i));
  return lists;
}

/// Reads the lists, and refuses those that do not fit a tensor of `rank`.
FailureOr<SliceLists> readLists(Lowering<onnx::SliceOp> &b, int64_t rank) {
  FailureOr<int64_t> known = getAxisCount(b);
  if (failed(known))
    return failure();
  int64_t count = *known;
  if (count < 0)
    return readOpenLists(b, rank);
  if (count > rank)
    return b.refuse("more starts than dimensions");
  auto read = [&](Value list, StringRef name) {
    return getIntListAsSizes(b, b.getLoc(), list, count, name);
  };
  FailureOr<Sizes> starts = read(b.in.getStarts(), "starts");
  FailureOr<Sizes> ends = read(b.in.getEnds(), "ends");
  FailureOr<Sizes> steps = Sizes(count, b.size(1)), axes = Sizes();
  if (b.in.getSteps())
    steps = read(b.in.getSteps(), "steps");
  for (int64_t i = 0; i < count; ++i)
    axes->push_back(b.size(i));
  if (b.in.getAxes())
    axes = read(b.in.getAxes(), "axes");
  if (failed(starts) || failed(ends) || failed(steps) || failed(axes))
    return b.refuse("starts, ends, axes and steps differ in length");
  return SliceLists{*starts, *ends, *axes, *steps};
}

/// Checks that no step is zero; fails when one is known to be.
LogicalResult checkSteps(TensorBuilder &b, ArrayRef<OpFoldResult> steps) {
  for (Size step : steps) {
    if (getStaticSize(step) == 0)
      return failure();
    if (!getStaticSize(step))
      createCheck(b, b.getLoc(),
                  compare(b, b.getLoc(), arith::CmpIPredicate::ne,
                          b.index(step), createIndex(b, b.getLoc(), 0)),
                  "a step is zero");
  }
  return success();
}

LogicalResult lowerSlice(Lowering<onnx::SliceOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData();
  Sizes in = b.dims(data);
  int64_t rank = in.size();
  FailureOr<SliceLists> lists = readLists(b, rank);
  if (failed(lists))
    return failure();
  if (failed(checkSteps(b, lists->steps)))
    return b.refuse("a step is zero");
  if (failed(checkAxes(b, loc, lists->axes, rank)))
    return b.refuse("an axis is out of range or occurs twice");

  SmallVector<Range> ranges;
  for (Size size : in)
    ranges.push_back({b.size(0), b.size(1), size});
  for (auto [axis, start, end, step] :
       llvm::zip_equal(lists->axes, lists->starts, lists->ends, lists->steps))
    narrowRange(b, loc, axis, in, start, end, step, ranges);

  Sizes offsets, sizes, strides;
  bool box = true;
  for (Range &range : ranges) {
    offsets.push_back(range.start);
    sizes.push_back(range.size);
    strides.push_back(range.step);
    std::optional<int64_t> step = getStaticSize(range.step);
    box &= step && *step > 0;
  }
  if (RankedTensorType declared = b.declared();
      declared && declared.getRank() == rank)
    sizes = refineSizes(b, sizes, declared);
  if (box)
    return b.replace(slice(b, loc, data, offsets, sizes, strides));
  return b.replace(readBackwards(b, loc, data, offsets, sizes, strides));
}

//===----------------------------------------------------------------------===//
// Split and Concat
//===----------------------------------------------------------------------===//

/// The lengths that input 'split' gives, which have to add up to `whole`.
FailureOr<Sizes> getGivenLengths(Lowering<onnx::SplitOp> &b, Value split,
                                 int64_t parts, Size whole) {
  Location loc = b.getLoc();
  FailureOr<Sizes> lengths = getIntListAsSizes(b, loc, split, parts, "split");
  if (failed(lengths))
    return b.refuse("input 'split' has not one element for each output");
  Size total = b.size(0);
  for (Size length : *lengths) {
    if (failed(checkRange(b, loc, length, 0, kMaxSize,
                          "a part has an impossible size")))
      return b.refuse("a part has a negative size");
    total = b.plus(total, length);
  }
  if (getStaticSize(total) && getStaticSize(whole) && !isSameSize(total, whole))
    return b.refuse("the parts do not add up to the axis' size");
  checkSameSize(b, loc, total, whole,
                "the parts do not add up to the axis' size");
  return lengths;
}

/// Equal parts, of which the last one may be smaller.
FailureOr<Sizes> getEqualLengths(Lowering<onnx::SplitOp> &b, int64_t parts,
                                 Size whole) {
  Size part = b.ceilDiv(whole, b.size(parts)), left = whole;
  Sizes lengths;
  for (int64_t i = 0; i + 1 < parts; ++i) {
    lengths.push_back(part);
    left = b.minus(left, part);
  }
  if (failed(checkRange(b, b.getLoc(), left, 0,
                        std::numeric_limits<int64_t>::max(),
                        "the axis is too short for so many parts")))
    return b.refuse("the axis is too short for so many parts");
  lengths.push_back(left);
  return lengths;
}

LogicalResult lowerSplit(Lowering<onnx::SplitOp> &b) {
  Value input = b.in.getInput();
  Sizes sizes = b.dims(input);
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size());
  if (failed(axis))
    return b.refuse("axis out of range");
  int64_t parts = b.op->getNumResults();
  Value split = b.in.getSplit();
  // An empty list says as little as none.
  if (split && parts > 0)
    if (RankedTensorType type = rankedType(split);
        type.hasStaticShape() && type.getNumElements() == 0)
      split = Value();
  FailureOr<Sizes> lengths =
      split ? getGivenLengths(b, split, parts, sizes[*axis])
            : getEqualLengths(b, parts, sizes[*axis]);
  if (failed(lengths))
    return failure();
  Sizes offsets(sizes.size(), b.size(0));
  SmallVector<Value> results;
  for (int64_t i = 0; i < parts; ++i) {
    Sizes box = sizes;
    box[*axis] = (*lengths)[i];
    if (RankedTensorType declared = b.declared(i))
      box = refineSizes(b, box, declared);
    results.push_back(slice(b, b.getLoc(), input, offsets, box));
    offsets[*axis] = b.plus(offsets[*axis], (*lengths)[i]);
  }
  return b.replace(results);
}

LogicalResult lowerConcat(Lowering<onnx::ConcatOp> &b) {
  Location loc = b.getLoc();
  ValueRange inputs = b.in.getInputs();
  if (inputs.empty())
    return b.refuse("no operands");
  Sizes sizes = b.dims(inputs.front());
  FailureOr<int64_t> axis = normalizeAxis(b.op.getAxis(), sizes.size());
  if (failed(axis))
    return b.refuse("axis out of range");
  SmallVector<Sizes> boxes;
  Size total = b.size(0);
  for (Value input : inputs) {
    boxes.push_back(b.dims(input));
    if (boxes.back().size() != sizes.size())
      return b.refuse("operands of several ranks");
    total = b.plus(total, boxes.back()[*axis]);
  }
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    for (Sizes &box : boxes)
      if (getStaticSize(box[dim]) && !getStaticSize(sizes[dim]))
        sizes[dim] = box[dim];
  sizes[*axis] = total;
  if (RankedTensorType declared = b.declared())
    sizes = refineSizes(b, sizes, declared);
  Type element = elementTypeOf(inputs.front());
  Value result = b.empty(sizes, element);
  Sizes offsets(sizes.size(), b.size(0));
  for (auto [input, box] : llvm::zip_equal(inputs, boxes)) {
    for (auto [dim, size] : llvm::enumerate(box)) {
      if (int64_t(dim) == *axis)
        continue;
      if (getStaticSize(size) && getStaticSize(sizes[dim]) &&
          !isSameSize(size, sizes[dim]))
        return b.refuse("operands differ in size");
      checkSameSize(b, loc, size, sizes[dim],
                    "operands disagree in dimension " + Twine(dim));
    }
    // Sizes may be known better than the operand's type says.
    Value part = b.cast(input, getTensorType(box, element));
    result = b.insert(part, result, offsets, box);
    offsets[*axis] = b.plus(offsets[*axis], box[*axis]);
  }
  return b.replace(result);
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

/// The axes in their own order, which is that of the pads.
FailureOr<Sizes> getPaddedAxes(Lowering<onnx::PadOp> &b, int64_t rank) {
  Sizes axes;
  if (!b.in.getAxes()) {
    for (int64_t dim = 0; dim < rank; ++dim)
      axes.push_back(b.size(dim));
    return axes;
  }
  RankedTensorType type = rankedType(b.in.getAxes());
  RankedTensorType pads = rankedType(b.in.getPads());
  int64_t count;
  if (type.hasStaticShape())
    count = type.getNumElements();
  else if (pads.hasStaticShape())
    count = pads.getNumElements() / 2;
  else
    return failure();
  if (count > rank)
    return failure();
  FailureOr<Sizes> given =
      getIntListAsSizes(b, b.getLoc(), b.in.getAxes(), count, "axes");
  if (failed(given) || failed(checkAxes(b, b.getLoc(), *given, rank)))
    return failure();
  return given;
}

/// What is added to dimension `dim`: the pad of the axis that is this one,
/// which perhaps only the run knows.
Size getPad(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> axes,
            ArrayRef<OpFoldResult> pads, int64_t dim) {
  Size pad = asSize(b, 0);
  for (auto [axis, given] : llvm::zip(axes, pads)) {
    if (std::optional<int64_t> known = getStaticSize(axis)) {
      if (*known == dim)
        return given;
      continue;
    }
    Value meant = compare(b, loc, arith::CmpIPredicate::eq, cast<Value>(axis),
                          createIndex(b, loc, dim));
    pad = arith::SelectOp::create(b, loc, meant, asIndex(b, loc, given),
                                  asIndex(b, loc, pad))
              .getResult();
  }
  return pad;
}

Value createIntOrFloatZero(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

/// The check that a dimension of size 0 doesn't become larger.
LogicalResult checkRepeats(OpBuilder &b, Location loc, Size size, Size padded) {
  if (isSameSize(size, padded) || getStaticSize(padded) == 0)
    return success();
  if (std::optional<int64_t> known = getStaticSize(size);
      known && (*known > 0 || getStaticSize(padded)))
    return success(*known > 0);
  Value zero = createIndex(b, loc, 0);
  Value some =
      compare(b, loc, arith::CmpIPredicate::sgt, asIndex(b, loc, size), zero);
  Value none =
      compare(b, loc, arith::CmpIPredicate::eq, asIndex(b, loc, padded), zero);
  createCheck(b, loc, arith::OrIOp::create(b, loc, some, none),
              "there is nothing to repeat in a dimension of size 0");
  return success();
}

/// `data` between copies of `fill` (surround), if it has elements.
Value surroundElements(TensorBuilder &b, Value data, const Sizes &low,
                       const Sizes &sizes, Value fill) {
  Value hasElements, none = b.index(int64_t(0));
  for (Size size : b.dims(data)) {
    if (std::optional<int64_t> known = getStaticSize(size)) {
      if (*known == 0)
        return b.filled(sizes, fill);
      continue;
    }
    Value some = b.compare(arith::CmpIPredicate::sgt, b.index(size), none);
    hasElements = hasElements
                      ? arith::AndIOp::create(b, hasElements, some).getResult()
                      : some;
  }
  if (!hasElements)
    return surround(b, data, low, sizes, fill);
  auto yield = [&](function_ref<Value(TensorBuilder &)> make) {
    return [make](OpBuilder &builder, Location loc) {
      TensorBuilder s(loc, builder);
      scf::YieldOp::create(s, make(s));
    };
  };
  auto surrounded = [&](TensorBuilder &s) {
    return surround(s, data, low, sizes, fill);
  };
  auto filled = [&](TensorBuilder &s) { return s.filled(sizes, fill); };
  return scf::IfOp::create(b, hasElements, yield(surrounded), yield(filled))
      .getResult(0);
}

LogicalResult lowerPad(Lowering<onnx::PadOp> &b) {
  Location loc = b.getLoc();
  Value data = b.in.getData();
  auto type = cast<RankedTensorType>(data.getType());
  int64_t rank = type.getRank();
  FailureOr<Sizes> axes = getPaddedAxes(b, rank);
  if (failed(axes))
    return b.refuse("its axes are not valid, or their number not known");
  int64_t count = axes->size();
  FailureOr<Sizes> pads =
      getIntListAsSizes(b, loc, b.in.getPads(), 2 * count, "pads");
  if (failed(pads))
    return b.refuse("input 'pads' has not two elements for each axis");
  for (Size pad : *pads)
    if (failed(checkRange(b, loc, pad, -kMaxSize, kMaxSize,
                          "an element of input 'pads' is impossible")))
      return b.refuse("a pad is impossible");
  Sizes in = b.dims(data), sizes = in;
  Sizes low(rank, b.size(0)), high = low;
  for (int64_t dim = 0; dim < rank; ++dim) {
    low[dim] = getPad(b, loc, *axes, ArrayRef(*pads), dim);
    high[dim] = getPad(b, loc, *axes, ArrayRef(*pads).drop_front(count), dim);
    sizes[dim] = b.plus(in[dim], b.plus(low[dim], high[dim]));
    if (getStaticSize(sizes[dim]).value_or(0) < 0)
      return b.refuse("more is cut off than is there");
  }
  auto adds = [](Size pad) { return getStaticSize(pad).value_or(-1) >= 0; };
  if (!llvm::all_of(*pads, adds))
    checkSizes(b, loc, sizes, type.getElementType());
  if (RankedTensorType declared = b.declared())
    sizes = refineSizes(b, sizes, declared);
  Type element = type.getElementType();
  if (b.op.getMode() == "constant") {
    Value fill = b.in.getConstantValue()
                     ? getScalar(b, loc, b.in.getConstantValue())
                     : createIntOrFloatZero(b, loc, element);
    // What is put into the middle of rows takes a pass over them.
    if (llvm::all_of(*pads, adds) &&
        (rank == 0 ||
         (getStaticSize(low.back()) == 0 && getStaticSize(high.back()) == 0))) {
      Value result = b.filled(sizes, fill);
      Value part = b.cast(data, getTensorType(in, element));
      return b.replace(b.insert(part, result, low, in));
    }
    return b.replace(surroundElements(b, data, low, sizes, fill));
  }
  for (auto [size, padded] : llvm::zip_equal(in, sizes))
    if (failed(checkRepeats(b, loc, size, padded)))
      return b.refuse("there is nothing to repeat");
  return b.replace(repeatEnds(b, data, low, high, sizes, b.op.getMode()));
}

} // namespace

void populateSlicePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns) {
  addLowering<onnx::SliceOp, lowerSlice>(patterns, converter);
  addLowering<onnx::SplitOp, lowerSplit>(patterns, converter);
  addLowering<onnx::ConcatOp, lowerConcat>(patterns, converter);
  addLowering<onnx::PadOp, lowerPad>(patterns, converter);
}

} // namespace sardonyx
