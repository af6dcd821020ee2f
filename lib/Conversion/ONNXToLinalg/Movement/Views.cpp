//===- Views.cpp - Reshape, Transpose, Expand and their kin ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that only rename, reorder or repeat what is there.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

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

LogicalResult lowerReshape(Lowering<onnx::ReshapeOp> &b) {
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("result of unknown rank");
  Location loc = b.getLoc();
  Sizes sizes;
  if (isStatic(declared) && getConstantInts(b.in.getShape())) {
    sizes = getDeclaredSizes(b, declared);
  } else {
    FailureOr<Sizes> asked =
        getIntListAsSizes(b, loc, b.in.getShape(), declared.getRank(), "shape",
                          sdx::FailureKind::OtherRank);
    if (succeeded(asked))
      asked = getReshapeSizes(b, loc, b.in.getData(), *asked,
                              b.op.getAllowzero() != 0);
    if (failed(asked))
      return b.refuse("input 'shape' does not fit");
    sizes = refineSizes(b, *asked, declared);
  }
  auto known = getTensorType(sizes, declared.getElementType());
  auto given = cast<RankedTensorType>(b.in.getData().getType());
  if (known.hasStaticShape() && given.hasStaticShape() &&
      known.getNumElements() != given.getNumElements())
    return b.refuse("the new shape does not hold as many elements");
  return b.replace(b.reshape(b.in.getData(), sizes));
}

LogicalResult lowerFlatten(Lowering<onnx::FlattenOp> &b) {
  Sizes sizes = b.dims(b.in.getInput());
  int64_t rank = sizes.size(), axis = b.op.getAxis();
  if (axis < 0)
    axis += rank;
  if (axis < 0 || axis > rank)
    return b.refuse("axis out of range");
  ArrayRef<Size> all(sizes);
  Sizes flat = {b.product(all.take_front(axis)),
                b.product(all.drop_front(axis))};
  return b.replace(b.reshape(b.in.getInput(), flat));
}

/// Squeeze and Unsqueeze whose axes only the run knows.
template <typename OpT> LogicalResult lowerByAxes(Lowering<OpT> &b) {
  constexpr bool drops = std::is_same_v<OpT, onnx::SqueezeOp>;
  FailureOr<Value> result =
      reshapeByAxes(b, b.in.getData(), b.in.getAxes(), drops, b.declared());
  if (failed(result))
    return b.refuse("its axes do not fit, or their number is not known");
  return b.replace(*result);
}

LogicalResult lowerSqueeze(Lowering<onnx::SqueezeOp> &b) {
  Value data = b.in.getData();
  auto type = cast<RankedTensorType>(data.getType());
  SmallVector<int64_t> axes;
  if (!b.op.getAxes()) {
    if (!type.hasStaticShape())
      return b.refuse("no axes, and sizes that are not known");
    for (auto [axis, size] : llvm::enumerate(type.getShape()))
      if (size == 1)
        axes.push_back(axis);
  } else if (auto known = getConstantInts(b.op.getAxes())) {
    auto normal = normalizeAxes(*known, type.getRank());
    if (failed(normal))
      return b.refuse("axis out of range");
    axes = *normal;
    llvm::sort(axes);
  } else {
    return lowerByAxes(b);
  }
  for (int64_t axis : axes)
    if (!type.isDynamicDim(axis) && type.getDimSize(axis) != 1)
      return b.refuse("size to drop is not 1");
  return b.replace(squeeze(b, b.getLoc(), data, axes));
}

LogicalResult lowerUnsqueeze(Lowering<onnx::UnsqueezeOp> &b) {
  Value data = b.in.getData();
  auto known = getConstantInts(b.op.getAxes());
  if (!known)
    return lowerByAxes(b);
  int64_t rank = b.rank(data);
  auto axes = normalizeAxes(*known, rank + known->size());
  if (failed(axes))
    return b.refuse("axis out of range");
  llvm::sort(*axes);
  return b.replace(unsqueeze(b, b.getLoc(), data, *axes));
}

//===----------------------------------------------------------------------===//
// Transpose, DepthToSpace, SpaceToDepth
//===----------------------------------------------------------------------===//

LogicalResult lowerTranspose(Lowering<onnx::TransposeOp> &b) {
  int64_t rank = b.rank(b.in.getData());
  SmallVector<int64_t> permutation;
  if (b.op.getPerm())
    permutation.assign(b.op.getPerm()->begin(), b.op.getPerm()->end());
  else
    permutation = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  SmallVector<int64_t> sorted = permutation;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return b.refuse("perm is no permutation");
  return b.replace(b.transpose(b.in.getData(), permutation));
}

