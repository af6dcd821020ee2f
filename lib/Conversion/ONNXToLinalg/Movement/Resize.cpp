//===- Resize.cpp - Resize ------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which axes are resized, to which sizes and by which scales; Resampling.cpp
// has how.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Movement/Resampling.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

using namespace resize;

/// The elements of a small float tensor of rank 1; fails when there are not
/// `count`.
FailureOr<SmallVector<Number>> getNumbers(TensorBuilder &b, Value original,
                                          Value converted, int64_t count,
                                          StringRef name) {
  if (failed(checkLength(b, b.getLoc(), converted, count, name)))
    return failure();
  SmallVector<Number> result;
  std::optional<SmallVector<double>> known = getConstantFloats(original);
  for (int64_t i = 0; i < count; ++i) {
    if (known) {
      result.push_back({(*known)[i], Value()});
      continue;
    }
    Value element = b.extract(converted, b.index(i));
    result.push_back({std::nullopt, b.convert(element, b.getF64Type())});
  }
  return result;
}

/// floor(size * scale), the product being one of f32 as where types are
/// inferred, 10 * 0.7 is 7, unless only a run knows the size and the scale, or
/// what it divides by, is whole.
OpFoldResult scaleSize(TensorBuilder &b, OpFoldResult size,
                       const Number &scale) {
  Number number = toNumber(b, size);
  if (number.known && scale.known)
    return floorToSize(
        b,
        {static_cast<float>(*number.known) * static_cast<float>(*scale.known),
         Value()},
        0);
  if (std::optional<int64_t> whole = getWholeScale(scale))
    return b.times(size, *whole);
  if (std::optional<int64_t> divisor = getWholeShrink(scale))
    return b.floorDiv(size, b.size(*divisor));
  Type f32 = b.getF32Type();
  Value product =
      b.mul(b.convert(number.get(b), f32), b.convert(scale.get(b), f32));
  return floorToSize(b, {std::nullopt, b.convert(product, b.getF64Type())}, 0);
}

/// The check that where the first size is 0 the second is too; fails when it is
/// known not to be.
LogicalResult checkEmptiness(TensorBuilder &b, OpFoldResult first,
                             OpFoldResult second) {
  std::optional<int64_t> x = getStaticSize(first), y = getStaticSize(second);
  if ((x && *x > 0) || y == 0)
    return success();
  if (x && y)
    return failure();
  Value zero = b.index(int64_t(0));
  Value some = b.compare(arith::CmpIPredicate::sgt, b.index(first), zero);
  Value none = b.compare(arith::CmpIPredicate::eq, b.index(second), zero);
  createCheck(b, b.getLoc(), arith::OrIOp::create(b, some, none),
              "an empty dimension stays empty, and no other becomes so: sizes "
              "{0} and {1}",
              {first, second});
  return success();
}

/// A scale makes a size of a size: it is positive, and not so large that their
/// product leaves the integers.
LogicalResult checkScale(TensorBuilder &b, const Number &scale) {
  constexpr double most = double(int64_t(1) << 40), least = 1 / most;
  if (scale.known)
    return success(*scale.known >= least && *scale.known <= most);
  Type f64 = b.getF64Type();
  Value positive = b.greater(scale.value, b.scalar(f64, least));
  Value bounded = arith::CmpFOp::create(b, arith::CmpFPredicate::OLE,
                                        scale.value, b.scalar(f64, most));
  createCheck(b, b.getLoc(), arith::AndIOp::create(b, positive, bounded),
              "an element of input 'scales' is not positive, or impossible");
  return success();
}

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>> getAxes(onnx::ResizeOp op, int64_t rank) {
  std::optional<ArrayRef<int64_t>> axes = op.getAxes();
  if (!axes || axes->empty())
    return llvm::to_vector(llvm::seq<int64_t>(rank));
  // In their own order, which is that of the scales.
  SmallVector<int64_t> result;
  for (int64_t axis : *axes) {
    FailureOr<int64_t> dim = normalizeAxis(axis, rank);
    if (failed(dim) || llvm::is_contained(result, *dim))
      return failure();
    result.push_back(*dim);
  }
  return result;
}

/// Gives the axes these sizes, and the scales that `policy` makes of them.
void setSizes(TensorBuilder &b, MutableArrayRef<Axis> axes,
              ArrayRef<OpFoldResult> wanted, StringRef policy) {
  for (auto [axis, size] : llvm::zip_equal(axes, wanted)) {
    axis.outputSize = b.atLeast(size, 0);
    axis.scale =
        divide(b, toNumber(b, axis.outputSize), toNumber(b, axis.inputSize));
  }
  if (policy != "not_larger" && policy != "not_smaller")
    return;
  Number scale = axes.front().scale;
  for (const Axis &axis : axes.drop_front())
    scale = extremum(b, scale, axis.scale, policy == "not_smaller");
  for (Axis &axis : axes) {
    axis.scale = scale;
    axis.outputSize =
        floorToSize(b, multiply(b, scale, toNumber(b, axis.inputSize)), 0.5);
  }
}

