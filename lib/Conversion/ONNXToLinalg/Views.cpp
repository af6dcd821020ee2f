//===- Views.cpp - Reshape, Transpose, Expand and their kin ---------------===//
//
// Operators that only rename, reorder or repeat what is there.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"
#include "TensorBuilder.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

RankedTensorType getDeclared(const TypeConverter &converter, Value result) {
  return dyn_cast_or_null<RankedTensorType>(
      converter.convertType(result.getType()));
}

bool isStatic(RankedTensorType type) { return type && type.hasStaticShape(); }

Sizes getDeclaredSizes(OpBuilder &b, RankedTensorType type) {
  Sizes sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(asSize(b, size));
  return sizes;
}

namespace {

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// The size that Reshape infers where `isAsked` (or, with none, always): the
/// product of `from` divided by that of `known`. Sizes that stand on both sides
/// cancel, so that [B, S, 768] over [B, S, 64] is the constant 12. Where such a
/// size may be 0, the count of elements does not tell whether the division left
/// anything: it is checked.
Size inferSize(OpBuilder &b, Location loc, Sizes from, Sizes known,
               Value isAsked = {}) {
  bool mayBeEmpty = false;
  for (auto *it = known.begin(); it != known.end();) {
    auto *same =
        llvm::find_if(from, [&](Size s) { return isSameSize(s, *it); });
    if (same == from.end()) {
      ++it;
      continue;
    }
    mayBeEmpty |= !getStaticSize(*same);
    from.erase(same);
    it = known.erase(it);
  }
  Size product = productOfSizes(b, loc, from);
  Size divisor = productOfSizes(b, loc, known);
  std::optional<int64_t> constant = getStaticSize(divisor);
  if (!constant) // A size of zero makes the quotient meaningless, not fatal.
    divisor = arith::MaxSIOp::create(b, loc, asIndex(b, loc, divisor),
                                     createIndex(b, loc, 1))
                  .getResult();
  else if (*constant <= 0)
    return asSize(b, 0);
  Size quotient = floorDivSizes(b, loc, product, divisor);
  Size whole = mulSizes(b, loc, quotient, divisor);
  if (!mayBeEmpty || isSameSize(whole, product))
    return quotient;
  Value isExact = compare(b, loc, arith::CmpIPredicate::eq,
                          asIndex(b, loc, whole), asIndex(b, loc, product));
  if (isAsked) {
    Value isGiven = arith::XOrIOp::create(
        b, loc, isAsked,
        arith::ConstantIntOp::create(b, loc, /*value=*/1, /*width=*/1));
    isExact = arith::OrIOp::create(b, loc, isExact, isGiven);
  }
  createCheck(b, loc, isExact,
              "the new shape does not hold as many elements: {0} and {1}",
              {product, whole});
  return quotient;
}

/// A size that a Reshape asks for and only the run knows.
struct AskedSize {
  int64_t dim;
  Value isInferred; ///< Whether it is -1.
};

/// The check that no more than one size is -1.
void checkOneInferred(OpBuilder &b, Location loc, int64_t inferred,
                      ArrayRef<AskedSize> open) {
  if (open.empty() || (open.size() == 1 && inferred < 0))
    return;
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  Value count = inferred >= 0 ? one : zero;
  for (const AskedSize &size : open) {
    Value add = arith::SelectOp::create(b, loc, size.isInferred, one, zero);
    count = arith::AddIOp::create(b, loc, count, add);
  }
  createCheck(b, loc, compare(b, loc, arith::CmpIPredicate::sle, count, one),
              "input 'shape' has {0} elements that are -1", {Size(count)});
}

/// The sizes that a Reshape asks for: 0 copies (unless `allowZero`), one -1 is
/// inferred; values known only at run time are treated alike.
FailureOr<Sizes> getReshapeSizes(OpBuilder &b, Location loc, Value data,
                                 Sizes asked, bool allowZero) {
  Sizes from = getSizes(b, loc, data), known;
  Value unit = createIndex(b, loc, 1), zero = createIndex(b, loc, 0);
  int64_t inferred = -1;
  SmallVector<AskedSize> open;
  for (auto [i, size] : llvm::enumerate(asked)) {
    std::optional<int64_t> constant = getStaticSize(size);
    if (constant == -1) {
      if (inferred >= 0)
        return failure();
      inferred = i;
      continue;
    }
    if (constant && *constant < 0)
      return failure();
    bool copies = !allowZero && i < from.size();
    if (constant == 0 && !allowZero) {
      if (!copies)
        return failure();
      size = from[i];
    } else if (!constant && !(copies && isSameSize(size, from[i]))) {
      Value value = cast<Value>(size);
      // A tensor's size is none of the numbers below 0.
      bool isSize = isa_and_nonnull<tensor::DimOp>(value.getDefiningOp());
      // 0 where there is nothing to copy is as wrong as anything below -1.
      if (!isSize &&
          failed(checkRange(
              b, loc, size, -1, std::numeric_limits<int64_t>::max(),
              "element " + Twine(i) + " of input 'shape' is no size")))
        return failure();
      if (copies) {
        Value isZero = compare(b, loc, arith::CmpIPredicate::eq, value, zero);
        value = arith::SelectOp::create(b, loc, isZero,
                                        asIndex(b, loc, from[i]), value);
      } else if (!allowZero) {
        createCheck(b, loc,
                    compare(b, loc, arith::CmpIPredicate::ne, value, zero),
                    "element " + Twine(i) +
                        " of input 'shape' is 0 and has no size to copy");
      }
      if (!isSize) {
        Value isNegative =
            compare(b, loc, arith::CmpIPredicate::slt, value, zero);
        open.push_back({static_cast<int64_t>(i), isNegative});
        value = arith::SelectOp::create(b, loc, isNegative, unit, value);
      }
      size = value;
    }
    asked[i] = size;
    known.push_back(size);
  }
  checkOneInferred(b, loc, inferred, open);
  if (inferred >= 0) {
    asked[inferred] = inferSize(b, loc, from, known);
    return asked;
  }
  for (const AskedSize &size : open) {
    Value rest =
        asIndex(b, loc, inferSize(b, loc, from, known, size.isInferred));
    asked[size.dim] = arith::SelectOp::create(b, loc, size.isInferred, rest,
                                              cast<Value>(asked[size.dim]))
                          .getResult();
  }
  return asked;
}

struct ReshapeLowering : OnnxPattern<onnx::ReshapeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ReshapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType declared =
        getDeclared(*getTypeConverter(), op->getResult(0));
    if (!declared)
      return refuse(op, "result of unknown rank");
    Location loc = op.getLoc();
    Sizes sizes;
    if (isStatic(declared) && getConstantInts(adaptor.getShape())) {
      sizes = getDeclaredSizes(rewriter, declared);
    } else {
      FailureOr<Sizes> asked = getIntListAsSizes(
          rewriter, loc, adaptor.getShape(), declared.getRank(), "shape",
          sdx::FailureKind::OtherRank);
      if (succeeded(asked))
        asked = getReshapeSizes(rewriter, loc, adaptor.getData(), *asked,
                                op.getAllowzero() != 0);
      if (failed(asked))
        return refuse(op, "input 'shape' does not fit");
      sizes = refineSizes(rewriter, *asked, declared);
    }
    auto known = getTensorType(sizes, declared.getElementType());
    auto given = cast<RankedTensorType>(adaptor.getData().getType());
    if (known.hasStaticShape() && given.hasStaticShape() &&
        known.getNumElements() != given.getNumElements())
      return refuse(op, "the new shape does not hold as many elements");
    return replace(rewriter, op,
                   reshape(rewriter, loc, adaptor.getData(), sizes));
  }
};