/// The square of a larger block is no size.
constexpr int64_t kMaxBlock = 1 << 20;

/// A size as so many parts of `part`; null where it is known to be no multiple.
Size inParts(TensorBuilder &b, Size size, Size part) {
  Size count = b.floorDiv(size, part);
  if (!b.sameSize(b.times(count, part), size,
                  "the input's size is no multiple of the block's"))
    return {};
  return count;
}

/// Both go through [N, b, b, C, H, W] in one order or another (see the
/// operators' specification).
LogicalResult lowerDepthToSpace(Lowering<onnx::DepthToSpaceOp> &b) {
  Sizes in = b.dims(b.in.getInput());
  int64_t block = b.op.getBlocksize();
  if (in.size() != 4 || block < 1 || block > kMaxBlock)
    return b.refuse("needs rank 4, a positive block");
  Size side = b.size(block), depth = inParts(b, in[1], b.size(block * block));
  if (!depth)
    return b.refuse("the depth is no multiple of the block's");
  bool crd = b.op.getMode() == "CRD";
  Sizes split = crd ? Sizes{in[0], depth, side, side, in[2], in[3]}
                    : Sizes{in[0], side, side, depth, in[2], in[3]};
  SmallVector<int64_t> order = crd ? SmallVector<int64_t>{0, 1, 4, 2, 5, 3}
                                   : SmallVector<int64_t>{0, 3, 4, 1, 5, 2};
  Value v = b.transpose(b.reshape(b.in.getInput(), split), order);
  Sizes out = {in[0], depth, b.times(in[2], side), b.times(in[3], side)};
  return b.replace(b.reshape(v, out));
}

LogicalResult lowerSpaceToDepth(Lowering<onnx::SpaceToDepthOp> &b) {
  Sizes in = b.dims(b.in.getInput());
  int64_t block = b.op.getBlocksize();
  if (in.size() != 4 || block < 1 || block > kMaxBlock)
    return b.refuse("needs rank 4, a positive block");
  auto mode = b.op->getAttrOfType<StringAttr>("mode");
  bool crd = mode && mode.getValue() == "CRD";
  Size side = b.size(block);
  Size h = inParts(b, in[2], side), w = inParts(b, in[3], side);
  if (!h || !w)
    return b.refuse("the picture does not consist of whole blocks");
  Value v = b.reshape(b.in.getInput(), {in[0], in[1], h, side, w, side});
  SmallVector<int64_t> order = crd ? SmallVector<int64_t>{0, 1, 3, 5, 2, 4}
                                   : SmallVector<int64_t>{0, 3, 5, 1, 2, 4};
  v = b.transpose(v, order);
  Sizes out = {in[0], b.times(in[1], b.size(block * block)), h, w};
  return b.replace(b.reshape(v, out));
}

//===----------------------------------------------------------------------===//
// Expand, Tile, ConstantOfShape
//===----------------------------------------------------------------------===//

/// The numpy broadcast of the data's sizes with the asked ones.
FailureOr<Sizes> getSizesToExpand(Lowering<onnx::ExpandOp> &b,
                                  RankedTensorType declared) {
  auto shapeType = dyn_cast<RankedTensorType>(b.in.getShape().getType());
  if (!shapeType || shapeType.getRank() != 1)
    return failure();
  int64_t count = shapeType.getDimSize(0), rank = declared.getRank();
  Sizes from = b.dims(b.in.getInput());
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
      getIntListAsSizes(b, b.getLoc(), b.in.getShape(), count, "shape",
                        sdx::FailureKind::OtherRank);
  if (failed(asked))
    return failure();
  Sizes result(rank, b.size(1));
  llvm::copy(*asked, result.begin() + (rank - count));
  for (auto [i, have] : llvm::enumerate(from)) {
    Size &want = result[rank - from.size() + i];
    want = b.broadcastSize(have, want,
                           "dimension " + Twine(i) + " cannot be broadcast");
    if (!want)
      return failure();
  }
  return result;
}

LogicalResult lowerExpand(Lowering<onnx::ExpandOp> &b) {
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("result of unknown rank");
  Location loc = b.getLoc();
  Sizes sizes;
  if (isStatic(declared) && getConstantInts(b.in.getShape())) {
    sizes = getDeclaredSizes(b, declared);
  } else {
    FailureOr<Sizes> asked = getSizesToExpand(b, declared);
    if (failed(asked))
      return b.refuse("input 'shape' does not fit, or its length is not known");
    sizes = refineSizes(b, *asked, declared);
    checkSizes(b, loc, sizes, declared.getElementType());
  }
  return b.replace(b.broadcast(b.in.getInput(), sizes));
}

