//===- Slicing.cpp - Slice, Split, Concat and Pad -------------------------===//
//
// Boxes cut out of tensors and put into others. Unit and positive steps become
// tensor slices, which cost a copy at most; everything else reads element by
// element through createIndexed.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"

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
    *t = std::clamp(*t, -kMostSize, kMostSize);
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
    stepValue = clamp(b, loc, stepValue, createIndex(b, loc, -kMostSize),
                      createIndex(b, loc, kMostSize));
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

struct SliceLowering : OnnxPattern<onnx::SliceOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SliceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value data = adaptor.getData();
    Sizes in = getSizes(rewriter, loc, data);
    int64_t rank = in.size();
    auto startsType = cast<RankedTensorType>(adaptor.getStarts().getType());
    if (startsType.getRank() != 1 || startsType.isDynamicDim(0))
      return refuse(op, "number of starts is not known");
    int64_t count = startsType.getDimSize(0);
    if (count > rank)
      return refuse(op, "more starts than dimensions");
    auto read = [&](Value list, StringRef name) {
      return getIntListAsSizes(rewriter, loc, list, count, name);
    };
    FailureOr<Sizes> starts = read(adaptor.getStarts(), "starts");
    FailureOr<Sizes> ends = read(adaptor.getEnds(), "ends");
    FailureOr<Sizes> steps = Sizes(count, asSize(rewriter, 1)), axes = Sizes();
    if (adaptor.getSteps())
      steps = read(adaptor.getSteps(), "steps");
    for (int64_t i = 0; i < count; ++i)
      axes->push_back(asSize(rewriter, i));
    if (adaptor.getAxes())
      axes = read(adaptor.getAxes(), "axes");
    if (failed(starts) || failed(ends) || failed(steps) || failed(axes))
      return refuse(op, "starts, ends, axes and steps differ in length");
    for (Size step : *steps) {
      if (getStaticSize(step) == 0)
        return refuse(op, "a step is zero");
      if (!getStaticSize(step))
        createCheck(rewriter, loc,
                    compare(rewriter, loc, arith::CmpIPredicate::ne,
                            asIndex(rewriter, loc, step),
                            createIndex(rewriter, loc, 0)),
                    "a step is zero");
    }
    if (failed(checkAxes(rewriter, loc, *axes, rank)))
      return refuse(op, "an axis is out of range or "
                        "occurs twice");

    SmallVector<Range> ranges;
    for (Size size : in)
      ranges.push_back({asSize(rewriter, 0), asSize(rewriter, 1), size});
    for (int64_t i = 0; i < count; ++i)
      apply(rewriter, loc, (*axes)[i], in, (*starts)[i], (*ends)[i],
            (*steps)[i], ranges);

    Sizes offsets, sizes, strides;
    bool box = true;
    for (Range &range : ranges) {
      offsets.push_back(range.start);
      sizes.push_back(range.size);
      strides.push_back(range.step);
      std::optional<int64_t> step = getStaticSize(range.step);
      box &= step && *step > 0;
    }
    if (RankedTensorType declared =
            getDeclared(*getTypeConverter(), op->getResult(0));
        declared && declared.getRank() == rank)
      sizes = refineSizes(rewriter, sizes, declared);
    if (box)
      return replace(rewriter, op,
                     slice(rewriter, loc, data, offsets, sizes, strides));
    return replace(rewriter, op,
                   readBackwards(rewriter, loc, data, offsets, sizes, strides));
  }

private:
  /// Narrows the range of `axis`; when the axis is known only at run time, each
  /// dimension asks whether it is meant.
  static void apply(OpBuilder &b, Location loc, Size axis, Sizes &in,
                    Size start, Size end, Size step,
                    MutableArrayRef<Range> ranges) {
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

  static Value readBackwards(OpBuilder &b, Location loc, Value data,
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
            source.push_back(
                arith::AddIOp::create(inner, at, first[i], scaled));
          }
          return tensor::ExtractOp::create(inner, at, data, source);
        });
  }
};

//===----------------------------------------------------------------------===//
// Split and Concat
//===----------------------------------------------------------------------===//