struct FlattenLowering : OnnxPattern<onnx::FlattenOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::FlattenOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Sizes sizes = getSizes(rewriter, loc, adaptor.getInput());
    int64_t rank = sizes.size(), axis = op.getAxis();
    if (axis < 0)
      axis += rank;
    if (axis < 0 || axis > rank)
      return refuse(op, "axis out of range");
    ArrayRef<Size> all(sizes);
    Sizes flat = {productOfSizes(rewriter, loc, all.take_front(axis)),
                  productOfSizes(rewriter, loc, all.drop_front(axis))};
    return replace(rewriter, op,
                   reshape(rewriter, loc, adaptor.getInput(), flat));
  }
};

/// Squeeze and Unsqueeze whose axes only the run knows.
template <typename OpT>
LogicalResult lowerByAxes(const TypeConverter &converter, OpT op, Value data,
                          Value axes, ConversionPatternRewriter &rewriter) {
  TensorBuilder b(op.getLoc(), rewriter);
  constexpr bool drops = std::is_same_v<OpT, onnx::SqueezeOp>;
  FailureOr<Value> result = reshapeByAxes(
      b, data, axes, drops, getDeclared(converter, op->getResult(0)));
  if (failed(result))
    return refuse(op, "its axes do not fit, or their number is not known");
  return replaceOp(rewriter, converter, op, *result);
}

