//===- Tensors.cpp - Reshaping, transposing and small integer tensors -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/Common.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace sardonyx {

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

Value castTo(OpBuilder &b, Location loc, Value tensor, Type type) {
  if (tensor.getType() == type)
    return tensor;
  // What a model declares is no more than a claim until the run.
  auto from = dyn_cast<RankedTensorType>(tensor.getType());
  auto to = dyn_cast<RankedTensorType>(type);
  if (from && to && from.getRank() == to.getRank())
    for (int64_t dim = 0; dim < from.getRank(); ++dim)
      if (from.isDynamicDim(dim) && !to.isDynamicDim(dim))
        checkSameSize(
            b, loc, getSize(b, loc, tensor, dim), asSize(b, to.getDimSize(dim)),
            "dimension " + Twine(dim) +
                " of a result does not have the size declared for it");
  return tensor::CastOp::create(b, loc, type, tensor);
}

/// `tensor` as of `sizes`, its own: one that was traced back to a constant may
/// be unknown to its type.
static Value castToSizes(OpBuilder &b, Location loc, Value tensor,
                         ArrayRef<OpFoldResult> sizes) {
  return castTo(b, loc, tensor,
                getTensorType(sizes, typeOf(tensor).getElementType()));
}

Value stripCast(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>()) {
    auto source = dyn_cast<RankedTensorType>(cast.getSource().getType());
    if (!source ||
        !tensor::preservesStaticInformation(cast.getResult().getType(), source))
      break;
    tensor = cast.getSource();
  }
  return tensor;
}

//===----------------------------------------------------------------------===//
// Reshaping
//===----------------------------------------------------------------------===//

/// A constant under another static shape, or null.
static Value reshapeConstant(OpBuilder &b, Location loc, Value tensor,
                             RankedTensorType type) {
  auto constant = stripCast(tensor).getDefiningOp<arith::ConstantOp>();
  if (!constant || !type.hasStaticShape())
    return {};
  ElementsAttr value;
  auto old = cast<ElementsAttr>(constant.getValue());
  if (old.getNumElements() != type.getNumElements())
    return {};
  if (auto dense = dyn_cast<DenseElementsAttr>(old))
    value = dense.reshape(type);
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(old))
    value = DenseResourceElementsAttr::get(type, resource.getRawHandle());
  else
    return {};
  auto result = arith::ConstantOp::create(b, loc, type, cast<TypedAttr>(value));
  result->setDiscardableAttrs(llvm::to_vector(constant->getDiscardableAttrs()));
  return result;
}

/// One group of indices for each of `count` dimensions, where dimensions
/// [begin, end) are one group; an empty range gives no group of its own.
static SmallVector<ReassociationIndices>
groupRange(int64_t count, int64_t begin, int64_t end) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < count; ++i) {
    if (i > begin && i < end)
      groups.back().push_back(i);
    else
      groups.push_back({i});
  }
  return groups;
}

/// Merges the dimensions [begin, end), all of size 1, into a neighbour.
static SmallVector<ReassociationIndices>
absorbRange(int64_t count, int64_t begin, int64_t end) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (int64_t i = 0; i < count; ++i) {
    if (i < begin || i >= end) {
      groups.push_back(leading);
      leading.clear();
      groups.back().push_back(i);
    } else if (!groups.empty()) {
      groups.back().push_back(i);
    } else {
      leading.push_back(i);
    }
  }
  return groups;
}

/// The last resort: any shape to any other.
static Value reshapeByShape(OpBuilder &b, Location loc, Value tensor,
                            ArrayRef<OpFoldResult> sizes) {
  RankedTensorType type = getTensorType(sizes, typeOf(tensor).getElementType());
  SmallVector<Value> elements;
  for (Size size : sizes)
    elements.push_back(asIndex(b, loc, size));
  auto shapeType = RankedTensorType::get({type.getRank()}, b.getIndexType());
  Value shape = tensor::FromElementsOp::create(b, loc, shapeType, elements);
  return tensor::ReshapeOp::create(b, loc, type, tensor, shape);
}

/// Forgets or states the size of dimension `dim`.
static Value castDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
                     int64_t size) {
  RankedTensorType type = typeOf(tensor);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return castTo(b, loc, tensor,
                RankedTensorType::get(shape, type.getElementType()));
}