/// Repeats through an extra dimension in front of each repeated one:
/// [d0, d1] -> [r0, d0, r1, d1] -> [r0 * d0, r1 * d1].
LogicalResult lowerTile(Lowering<onnx::TileOp> &b) {
  Location loc = b.getLoc();
  Value input = b.in.getInput();
  Sizes in = b.dims(input);
  FailureOr<Sizes> repeats =
      getIntListAsSizes(b, loc, b.in.getRepeats(), in.size(), "repeats");
  if (failed(repeats))
    return b.refuse("input 'repeats' is not as long as the input's rank");
  RankedTensorType declared = b.declared();
  Sizes wide, out;
  SmallVector<AffineExpr> dims;
  for (auto [size, repeat] : llvm::zip_equal(in, *repeats)) {
    if (failed(checkRange(b, loc, repeat, 0, kMaxSize,
                          "an element of input 'repeats' is impossible")))
      return b.refuse("a repeat is impossible");
    if (getStaticSize(repeat) != 1)
      wide.push_back(repeat);
    dims.push_back(b.getAffineDimExpr(wide.size()));
    wide.push_back(size);
    out.push_back(b.times(size, repeat));
  }
  Type stored = elementTypeOf(input);
  checkSizes(b, loc, wide, stored);
  if (declared)
    out = refineSizes(b, out, declared);
  if (llvm::any_of(out, [](Size size) { return getStaticSize(size) == 0; }))
    return b.replace(b.empty(out, stored));
  AffineMap map = AffineMap::get(wide.size(), 0, dims, b.getContext());
  Type onnxType = getOnnxElementType(b.op.getInput());
  Value v = createMapped(
      b, loc, getTyped(b.op.getInput(), input), map, wide, onnxType,
      [](OpBuilder &, Location, ValueRange args) { return args[0]; });
  return b.replace(b.reshape(v, out));
}

Value getFill(OpBuilder &b, Location loc, ElementsAttr value, Type stored,
              Type onnxType) {
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
  APInt bits = (*(*values).begin()).zextOrTrunc(stored.getIntOrFloatBitWidth());
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(stored, bits));
}

LogicalResult lowerConstantOfShape(Lowering<onnx::ConstantOfShapeOp> &b) {
  RankedTensorType declared = b.declared();
  if (!declared)
    return b.refuse("result of unknown rank");
  Location loc = b.getLoc();
  FailureOr<Sizes> asked =
      getIntListAsSizes(b, loc, b.in.getInput(), declared.getRank(), "input",
                        sdx::FailureKind::OtherRank);
  if (failed(asked))
    return b.refuse("the shape's length does not fit");
  Sizes sizes = refineSizes(b, *asked, declared);
  checkSizes(b, loc, sizes, declared.getElementType());
  Type onnxType = getOnnxElementType(b.op->getResult(0));
  Value fill;
  if (auto value = b.op->getAttrOfType<ElementsAttr>("value")) {
    if (value.getNumElements() != 1)
      return b.refuse("value is not one element");
    fill = getFill(b, loc, value, declared.getElementType(), onnxType);
    if (!fill)
      return b.refuse("value of an unreadable kind");
  } else {
    fill = createIntConstant(b, loc, declared.getElementType(), 0);
  }
  return b.replace(b.filled(sizes, fill));
}

} // namespace

void populateViewPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::ReshapeOp, lowerReshape>(patterns, converter);
  addLowering<onnx::FlattenOp, lowerFlatten>(patterns, converter);
  addLowering<onnx::SqueezeOp, lowerSqueeze>(patterns, converter);
  addLowering<onnx::UnsqueezeOp, lowerUnsqueeze>(patterns, converter);
  addLowering<onnx::TransposeOp, lowerTranspose>(patterns, converter);
  addLowering<onnx::DepthToSpaceOp, lowerDepthToSpace>(patterns, converter);
  addLowering<onnx::SpaceToDepthOp, lowerSpaceToDepth>(patterns, converter);
  addLowering<onnx::ExpandOp, lowerExpand>(patterns, converter);
  addLowering<onnx::TileOp, lowerTile>(patterns, converter);
  addLowering<onnx::ConstantOfShapeOp, lowerConstantOfShape>(patterns,
                                                             converter);
}

} // namespace sardonyx