struct SplitLowering : OnnxPattern<onnx::SplitOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SplitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value input = adaptor.getInput();
    Sizes sizes = getSizes(rewriter, loc, input);
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), sizes.size());
    if (failed(axis))
      return refuse(op, "axis out of range");
    int64_t parts = op->getNumResults();
    Sizes lengths;
    // An empty list says as little as none.
    Value split = adaptor.getSplit();
    if (split && parts > 0)
      if (auto type = cast<RankedTensorType>(split.getType());
          type.hasStaticShape() && type.getNumElements() == 0)
        split = Value();
    if (split) {
      FailureOr<Sizes> given =
          getIntListAsSizes(rewriter, loc, split, parts, "split");
      if (failed(given))
        return refuse(op, "input 'split' has not one element for each output");
      lengths = *given;
      Size total = asSize(rewriter, 0);
      for (Size length : lengths) {
        if (failed(checkRange(rewriter, loc, length, 0, kMostSize,
                              "a part has an impossible size")))
          return refuse(op, "a part has a negative size");
        total = addSizes(rewriter, loc, total, length);
      }
      if (getStaticSize(total) && getStaticSize(sizes[*axis]) &&
          !isSameSize(total, sizes[*axis]))
        return refuse(op, "the parts do not add up to the axis' size");
      checkSameSize(rewriter, loc, total, sizes[*axis],
                    "the parts do not add up to the axis' size");
    } else { // Equal parts, the last one may be smaller.
      Size part =
          ceilDivSizes(rewriter, loc, sizes[*axis], asSize(rewriter, parts));
      Size left = sizes[*axis];
      for (int64_t i = 0; i + 1 < parts; ++i) {
        lengths.push_back(part);
        left = subSizes(rewriter, loc, left, part);
      }
      if (failed(checkRange(rewriter, loc, left, 0,
                            std::numeric_limits<int64_t>::max(),
                            "the axis is too short for so many parts")))
        return refuse(op, "the axis is too short for so many parts");
      lengths.push_back(left);
    }
    Sizes offsets(sizes.size(), asSize(rewriter, 0));
    SmallVector<Value> results;
    for (int64_t i = 0; i < parts; ++i) {
      Sizes box = sizes;
      box[*axis] = lengths[i];
      if (RankedTensorType declared =
              getDeclared(*getTypeConverter(), op->getResult(i)))
        box = refineSizes(rewriter, box, declared);
      results.push_back(slice(rewriter, loc, input, offsets, box));
      offsets[*axis] = addSizes(rewriter, loc, offsets[*axis], lengths[i]);
    }
    return replace(rewriter, op, results);
  }
};

struct ConcatLowering : OnnxPattern<onnx::ConcatOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ConcatOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ValueRange inputs = adaptor.getInputs();
    if (inputs.empty())
      return refuse(op, "no operands");
    Sizes sizes = getSizes(rewriter, loc, inputs.front());
    FailureOr<int64_t> axis = normalizeAxis(op.getAxis(), sizes.size());
    if (failed(axis))
      return refuse(op, "axis out of range");
    SmallVector<Sizes> boxes;
    Size total = asSize(rewriter, 0);
    for (Value input : inputs) {
      boxes.push_back(getSizes(rewriter, loc, input));
      if (boxes.back().size() != sizes.size())
        return refuse(op, "operands of several ranks");
      total = addSizes(rewriter, loc, total, boxes.back()[*axis]);
    }
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      for (Sizes &box : boxes)
        if (getStaticSize(box[dim]) && !getStaticSize(sizes[dim]))
          sizes[dim] = box[dim];
    sizes[*axis] = total;
    if (RankedTensorType declared =
            getDeclared(*getTypeConverter(), op->getResult(0)))
      sizes = refineSizes(rewriter, sizes, declared);
    Type element =
        cast<RankedTensorType>(inputs.front().getType()).getElementType();
    Value result = createEmpty(rewriter, loc, sizes, element);
    Sizes offsets(sizes.size(), asSize(rewriter, 0));
    for (auto [input, box] : llvm::zip_equal(inputs, boxes)) {
      for (auto [dim, size] : llvm::enumerate(box)) {
        if (int64_t(dim) == *axis)
          continue;
        if (getStaticSize(size) && getStaticSize(sizes[dim]) &&
            !isSameSize(size, sizes[dim]))
          return refuse(op, "operands differ in size");
        checkSameSize(rewriter, loc, size, sizes[dim],
                      "operands disagree in dimension " + Twine(dim));
      }
      // Sizes may be known better than the operand's type says.
      Value part = castTo(rewriter, loc, input, getTensorType(box, element));
      result = insertSlice(rewriter, loc, part, result, offsets, box);
      offsets[*axis] = addSizes(rewriter, loc, offsets[*axis], box[*axis]);
    }
    return replace(rewriter, op, result);
  }
};

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