/// The part of a reshape that differs: dimensions [begin, srcEnd) of the source
/// against [begin, dstEnd) of the target.
static Value reshapeMiddle(OpBuilder &b, Location loc, Value tensor,
                           ArrayRef<OpFoldResult> sizes, int64_t begin,
                           int64_t srcEnd, int64_t dstEnd) {
  int64_t rank = typeOf(tensor).getRank();
  int64_t targetRank = sizes.size();
  Type element = typeOf(tensor).getElementType();
  if (srcEnd == begin) {
    for (Size size : sizes.slice(begin, dstEnd - begin))
      if (getStaticSize(size) != 1)
        return reshapeByShape(b, loc, tensor, sizes);
    RankedTensorType type = getTensorType(sizes, element);
    return tensor::ExpandShapeOp::create(
        b, loc, type, tensor, absorbRange(targetRank, begin, dstEnd), sizes);
  }
  if (dstEnd == begin) {
    for (int64_t i = begin; i < srcEnd; ++i)
      if (typeOf(tensor).isDynamicDim(i))
        tensor = castDim(b, loc, tensor, i, 1);
    return tensor::CollapseShapeOp::create(b, loc, tensor,
                                           absorbRange(rank, begin, srcEnd));
  }
  if (srcEnd - begin > 1)
    tensor = tensor::CollapseShapeOp::create(b, loc, tensor,
                                             groupRange(rank, begin, srcEnd));
  Size product = productOfSizes(b, loc, sizes.slice(begin, dstEnd - begin));
  tensor = castDim(b, loc, tensor, begin,
                   getStaticSize(product).value_or(ShapedType::kDynamic));
  if (dstEnd - begin == 1)
    return tensor;
  // Dimensions outside the range may be more static in the source than `sizes`.
  Sizes output(sizes);
  RankedTensorType now = typeOf(tensor);
  for (int64_t i = 0; i < targetRank; ++i) {
    if (i >= begin && i < dstEnd)
      continue;
    int64_t source = i < begin ? i : i - dstEnd + begin + 1;
    if (!now.isDynamicDim(source))
      output[i] = asSize(b, now.getDimSize(source));
    else if (getStaticSize(output[i]))
      tensor = castDim(b, loc, tensor, source, *getStaticSize(output[i]));
  }
  return tensor::ExpandShapeOp::create(
      b, loc, getTensorType(output, element), tensor,
      groupRange(targetRank, begin, dstEnd), output);
}

/// The check that dimensions of sizes `from` can be seen as some of sizes `to`.
/// The product of sizes that somebody computed may wrap around: it proves
/// nothing unless the shape is possible.
static void checkElementCount(OpBuilder &b, Location loc,
                              ArrayRef<OpFoldResult> from,
                              ArrayRef<OpFoldResult> to, Type elementType) {
  Size have = productOfSizes(b, loc, from), want = productOfSizes(b, loc, to);
  if (isSameSize(have, want))
    return;
  checkSizes(b, loc, to, elementType);
  checkSameSize(b, loc, have, want,
                "the new shape does not hold as many elements");
}

/// How `from` and `to` split into parts that have the same number of elements,
/// the shortest first: for each part how many of both are in it. Empty where
/// there is no proof that all have the same number of elements.
static SmallVector<std::pair<int64_t, int64_t>>
splitReshape(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> from,
             ArrayRef<OpFoldResult> to) {
  SmallVector<std::pair<int64_t, int64_t>> parts;
  auto isPart = [&](int64_t p, int64_t q) {
    return p <= static_cast<int64_t>(from.size()) &&
           q <= static_cast<int64_t>(to.size()) &&
           isSameSize(productOfSizes(b, loc, from.take_front(p)),
                      productOfSizes(b, loc, to.take_front(q)));
  };
  auto add = [&](int64_t p, int64_t q) {
    parts.push_back({p, q});
    from = from.drop_front(p);
    to = to.drop_front(q);
  };
  while (!from.empty() && !to.empty()) {
    const int64_t most = std::max(from.size(), to.size());
    int64_t count = 1;
    while (count <= most && !isPart(count, 1) && !isPart(1, count))
      ++count;
    if (count > most)
      break;
    if (isPart(count, 1))
      add(count, 1);
    else
      add(1, count);
  }
  if (!from.empty() || !to.empty()) {
    if (!isPart(from.size(), to.size()))
      return {};
    add(from.size(), to.size());
  }
  return parts;
}