/// The resized axes with their sizes and scales. Those that keep everything
/// as it is are left out.
FailureOr<SmallVector<Axis>> getResizedAxes(Lowering<onnx::ResizeOp> &b,
                                            const Resampling &r) {
  Value data = b.in.getX();
  int64_t rank = rankedType(data).getRank();
  FailureOr<SmallVector<int64_t>> dims = getAxes(b.op, rank);
  if (failed(dims))
    return failure();
  int64_t count = dims->size();
  auto declared = getConvertedType(b.op.getY());
  // An inference that gave up half way leaves a shape without dimensions.
  if (declared && declared.getRank() != rank)
    return failure();
  auto hasElements = [&](Value value) {
    return value && !(rankedType(value).hasStaticShape() &&
                      rankedType(value).getNumElements() == 0);
  };
  bool bySizes = hasElements(b.in.getSizes());
  if (!bySizes && !hasElements(b.in.getScales()))
    return failure();
  if (r.crops() && !hasElements(b.in.getRoi()))
    return failure();

  SmallVector<Axis> axes;
  for (int64_t dim : *dims)
    axes.push_back({dim, b.dim(data, dim), OpFoldResult(), {}, {}, {}});
  if (bySizes) {
    FailureOr<Sizes> wanted =
        getIntListAsSizes(b, b.getLoc(), b.in.getSizes(), count, "sizes");
    if (failed(wanted))
      return failure();
    for (Size size : *wanted)
      if (failed(checkRange(b, b.getLoc(), size, 0, kMaxSize,
                            "an element of input 'sizes' is impossible")))
        return failure();
    for (auto [axis, size] : llvm::zip_equal(axes, *wanted))
      if (failed(checkEmptiness(b, size, axis.inputSize)))
        return failure();
    setSizes(b, axes, *wanted, b.op.getKeepAspectRatioPolicy());
  } else {
    FailureOr<SmallVector<Number>> scales =
        getNumbers(b, b.op.getScales(), b.in.getScales(), count, "scales");
    if (failed(scales))
      return failure();
    for (auto [axis, scale] : llvm::zip_equal(axes, *scales)) {
      if (failed(checkScale(b, scale)))
        return failure();
      axis.scale = scale;
      axis.outputSize = scaleSize(b, axis.inputSize, scale);
    }
  }
  if (r.crops()) {
    FailureOr<SmallVector<Number>> roi =
        getNumbers(b, b.op.getRoi(), b.in.getRoi(), 2 * count, "roi");
    if (failed(roi))
      return failure();
    for (auto [i, axis] : llvm::enumerate(axes)) {
      axis.roiBegin = (*roi)[i];
      axis.roiEnd = (*roi)[count + i];
    }
  }
  Sizes sizes = b.dims(data);
  for (const Axis &axis : axes)
    sizes[axis.dim] = axis.outputSize;
  checkSizes(b, b.getLoc(), sizes, b.getF64Type());
  for (Axis &axis : axes) {
    if (!declared || declared.isDynamicDim(axis.dim))
      continue;
    // Where both are known they differ by rounding at most.
    OpFoldResult stated = b.size(declared.getDimSize(axis.dim));
    if (!getStaticSize(axis.outputSize))
      checkSameSize(b, b.getLoc(), axis.outputSize, stated,
                    "dimension " + Twine(axis.dim) +
                        " of a result does not have the size declared for it");
    axis.outputSize = stated;
  }
  llvm::erase_if(axes, [&](const Axis &axis) {
    bool same = isSameSize(axis.inputSize, axis.outputSize);
    bool unscaled = bySizes ? b.op.getKeepAspectRatioPolicy() == "stretch"
                            : axis.scale.known == 1.0;
    bool whole =
        !r.crops() || (axis.roiBegin.known == 0.0 && axis.roiEnd.known == 1.0);
    return same && whole && (unscaled || axis.scale.known == 1.0);
  });
  return axes;
}

LogicalResult lowerResize(Lowering<onnx::ResizeOp> &b) {
  Resampling r{b.op.getMode(),
               b.op.getCoordinateTransformationMode(),
               b.op.getNearestMode(),
               b.op.getCubicCoeffA().convertToFloat(),
               b.op.getExtrapolationValue().convertToFloat(),
               b.op.getAntialias() != 0,
               b.op.getExcludeOutside() != 0};
  if (isStringType(getOnnxElementType(b.op.getX())) && r.mode != "nearest")
    return b.refuseAlways("there is nothing between two strings");
  FailureOr<SmallVector<Axis>> axes = getResizedAxes(b, r);
  if (failed(axes))
    return b.refuse(
        "axes do not fit, or neither scales nor sizes (nor roi) given");
  Value data = b.in.getX();
  if (axes->empty())
    return b.replace(data);
  for (const Axis &axis : *axes)
    if (failed(checkEmptiness(b, axis.inputSize, axis.outputSize)))
      return b.refuse("nothing can be made of an empty dimension");
  if (r.mode == "nearest")
    return b.replace(createNearest(b, r, data, *axes));

  Type element = getOnnxElementType(b.op.getX());
  Type stored = elementTypeOf(data);
  Type compute = stored.isF64() ? stored : Type(b.getF32Type());
  if (isBoolType(element))
    return b.refuseAlways("booleans are not interpolated");
  Value value = b.convertElements(data, compute, isUnsignedType(element));
  for (const Axis &axis : *axes)
    value = createInterpolation(b, r, value, axis);
  if (stored != compute)
    value = createMapped(
        b, b.getLoc(), {{value, compute}}, {b.identityMap(b.rank(value))},
        b.dims(value), element,
        [&](OpBuilder &s, Location loc, ValueRange args) {
          return isa<IntegerType>(element)
                     ? requantize(s, loc, args[0], Value(), element)
                     : castScalar(s, loc, args[0], compute, element);
        });
  return b.replace(value);
}

} // namespace

void populateResizePatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::ResizeOp, lowerResize>(patterns, converter);
}

} // namespace sardonyx