struct PadLowering : OnnxPattern<onnx::PadOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::PadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value data = adaptor.getData();
    auto type = cast<RankedTensorType>(data.getType());
    int64_t rank = type.getRank();
    FailureOr<Sizes> axes = getAxes(rewriter, loc, adaptor, rank);
    if (failed(axes))
      return refuse(op, "its axes are not valid, or their number not known");
    int64_t count = axes->size();
    FailureOr<Sizes> pads =
        getIntListAsSizes(rewriter, loc, adaptor.getPads(), 2 * count, "pads");
    if (failed(pads))
      return refuse(op, "input 'pads' has not two elements for each axis");
    for (Size pad : *pads)
      if (failed(checkRange(rewriter, loc, pad, -kMostSize, kMostSize,
                            "an element of input 'pads' is impossible")))
        return refuse(op, "a pad is impossible");
    Sizes in = getSizes(rewriter, loc, data), sizes = in;
    Sizes low(rank, asSize(rewriter, 0)), high = low;
    for (int64_t dim = 0; dim < rank; ++dim) {
      low[dim] = getPad(rewriter, loc, *axes, ArrayRef(*pads), dim);
      high[dim] =
          getPad(rewriter, loc, *axes, ArrayRef(*pads).drop_front(count), dim);
      sizes[dim] = addSizes(rewriter, loc, in[dim],
                            addSizes(rewriter, loc, low[dim], high[dim]));
      if (getStaticSize(sizes[dim]).value_or(0) < 0)
        return refuse(op, "more is cut off than is there");
    }
    auto adds = [](Size pad) { return getStaticSize(pad).value_or(-1) >= 0; };
    if (!llvm::all_of(*pads, adds))
      checkSizes(rewriter, loc, sizes, type.getElementType());
    if (RankedTensorType declared =
            getDeclared(*getTypeConverter(), op->getResult(0)))
      sizes = refineSizes(rewriter, sizes, declared);
    Type element = type.getElementType();
    if (op.getMode() == "constant") {
      Value fill = adaptor.getConstantValue()
                       ? getScalar(rewriter, loc, adaptor.getConstantValue())
                       : createIntOrFloatZero(rewriter, loc, element);
      if (llvm::all_of(*pads, adds)) {
        Value result = createFilled(rewriter, loc, sizes, fill);
        Value part = castTo(rewriter, loc, data, getTensorType(in, element));
        return replace(rewriter, op,
                       insertSlice(rewriter, loc, part, result, low, in));
      }
      return replace(rewriter, op,
                     readPadded(rewriter, loc, data, in, low, sizes, fill, ""));
    }
    if (!llvm::is_contained({"reflect", "edge", "wrap"}, op.getMode()))
      return refuse(op, "unknown mode");
    for (auto [size, padded] : llvm::zip_equal(in, sizes))
      if (failed(checkRepeats(rewriter, loc, size, padded)))
        return refuse(op, "there is nothing to repeat");
    return replace(
        rewriter, op,
        readPadded(rewriter, loc, data, in, low, sizes, Value(), op.getMode()));
  }