Value reshape(OpBuilder &b, Location loc, Value tensor,
              ArrayRef<OpFoldResult> sizes) {
  tensor = stripCast(tensor);
  RankedTensorType source = typeOf(tensor);
  RankedTensorType target = getTensorType(sizes, source.getElementType());
  Sizes normal;
  for (auto [size, known] : llvm::zip(sizes, target.getShape()))
    normal.push_back(ShapedType::isDynamic(known) ? size : asSize(b, known));
  if (source == target && target.hasStaticShape())
    return tensor;
  if (target.hasStaticShape() && target.getNumElements() == 0)
    return createEmpty(b, loc, normal, target.getElementType());
  if (Value constant = reshapeConstant(b, loc, tensor, target))
    return constant;
  if (source.hasStaticShape() && target.hasStaticShape())
    if (auto groups = getReassociationIndicesForReshape(source, target)) {
      if (source.getRank() > target.getRank())
        return tensor::CollapseShapeOp::create(b, loc, target, tensor, *groups);
      return tensor::ExpandShapeOp::create(b, loc, target, tensor, *groups);
    }
  Sizes from = getSizes(b, loc, tensor);
  tensor = castToSizes(b, loc, tensor, from);
  source = typeOf(tensor);
  // Where there are no elements, sizes that both have in common say nothing
  // about the others.
  if (llvm::is_contained(source.getShape(), 0) ||
      llvm::is_contained(target.getShape(), 0)) {
    checkElementCount(b, loc, from, normal, source.getElementType());
    return createEmpty(b, loc, normal, target.getElementType());
  }
  int64_t begin = 0, srcEnd = from.size(), dstEnd = normal.size();
  auto leaveOut = [&](function_ref<bool(Size, Size)> isCommon) {
    while (begin < srcEnd && begin < dstEnd &&
           isCommon(from[begin], normal[begin]))
      ++begin;
    while (srcEnd > begin && dstEnd > begin &&
           isCommon(from[srcEnd - 1], normal[dstEnd - 1])) {
      --srcEnd;
      --dstEnd;
    }
  };
  leaveOut(isSameSize);
  if (srcEnd == begin && dstEnd == begin)
    return castTo(b, loc, tensor, target);
  auto parts = splitReshape(b, loc, ArrayRef(from).slice(begin, srcEnd - begin),
                            ArrayRef(normal).slice(begin, dstEnd - begin));
  if (parts.empty()) {
    // A common size that only the run knows may be 0, and again nothing is said
    // about the others.
    begin = 0, srcEnd = from.size(), dstEnd = normal.size();
    leaveOut(
        [](Size x, Size y) { return getStaticSize(x) && isSameSize(x, y); });
    checkElementCount(b, loc, ArrayRef(from).slice(begin, srcEnd - begin),
                      ArrayRef(normal).slice(begin, dstEnd - begin),
                      source.getElementType());
    return reshapeMiddle(b, loc, tensor, normal, begin, srcEnd, dstEnd);
  }
  // The last part first: sizes in front of it are still those of `from`.
  for (auto [p, q] : llvm::reverse(parts)) {
    Sizes next(ArrayRef(from).take_front(srcEnd - p));
    next.append(normal.begin() + (dstEnd - q), normal.end());
    tensor =
        reshapeMiddle(b, loc, tensor, next, srcEnd - p, srcEnd, srcEnd - p + q);
    srcEnd -= p;
    dstEnd -= q;
  }
  return castTo(b, loc, tensor, target);
}

Value collapseRange(OpBuilder &b, Location loc, Value tensor, int64_t begin,
                    int64_t end) {
  tensor = stripCast(tensor);
  if (end == begin)
    return unsqueeze(b, loc, tensor, {begin});
  if (end - begin == 1)
    return tensor;
  SmallVector<int64_t> shape(typeOf(tensor).getShape());
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i)
    product = ShapedType::isDynamic(product) || ShapedType::isDynamic(shape[i])
                  ? ShapedType::kDynamic
                  : product * shape[i];
  int64_t rank = shape.size();
  shape.erase(shape.begin() + begin, shape.begin() + end);
  shape.insert(shape.begin() + begin, product);
  auto type = RankedTensorType::get(shape, typeOf(tensor).getElementType());
  if (Value constant = reshapeConstant(b, loc, tensor, type))
    return constant;
  return tensor::CollapseShapeOp::create(b, loc, type, tensor,
                                         groupRange(rank, begin, end));
}