struct SqueezeLowering : OnnxPattern<onnx::SqueezeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SqueezeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getData();
    auto type = cast<RankedTensorType>(data.getType());
    SmallVector<int64_t> axes;
    if (!op.getAxes()) {
      if (!type.hasStaticShape())
        return refuse(op, "no axes, and sizes that are not known");
      for (auto [axis, size] : llvm::enumerate(type.getShape()))
        if (size == 1)
          axes.push_back(axis);
    } else if (auto known = getConstantInts(op.getAxes())) {
      auto normal = normalizeAxes(*known, type.getRank());
      if (failed(normal))
        return refuse(op, "axis out of range");
      axes = *normal;
      llvm::sort(axes);
    } else {
      return lowerByAxes(*getTypeConverter(), op, data, adaptor.getAxes(),
                         rewriter);
    }
    for (int64_t axis : axes)
      if (!type.isDynamicDim(axis) && type.getDimSize(axis) != 1)
        return refuse(op, "size to drop is not 1");
    return replace(rewriter, op, squeeze(rewriter, op.getLoc(), data, axes));
  }
};

struct UnsqueezeLowering : OnnxPattern<onnx::UnsqueezeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::UnsqueezeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value data = adaptor.getData();
    auto known = getConstantInts(op.getAxes());
    if (!known)
      return lowerByAxes(*getTypeConverter(), op, data, adaptor.getAxes(),
                         rewriter);
    int64_t rank = cast<RankedTensorType>(data.getType()).getRank();
    auto axes = normalizeAxes(*known, rank + known->size());
    if (failed(axes))
      return refuse(op, "axis out of range");
    llvm::sort(*axes);
    return replace(rewriter, op, unsqueeze(rewriter, op.getLoc(), data, *axes));
  }
};

//===----------------------------------------------------------------------===//
// Transpose, DepthToSpace, SpaceToDepth
//===----------------------------------------------------------------------===//

struct TransposeLowering : OnnxPattern<onnx::TransposeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::TransposeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    int64_t rank =
        cast<RankedTensorType>(adaptor.getData().getType()).getRank();
    SmallVector<int64_t> permutation;
    if (op.getPerm())
      permutation.assign(op.getPerm()->begin(), op.getPerm()->end());
    else
      permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
    SmallVector<int64_t> sorted = permutation;
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
      return refuse(op, "perm is no permutation");
    return replace(
        rewriter, op,
        transpose(rewriter, op.getLoc(), adaptor.getData(), permutation));
  }
};

/// The square of a larger block is no size.
constexpr int64_t kMostBlock = 1 << 20;

/// Both go through [N, b, b, C, H, W] in one order or another (see the
/// operators' specification).
struct DepthToSpaceLowering : OnnxPattern<onnx::DepthToSpaceOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::DepthToSpaceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value input = adaptor.getInput();
    Sizes in = getSizes(rewriter, loc, input);
    int64_t block = op.getBlocksize();
    if (in.size() != 4 || block < 1 || block > kMostBlock)
      return refuse(op, "needs rank 4, a positive block");
    Size b = asSize(rewriter, block);
    Size depth =
        floorDivSizes(rewriter, loc, in[1], asSize(rewriter, block * block));
    bool crd = op.getMode() == "CRD";
    Sizes split = crd ? Sizes{in[0], depth, b, b, in[2], in[3]}
                      : Sizes{in[0], b, b, depth, in[2], in[3]};
    SmallVector<int64_t> order = crd ? SmallVector<int64_t>{0, 1, 4, 2, 5, 3}
                                     : SmallVector<int64_t>{0, 3, 4, 1, 5, 2};
    Value v = reshape(rewriter, loc, input, split);
    v = transpose(rewriter, loc, v, order);
    Sizes out = {in[0], depth, mulSizes(rewriter, loc, in[2], b),
                 mulSizes(rewriter, loc, in[3], b)};
    return replace(rewriter, op, reshape(rewriter, loc, v, out));
  }
};