private:
  /// The axes in their own order, which is that of the pads.
  static FailureOr<Sizes> getAxes(OpBuilder &b, Location loc, Adaptor adaptor,
                                  int64_t rank) {
    Sizes axes;
    if (!adaptor.getAxes()) {
      for (int64_t dim = 0; dim < rank; ++dim)
        axes.push_back(asSize(b, dim));
      return axes;
    }
    auto type = cast<RankedTensorType>(adaptor.getAxes().getType());
    auto pads = cast<RankedTensorType>(adaptor.getPads().getType());
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
        getIntListAsSizes(b, loc, adaptor.getAxes(), count, "axes");
    if (failed(given) || failed(checkAxes(b, loc, *given, rank)))
      return failure();
    return given;
  }

  /// What is added to dimension `dim`: the pad of the axis that is this one,
  /// which perhaps only the run knows.
  static Size getPad(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> axes,
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

  static Value createIntOrFloatZero(OpBuilder &b, Location loc, Type type) {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  }

  /// The check that a dimension of size 0 doesn't become larger.
  static LogicalResult checkRepeats(OpBuilder &b, Location loc, Size size,
                                    Size padded) {
    if (isSameSize(size, padded) || getStaticSize(padded) == 0)
      return success();
    if (std::optional<int64_t> known = getStaticSize(size);
        known && (*known > 0 || getStaticSize(padded)))
      return success(*known > 0);
    Value zero = createIndex(b, loc, 0);
    Value some =
        compare(b, loc, arith::CmpIPredicate::sgt, asIndex(b, loc, size), zero);
    Value none = compare(b, loc, arith::CmpIPredicate::eq,
                         asIndex(b, loc, padded), zero);
    createCheck(b, loc, arith::OrIOp::create(b, loc, some, none),
                "there is nothing to repeat in a dimension of size 0");
    return success();
  }

  /// The position in [0, size) that `mode` reads for `position`, which may lie
  /// outside.
  static Value mapPosition(OpBuilder &b, Location loc, Value position,
                           Value size, StringRef mode) {
    Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
    Value last = arith::SubIOp::create(b, loc, size, one);
    if (mode == "edge" || mode.empty())
      return clamp(b, loc, position, zero, last);
    // A non-negative remainder, by a divisor of at least one.
    auto modulo = [&](Value value, Value divisor) -> Value {
      divisor = arith::MaxSIOp::create(b, loc, divisor, one);
      Value rest = arith::RemSIOp::create(b, loc, value, divisor);
      Value negative = compare(b, loc, arith::CmpIPredicate::slt, rest, zero);
      Value wrapped = arith::AddIOp::create(b, loc, rest, divisor);
      return arith::SelectOp::create(b, loc, negative, wrapped, rest);
    };
    if (mode == "wrap")
      return modulo(position, size);
    Value period = arith::AddIOp::create(b, loc, last, last);
    Value rest = modulo(position, period);
    Value mirrored = arith::SubIOp::create(b, loc, period, rest);
    Value past = compare(b, loc, arith::CmpIPredicate::sgt, rest, last);
    return arith::SelectOp::create(b, loc, past, mirrored, rest);
  }

  static Value readPadded(OpBuilder &b, Location loc, Value data,
                          const Sizes &in, const Sizes &low, const Sizes &sizes,
                          Value fill, StringRef mode) {
    SmallVector<Value> lows, dims;
    for (auto [l, d] : llvm::zip_equal(low, in)) {
      lows.push_back(asIndex(b, loc, l));
      dims.push_back(asIndex(b, loc, d));
    }
    Type element = cast<RankedTensorType>(data.getType()).getElementType();
    return createIndexed(
        b, loc, sizes, element,
        [&](OpBuilder &inner, Location at, ValueRange indices) -> Value {
          SmallVector<Value> source;
          Value inside =
              arith::ConstantOp::create(inner, at, inner.getBoolAttr(true));
          for (auto [i, index] : llvm::enumerate(indices)) {
            Value position = arith::SubIOp::create(inner, at, index, lows[i]);
            // As unsigned, a negative position is out of range too.
            Value within = compare(inner, at, arith::CmpIPredicate::ult,
                                   position, dims[i]);
            inside = arith::AndIOp::create(inner, at, inside, within);
            source.push_back(mapPosition(inner, at, position, dims[i], mode));
          }
          if (!fill)
            return tensor::ExtractOp::create(inner, at, data, source);
          // Nothing may be read where there is no element at all.
          auto guarded = scf::IfOp::create(
              inner, at, inside,
              [&](OpBuilder &then, Location where) {
                Value read =
                    tensor::ExtractOp::create(then, where, data, source);
                scf::YieldOp::create(then, where, read);
              },
              [&](OpBuilder &otherwise, Location where) {
                scf::YieldOp::create(otherwise, where, fill);
              });
          return guarded.getResult(0);
        });
  }
};

} // namespace

void populateSlicePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns) {
  patterns.add<SliceLowering, SplitLowering, ConcatLowering, PadLowering>(
      converter, patterns.getContext());
}

} // namespace sardonyx