/// Groups for dropping (or adding) the dimensions for which `isUnit` holds.
static SmallVector<ReassociationIndices>
groupUnits(int64_t rank, function_ref<bool(int64_t)> isUnit) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (int64_t i = 0; i < rank; ++i) {
    if (!isUnit(i)) {
      groups.push_back(leading);
      leading.clear();
      groups.back().push_back(i);
    } else if (groups.empty()) {
      leading.push_back(i);
    } else {
      groups.back().push_back(i);
    }
  }
  return groups;
}

Value unsqueeze(OpBuilder &b, Location loc, Value tensor,
                ArrayRef<int64_t> axes) {
  if (axes.empty())
    return tensor;
  tensor = stripCast(tensor);
  Sizes sizes = getSizes(b, loc, tensor);
  tensor = castToSizes(b, loc, tensor, sizes);
  for (int64_t axis : axes)
    sizes.insert(sizes.begin() + axis, asSize(b, 1));
  RankedTensorType type = getTensorType(sizes, typeOf(tensor).getElementType());
  if (Value constant = reshapeConstant(b, loc, tensor, type))
    return constant;
  auto groups = groupUnits(
      type.getRank(), [&](int64_t i) { return llvm::is_contained(axes, i); });
  return tensor::ExpandShapeOp::create(b, loc, type, tensor, groups, sizes);
}

Value squeeze(OpBuilder &b, Location loc, Value tensor,
              ArrayRef<int64_t> axes) {
  if (axes.empty())
    return tensor;
  tensor = stripCast(tensor);
  RankedTensorType type = typeOf(tensor);
  SmallVector<int64_t> kept, full(type.getShape());
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (llvm::is_contained(axes, i))
      full[i] = 1;
    else
      kept.push_back(full[i]);
  }
  auto target = RankedTensorType::get(kept, type.getElementType());
  if (Value constant = reshapeConstant(b, loc, tensor, target))
    return constant;
  tensor = castTo(b, loc, tensor,
                  RankedTensorType::get(full, type.getElementType()));
  auto groups = groupUnits(
      type.getRank(), [&](int64_t i) { return llvm::is_contained(axes, i); });
  return tensor::CollapseShapeOp::create(b, loc, target, tensor, groups);
}

Value transpose(OpBuilder &b, Location loc, Value tensor,
                ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, typeOf(tensor).getRank())))
    return tensor;
  Sizes sizes = getSizes(b, loc, tensor), permuted;
  // The named op wants both types to be equally static.
  tensor = castToSizes(b, loc, tensor, sizes);
  for (int64_t dim : permutation)
    permuted.push_back(sizes[dim]);
  Value empty = createEmpty(b, loc, permuted, typeOf(tensor).getElementType());
  return linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
      ->getResult(0);
}

/// Whether a box has no elements: it is there by its sizes, or begins where a
/// tensor of a known size ends, so that the run fails unless its size is 0.
static bool isEmptyPart(OpBuilder &b, Location loc, RankedTensorType of,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes) {
  if (isEmptyBox(sizes) || llvm::is_contained(of.getShape(), 0))
    return true;
  for (auto [offset, size, whole] :
       llvm::zip_equal(offsets, sizes, of.getShape())) {
    std::optional<int64_t> begin = getStaticSize(offset);
    if (!begin || ShapedType::isDynamic(whole) || *begin < whole)
      continue;
    checkSameSize(b, loc, size, asSize(b, 0),
                  "a part lies behind the end of its tensor");
    return true;
  }
  return false;
}

Value slice(OpBuilder &b, Location loc, Value tensor,
            ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
            ArrayRef<OpFoldResult> strides) {
  Sizes steps(strides);
  if (steps.empty())
    steps.assign(sizes.size(), asSize(b, 1));
  // Nothing may be cut out from past the end, which is where Slice and Split
  // put an empty box; what has no elements begins past its end.
  auto type = cast<RankedTensorType>(tensor.getType());
  if (isEmptyPart(b, loc, type, offsets, sizes))
    return createEmpty(b, loc, sizes, type.getElementType());
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, steps);
}