struct SpaceToDepthLowering : OnnxPattern<onnx::SpaceToDepthOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::SpaceToDepthOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value input = adaptor.getInput();
    Sizes in = getSizes(rewriter, loc, input);
    int64_t block = op.getBlocksize();
    if (in.size() != 4 || block < 1 || block > kMostBlock)
      return refuse(op, "needs rank 4, a positive block");
    auto mode = op->getAttrOfType<StringAttr>("mode");
    bool crd = mode && mode.getValue() == "CRD";
    Size b = asSize(rewriter, block);
    Size h = floorDivSizes(rewriter, loc, in[2], b);
    Size w = floorDivSizes(rewriter, loc, in[3], b);
    Value v = reshape(rewriter, loc, input, {in[0], in[1], h, b, w, b});
    SmallVector<int64_t> order = crd ? SmallVector<int64_t>{0, 1, 3, 5, 2, 4}
                                     : SmallVector<int64_t>{0, 3, 5, 1, 2, 4};
    v = transpose(rewriter, loc, v, order);
    Sizes out = {
        in[0], mulSizes(rewriter, loc, in[1], asSize(rewriter, block * block)),
        h, w};
    return replace(rewriter, op, reshape(rewriter, loc, v, out));
  }
};

//===----------------------------------------------------------------------===//
// Expand, Tile, ConstantOfShape
//===----------------------------------------------------------------------===//

struct ExpandLowering : OnnxPattern<onnx::ExpandOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ExpandOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType declared =
        getDeclared(*getTypeConverter(), op->getResult(0));
    if (!declared)
      return refuse(op, "result of unknown rank");
    Location loc = op.getLoc();
    Sizes sizes;
    if (isStatic(declared) && getConstantInts(adaptor.getShape())) {
      sizes = getDeclaredSizes(rewriter, declared);
    } else {
      FailureOr<Sizes> asked =
          getSizesToExpand(op, adaptor, declared, rewriter);
      if (failed(asked))
        return refuse(op,
                      "input 'shape' does not fit, or its length is not known");
      sizes = refineSizes(rewriter, *asked, declared);
      checkSizes(rewriter, loc, sizes, declared.getElementType());
    }
    return replace(rewriter, op,
                   broadcastTo(rewriter, loc, adaptor.getInput(), sizes));
  }

private:
  /// The numpy broadcast of the data's sizes with the asked ones.
  static FailureOr<Sizes> getSizesToExpand(onnx::ExpandOp op, Adaptor adaptor,
                                           RankedTensorType declared,
                                           OpBuilder &b) {
    Location loc = op.getLoc();
    auto shapeType = dyn_cast<RankedTensorType>(adaptor.getShape().getType());
    if (!shapeType || shapeType.getRank() != 1)
      return failure();
    int64_t count = shapeType.getDimSize(0), rank = declared.getRank();
    Sizes from = getSizes(b, loc, adaptor.getInput());
    // The result's rank is the longer of the two: when it isn't the data's, the
    // shape has as many elements.
    if (ShapedType::isDynamic(count)) {
      if (rank == static_cast<int64_t>(from.size()))
        return failure();
      count = rank;
    }
    if (std::max<int64_t>(count, from.size()) != rank)
      return failure();
    FailureOr<Sizes> asked =
        getIntListAsSizes(b, loc, adaptor.getShape(), count, "shape",
                          sdx::FailureKind::OtherRank);
    if (failed(asked))
      return failure();
    Sizes result(rank, asSize(b, 1));
    llvm::copy(*asked, result.begin() + (rank - count));
    TensorBuilder builder(loc, b);
    for (auto [i, have] : llvm::enumerate(from)) {
      Size &want = result[rank - from.size() + i];
      want = builder.broadcastSize(
          have, want, "dimension " + Twine(i) + " cannot be broadcast");
      if (!want)
        return failure();
    }
    return result;
  }
};