Value insertSlice(OpBuilder &b, Location loc, Value part, Value into,
                  ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes) {
  // There is no place past the end, not even for nothing.
  auto type = cast<RankedTensorType>(into.getType());
  if (isEmptyPart(b, loc, type, offsets, sizes))
    return into;
  Sizes strides(sizes.size(), asSize(b, 1));
  return tensor::InsertSliceOp::create(b, loc, part, into, offsets, sizes,
                                       strides);
}

//===----------------------------------------------------------------------===//
// Small integer tensors as scalars
//===----------------------------------------------------------------------===//

std::optional<SmallVector<Value>> getScalarElements(OpBuilder &b, Location loc,
                                                    Value tensor) {
  tensor = stripCast(tensor);
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || type.getRank() > 1 || !type.hasStaticShape() ||
      type.getNumElements() > kMaxScalarised)
    return std::nullopt;
  if (auto elements = tensor.getDefiningOp<tensor::FromElementsOp>())
    return llvm::to_vector(elements.getElements());
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>();
      empty && type.getNumElements() == 0)
    return SmallVector<Value>();
  if (isa<FloatType>(type.getElementType())) {
    std::optional<SmallVector<double>> floats = getConstantFloats(tensor);
    if (!floats)
      return std::nullopt;
    SmallVector<Value> values;
    for (double number : *floats)
      values.push_back(createConstant(b, loc, type.getElementType(), number));
    return values;
  }
  std::optional<SmallVector<int64_t>> ints = getConstantInts(tensor);
  if (!ints)
    return std::nullopt;
  SmallVector<Value> values;
  for (int64_t number : *ints)
    values.push_back(createIntConstant(b, loc, type.getElementType(), number));
  return values;
}

static Value toIndex(OpBuilder &b, Location loc, Value value) {
  value = simplifySize(value);
  if (value.getType().isIndex())
    return value;
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    if (cast.getIn().getType().isIndex())
      return cast.getIn();
  return b.createOrFold<arith::IndexCastOp>(loc, b.getIndexType(), value);
}

/// The elements of a list that is known, or was checked, to have `n`.
static SmallVector<Value> readIndices(OpBuilder &b, Location loc, Value tensor,
                                      int64_t n) {
  SmallVector<Value> result;
  if (auto elements = getScalarElements(b, loc, tensor)) {
    for (Value element : *elements)
      result.push_back(toIndex(b, loc, element));
    return result;
  }
  bool isScalar = typeOf(tensor).getRank() == 0;
  for (int64_t i = 0; i < n; ++i) {
    SmallVector<Value> position;
    if (!isScalar)
      position.push_back(createIndex(b, loc, i));
    Value element = tensor::ExtractOp::create(b, loc, tensor, position);
    result.push_back(toIndex(b, loc, element));
  }
  return result;
}

FailureOr<SmallVector<Value>> getIntListAsIndices(OpBuilder &b, Location loc,
                                                  Value tensor, int64_t n,
                                                  StringRef name) {
  if (failed(checkLength(b, loc, tensor, n, name)))
    return failure();
  return readIndices(b, loc, tensor, n);
}

FailureOr<Sizes> getIntListAsSizes(OpBuilder &b, Location loc, Value tensor,
                                   int64_t n, StringRef name,
                                   sdx::FailureKind kind) {
  if (failed(checkLength(b, loc, tensor, n, name, kind)))
    return failure();
  Sizes sizes;
  if (auto ints = getConstantInts(tensor)) {
    for (int64_t number : *ints)
      sizes.push_back(asSize(b, number));
    return sizes;
  }
  for (Value index : readIndices(b, loc, tensor, n))
    sizes.push_back(getAsOpFoldResult(index));
  return sizes;
}

Value getScalar(OpBuilder &b, Location loc, Value tensor) {
  if (auto elements = getScalarElements(b, loc, tensor);
      elements && elements->size() == 1)
    return elements->front();
  RankedTensorType type = typeOf(tensor);
  Size count = productOfSizes(b, loc, getSizes(b, loc, tensor));
  checkSameSize(b, loc, count, asSize(b, 1),
                "an input must have one element and has another number");
  if (getStaticSize(count).value_or(1) != 1)
    return arith::ConstantOp::create(b, loc,
                                     b.getZeroAttr(type.getElementType()));
  SmallVector<Value> position(type.getRank(), createIndex(b, loc, 0));
  return tensor::ExtractOp::create(b, loc, tensor, position);
}

} // namespace sardonyx