/// Repeats through an extra dimension in front of each repeated one:
/// [d0, d1] -> [r0, d0, r1, d1] -> [r0 * d0, r1 * d1].
struct TileLowering : OnnxPattern<onnx::TileOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::TileOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value input = adaptor.getInput();
    Sizes in = getSizes(rewriter, loc, input);
    FailureOr<Sizes> repeats = getIntListAsSizes(
        rewriter, loc, adaptor.getRepeats(), in.size(), "repeats");
    if (failed(repeats))
      return refuse(op, "input 'repeats' is not as long as the input's rank");
    RankedTensorType declared =
        getDeclared(*getTypeConverter(), op->getResult(0));
    Sizes wide, out;
    SmallVector<AffineExpr> dims;
    for (auto [size, repeat] : llvm::zip_equal(in, *repeats)) {
      if (failed(checkRange(rewriter, loc, repeat, 0, kMostSize,
                            "an element of input 'repeats' is impossible")))
        return refuse(op, "a repeat is impossible");
      if (getStaticSize(repeat) != 1)
        wide.push_back(repeat);
      dims.push_back(rewriter.getAffineDimExpr(wide.size()));
      wide.push_back(size);
      out.push_back(mulSizes(rewriter, loc, size, repeat));
    }
    Type stored = cast<RankedTensorType>(input.getType()).getElementType();
    checkSizes(rewriter, loc, wide, stored);
    if (declared)
      out = refineSizes(rewriter, out, declared);
    if (llvm::any_of(out, [](Size size) { return getStaticSize(size) == 0; }))
      return replace(rewriter, op, createEmpty(rewriter, loc, out, stored));
    AffineMap map = AffineMap::get(wide.size(), 0, dims, rewriter.getContext());
    Type onnxType = getOnnxElementType(op.getInput());
    Value v = createMapped(
        rewriter, loc, getTyped(op.getInput(), input), map, wide, onnxType,
        [](OpBuilder &, Location, ValueRange args) { return args[0]; });
    return replace(rewriter, op, reshape(rewriter, loc, v, out));
  }
};

struct ConstantOfShapeLowering : OnnxPattern<onnx::ConstantOfShapeOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(onnx::ConstantOfShapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType declared =
        getDeclared(*getTypeConverter(), op->getResult(0));
    if (!declared)
      return refuse(op, "result of unknown rank");
    Location loc = op.getLoc();
    FailureOr<Sizes> asked =
        getIntListAsSizes(rewriter, loc, adaptor.getInput(), declared.getRank(),
                          "input", sdx::FailureKind::OtherRank);
    if (failed(asked))
      return refuse(op, "the shape's length does not fit");
    Sizes sizes = refineSizes(rewriter, *asked, declared);
    checkSizes(rewriter, loc, sizes, declared.getElementType());
    Type onnxType = getOnnxElementType(op->getResult(0));
    Value fill;
    if (auto value = op->getAttrOfType<ElementsAttr>("value")) {
      if (value.getNumElements() != 1)
        return refuse(op, "value is not one element");
      fill = getFill(rewriter, loc, value, declared.getElementType(), onnxType);
      if (!fill)
        return refuse(op, "value of an unreadable kind");
    } else {
      fill = createIntConstant(rewriter, loc, declared.getElementType(), 0);
    }
    return replace(rewriter, op, createFilled(rewriter, loc, sizes, fill));
  }

private:
  static Value getFill(OpBuilder &b, Location loc, ElementsAttr value,
                       Type stored, Type onnxType) {
    if (isa<FloatType>(onnxType)) {
      auto values = value.tryGetValues<APFloat>();
      if (!values)
        return {};
      return arith::ConstantOp::create(
          b, loc, FloatAttr::get(stored, *(*values).begin()));
    }
    auto values = value.tryGetValues<APInt>();
    if (!values || !isa<IntegerType>(stored))
      return {};
    APInt bits =
        (*(*values).begin()).zextOrTrunc(stored.getIntOrFloatBitWidth());
    return arith::ConstantOp::create(b, loc, IntegerAttr::get(stored, bits));
  }
};

} // namespace

void populateViewPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  patterns
      .add<ReshapeLowering, FlattenLowering, SqueezeLowering, UnsqueezeLowering,
           TransposeLowering, DepthToSpaceLowering, SpaceToDepthLowering,
           ExpandLowering, TileLowering, ConstantOfShapeLowering>(
          converter, patterns.getContext());
}

} // namespace sardonyx
