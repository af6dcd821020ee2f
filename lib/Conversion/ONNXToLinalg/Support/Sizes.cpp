//===- Sizes.cpp - Sizes of tensors and arithmetic on them ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/Common.h"
#include "sardonyx/DimNames.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Tracing sizes
//===----------------------------------------------------------------------===//

/// The first argument dimension of the function that carries the same
/// dim_params name; the session runs the code only where these are equal.
static std::pair<BlockArgument, int64_t> getNamedSize(BlockArgument arg,
                                                      int64_t dim) {
  Block *block = arg.getOwner();
  auto func = dyn_cast_or_null<FunctionOpInterface>(block->getParentOp());
  if (!func || func.isExternal())
    return {arg, dim};
  auto nameOf = [&](unsigned index, int64_t axis) -> StringAttr {
    if (index >= func.getNumArguments())
      return {};
    auto names = func.getArgAttrOfType<ArrayAttr>(index, "onnx.dim_params");
    if (!names || axis >= static_cast<int64_t>(names.size()))
      return {};
    auto name = dyn_cast<StringAttr>(names[axis]);
    return name && isNameOfSize(name.getValue()) ? name : StringAttr();
  };
  StringAttr name = nameOf(arg.getArgNumber(), dim);
  if (!name)
    return {arg, dim};
  for (BlockArgument other : block->getArguments()) {
    auto type = dyn_cast<RankedTensorType>(other.getType());
    if (!type)
      continue;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      if (nameOf(other.getArgNumber(), axis) == name)
        return {other, axis};
  }
  return {arg, dim};
}

//===----------------------------------------------------------------------===//
// Simplifying: sizes are never negative
//===----------------------------------------------------------------------===//

/// The value of an expression of constants (small ones, which can't overflow).
static std::optional<int64_t> evaluate(Value value, unsigned depth = 8) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return *known;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  auto operand = [&](unsigned i) {
    return evaluate(op->getOperand(i), depth - 1);
  };
  if (isa<arith::SelectOp>(op)) {
    std::optional<int64_t> condition = operand(0);
    return condition ? operand(*condition ? 1 : 2) : std::nullopt;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> x = operand(0), y = operand(1);
  constexpr int64_t limit = int64_t(1) << 31;
  if (!x || !y || std::abs(*x) > limit || std::abs(*y) > limit)
    return std::nullopt;
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    APInt left(64, *x, /*isSigned=*/true), right(64, *y, /*isSigned=*/true);
    return arith::applyCmpPredicate(compare.getPredicate(), left, right);
  }
  if (isa<arith::AddIOp>(op))
    return *x + *y;
  if (isa<arith::SubIOp>(op))
    return *x - *y;
  if (isa<arith::MinSIOp>(op))
    return std::min(*x, *y);
  if (isa<arith::MaxSIOp>(op))
    return std::max(*x, *y);
  return std::nullopt;
}

// The three below call each other on operands; the depth bounds their work.
constexpr unsigned kSimplifyDepth = 5;
static Value simplify(Value value, unsigned depth);

static bool isNonNegative(Value value, unsigned depth) {
  if (std::optional<int64_t> known = evaluate(value))
    return *known >= 0;
  if (depth == 0)
    return false;
  value = simplify(value, depth - 1);
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<tensor::DimOp>(op))
    return true;
  auto operandIs = [&](unsigned i) {
    return isNonNegative(op->getOperand(i), depth - 1);
  };
  if (isa<arith::IndexCastOp>(op))
    return operandIs(0);
  if (isa<arith::AddIOp, arith::MulIOp, arith::MinSIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp>(op))
    return operandIs(0) && operandIs(1);
  if (isa<arith::MaxSIOp>(op))
    return operandIs(0) || operandIs(1);
  if (isa<arith::SelectOp>(op))
    return operandIs(1) && operandIs(2);
  return false;
}

/// What a comparison of something non-negative with a constant must give.
static std::optional<bool> evaluateComparison(Value condition, unsigned depth) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  std::optional<int64_t> right = evaluate(compare.getRhs());
  if (!right || !isNonNegative(compare.getLhs(), depth))
    return std::nullopt;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return *right <= 0 ? std::optional<bool>(false) : std::nullopt;
  case arith::CmpIPredicate::sge:
    return *right <= 0 ? std::optional<bool>(true) : std::nullopt;
  case arith::CmpIPredicate::eq:
    return *right < 0 ? std::optional<bool>(false) : std::nullopt;
  case arith::CmpIPredicate::ne:
    return *right < 0 ? std::optional<bool>(true) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// Whether `product` is a product with `factor` in it: it is 0 if that is.
static bool hasFactor(Value product, Value factor, unsigned depth) {
  if (product == factor)
    return true;
  if (depth == 0)
    return false;
  product = simplify(product, depth - 1);
  auto mul = product.getDefiningOp<arith::MulIOp>();
  return mul && (hasFactor(mul.getLhs(), factor, depth - 1) ||
                 hasFactor(mul.getRhs(), factor, depth - 1));
}

/// One step, or null.
static Value simplifyOnce(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return {};
  --depth;
  if (auto outer = dyn_cast<arith::IndexCastOp>(op)) {
    auto inner =
        simplify(outer.getIn(), depth).getDefiningOp<arith::IndexCastOp>();
    // 64 bits hold every index.
    if (inner && inner.getIn().getType() == value.getType() &&
        outer.getIn().getType().isIndex() != value.getType().isIndex() &&
        (value.getType().isIndex() ? inner.getType().isInteger(64)
                                   : value.getType().isInteger(64)))
      return inner.getIn();
    return {};
  }
  if (isa<arith::SubIOp, arith::AddIOp>(op))
    return evaluate(op->getOperand(1)) == 0 ? op->getOperand(0) : Value();
  if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp, arith::FloorDivSIOp>(op))
    return evaluate(op->getOperand(1)) == 1 ? op->getOperand(0) : Value();
  if (auto max = dyn_cast<arith::MaxSIOp>(op)) {
    std::optional<int64_t> bound = evaluate(max.getRhs());
    return bound && *bound <= 0 && isNonNegative(max.getLhs(), depth)
               ? max.getLhs()
               : Value();
  }
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select)
    return {};
  Value yes = select.getTrueValue(), no = select.getFalseValue();
  if (yes == no)
    return yes;
  if (std::optional<bool> known =
          evaluateComparison(select.getCondition(), depth))
    return *known ? yes : no;
  if (std::optional<int64_t> known = evaluate(select.getCondition()))
    return *known ? yes : no;
  // Reshape's "0 copies the operand's size", where that is 0 as well.
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
      evaluate(compare.getRhs()) == 0 &&
      simplify(compare.getLhs(), depth) == simplify(no, depth) &&
      hasFactor(yes, simplify(no, depth), depth))
    return no;
  return {};
}

static Value simplify(Value value, unsigned depth) {
  for (unsigned steps = 0; steps < 16; ++steps) {
    Value simpler = simplifyOnce(value, depth);
    if (!simpler)
      break;
    value = simpler;
  }
  return value;
}

Value simplifySize(Value value) { return simplify(value, kSimplifyDepth); }

bool isMinimumWith(Size a, Size b) {
  if (getStaticSize(a) || getStaticSize(b))
    return false;
  auto min = simplifySize(cast<Value>(a)).getDefiningOp<arith::MinSIOp>();
  if (!min)
    return false;
  std::optional<int64_t> bound = evaluate(min.getRhs());
  return bound && *bound >= 1 && isSameSize(Size(min.getLhs()), b);
}

//===----------------------------------------------------------------------===//
// Tracing, continued
//===----------------------------------------------------------------------===//

static Size dimOf(OpBuilder &b, Location loc, Value tensor, int64_t dim) {
  if (auto arg = dyn_cast<BlockArgument>(tensor)) {
    auto [other, axis] = getNamedSize(arg, dim);
    auto type = cast<RankedTensorType>(other.getType());
    if (!type.isDynamicDim(axis))
      return asSize(b, type.getDimSize(axis));
    return tensor::DimOp::create(b, loc, other, axis).getResult();
  }
  return tensor::DimOp::create(b, loc, tensor, dim).getResult();
}

/// The initial value of a loop's result whose body only writes into it.
static Value getLoopInit(scf::ForOp loop, unsigned index) {
  Value inner =
      cast<scf::YieldOp>(loop.getBody()->getTerminator()).getOperand(index);
  while (auto result = dyn_cast<OpResult>(inner)) {
    if (auto nested = dyn_cast<scf::ForOp>(result.getOwner())) {
      inner = getLoopInit(nested, result.getResultNumber());
      if (!inner)
        return {};
      continue;
    }
    auto dps = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
    if (!dps)
      return {};
    inner = dps.getTiedOpOperand(result)->get();
  }
  return inner == loop.getRegionIterArg(index) ? loop.getInitArgs()[index]
                                               : Value();
}

static Size traceSize(OpBuilder &b, Location loc, Value tensor, int64_t dim) {
  while (true) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.isDynamicDim(dim))
      return asSize(b, type.getDimSize(dim));
    auto result = dyn_cast<OpResult>(tensor);
    if (!result)
      return dimOf(b, loc, tensor, dim);
    Operation *op = result.getOwner();
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      tensor = cast.getSource();
      if (!isa<RankedTensorType>(tensor.getType()))
        return dimOf(b, loc, result, dim);
      continue;
    }
    if (auto dps = dyn_cast<DestinationStyleOpInterface>(op)) {
      tensor = dps.getTiedOpOperand(result)->get();
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op))
      if (Value init = getLoopInit(loop, result.getResultNumber())) {
        tensor = init;
        continue;
      }
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return empty.getDynamicSize(dim);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return expand.getMixedOutputShape()[dim];
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ReassociationIndices group = collapse.getReassociationIndices()[dim];
      if (group.size() == 1) {
        tensor = collapse.getSrc();
        dim = group.front();
        continue;
      }
      Sizes sizes;
      for (int64_t inner : group)
        sizes.push_back(getSize(b, loc, collapse.getSrc(), inner));
      return productOfSizes(b, loc, sizes);
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      llvm::SmallBitVector dropped = slice.getDroppedDims();
      int64_t position = -1;
      for (auto [index, size] : llvm::enumerate(slice.getMixedSizes()))
        if (!dropped.test(index) && ++position == dim)
          return size;
    }
    if (auto generate = dyn_cast<tensor::GenerateOp>(op))
      return generate.getDynamicExtents()[type.getDynamicDimIndex(dim)];
    return dimOf(b, loc, tensor, dim);
  }
}

Size getSize(OpBuilder &b, Location loc, Value tensor, int64_t dim) {
  Size size = traceSize(b, loc, tensor, dim);
  if (auto value = dyn_cast<Value>(size))
    return getAsOpFoldResult(simplifySize(value));
  return size;
}

Sizes getSizes(OpBuilder &b, Location loc, Value tensor) {
  Sizes sizes;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.push_back(getSize(b, loc, tensor, dim));
  return sizes;
}

/// Structural equality of scalar expressions, to a depth that bounds the work.
static bool isSameValue(Value a, Value b, unsigned depth) {
  a = simplifySize(a);
  b = simplifySize(b);
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || depth == 0 || x->getName() != y->getName() ||
      x->getNumOperands() != y->getNumOperands() || x->getNumRegions() != 0 ||
      x->getNumResults() != 1 || !a.getType().isIntOrIndex() ||
      a.getType() != b.getType() || !isMemoryEffectFree(x))
    return false;
  if (x->getRawDictionaryAttrs() != y->getRawDictionaryAttrs() ||
      x->getPropertiesAsAttribute() != y->getPropertiesAsAttribute())
    return false;
  auto operandsMatch = [&](bool swapped) {
    for (unsigned i = 0, e = x->getNumOperands(); i < e; ++i) {
      Value p = x->getOperand(i), q = y->getOperand(swapped ? e - 1 - i : i);
      if (!isSameValue(p, q, depth - 1))
        return false;
    }
    return true;
  };
  if (operandsMatch(/*swapped=*/false))
    return true;
  return isa<arith::AddIOp, arith::MulIOp>(x) &&
         operandsMatch(/*swapped=*/true);
}

bool isSameSize(Size a, Size b) {
  std::optional<int64_t> x = getStaticSize(a), y = getStaticSize(b);
  if (x || y)
    return x == y;
  return isSameValue(cast<Value>(a), cast<Value>(b), /*depth=*/8);
}

std::optional<int64_t> getStaticSize(Size size) {
  return getConstantIntValue(size);
}

bool isEmptyBox(ArrayRef<OpFoldResult> sizes) {
  return llvm::any_of(sizes,
                      [](Size size) { return getStaticSize(size) == 0; });
}

Value asIndex(OpBuilder &b, Location loc, Size size) {
  if (std::optional<int64_t> known = getStaticSize(size))
    return createIndex(b, loc, *known);
  return cast<Value>(size);
}

Size asSize(OpBuilder &b, int64_t value) { return b.getIndexAttr(value); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Where a sum or product of constants leaves the integers. Nothing is that
/// large: a tensor of such a size is refused at the end of the conversion.
constexpr int64_t kTooLarge = int64_t(1) << 62;

Size addSizes(OpBuilder &b, Location loc, Size x, Size y) {
  std::optional<int64_t> p = getStaticSize(x), q = getStaticSize(y);
  if (p && q) {
    int64_t sum;
    return asSize(b, llvm::AddOverflow(*p, *q, sum)
                         ? (*p < 0 ? -kTooLarge : kTooLarge)
                         : sum);
  }
  if (q == 0)
    return x;
  if (p == 0)
    return y;
  return arith::AddIOp::create(b, loc, asIndex(b, loc, x), asIndex(b, loc, y))
      .getResult();
}

Size subSizes(OpBuilder &b, Location loc, Size x, Size y) {
  std::optional<int64_t> p = getStaticSize(x), q = getStaticSize(y);
  if (p && q) {
    int64_t difference;
    return asSize(b, llvm::SubOverflow(*p, *q, difference)
                         ? (*p < 0 ? -kTooLarge : kTooLarge)
                         : difference);
  }
  if (q == 0)
    return x;
  return arith::SubIOp::create(b, loc, asIndex(b, loc, x), asIndex(b, loc, y))
      .getResult();
}

Size mulSizes(OpBuilder &b, Location loc, Size x, Size y) {
  std::optional<int64_t> p = getStaticSize(x), q = getStaticSize(y);
  if (p && q) {
    int64_t product;
    return asSize(b, llvm::MulOverflow(*p, *q, product)
                         ? ((*p < 0) != (*q < 0) ? -kTooLarge : kTooLarge)
                         : product);
  }
  if (q == 1)
    return x;
  if (p == 1)
    return y;
  if (q == 0 || p == 0)
    return asSize(b, 0);
  return arith::MulIOp::create(b, loc, asIndex(b, loc, x), asIndex(b, loc, y))
      .getResult();
}

Size floorDivSizes(OpBuilder &b, Location loc, Size x, Size y) {
  std::optional<int64_t> p = getStaticSize(x), q = getStaticSize(y);
  if (q == 1)
    return x;
  if (p && q && *q > 0)
    return asSize(b, llvm::divideFloorSigned(*p, *q));
  return arith::FloorDivSIOp::create(b, loc, asIndex(b, loc, x),
                                     asIndex(b, loc, y))
      .getResult();
}

Size ceilDivSizes(OpBuilder &b, Location loc, Size x, Size y) {
  std::optional<int64_t> p = getStaticSize(x), q = getStaticSize(y);
  if (q == 1)
    return x;
  if (p && q && *q > 0)
    return asSize(b, llvm::divideCeilSigned(*p, *q));
  return arith::CeilDivSIOp::create(b, loc, asIndex(b, loc, x),
                                    asIndex(b, loc, y))
      .getResult();
}

Size productOfSizes(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes) {
  Size product = asSize(b, 1);
  for (Size size : sizes)
    product = mulSizes(b, loc, product, size);
  return product;
}

Sizes refineSizes(OpBuilder &b, ArrayRef<OpFoldResult> sizes,
                  RankedTensorType declared) {
  Sizes result(sizes);
  if (!declared || declared.getRank() != static_cast<int64_t>(sizes.size()))
    return result;
  for (auto [index, size] : llvm::enumerate(declared.getShape())) {
    if (ShapedType::isDynamic(size))
      continue;
    // Known sizes that differ are for the caller to find: replaceOp does.
    if (getStaticSize(result[index]))
      continue;
    checkSameSize(b, cast<Value>(result[index]).getLoc(), result[index],
                  asSize(b, size),
                  "dimension " + Twine(index) +
                      " of a result does not have the size declared for it");
    result[index] = asSize(b, size);
  }
  return result;
}

RankedTensorType getTensorType(ArrayRef<OpFoldResult> sizes, Type elementType) {
  SmallVector<int64_t> shape;
  for (Size size : sizes)
    shape.push_back(getStaticSize(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, elementType);
}

Value createEmpty(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                  Type elementType) {
  // Sizes that turned out constant belong into the type.
  Sizes normal;
  for (Size size : sizes) {
    std::optional<int64_t> known = getStaticSize(size);
    normal.push_back(known ? asSize(b, *known) : size);
  }
  return tensor::EmptyOp::create(b, loc, normal, elementType);
}

Value createFilled(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                   Value stored) {
  Value empty = createEmpty(b, loc, sizes, stored.getType());
  return linalg::FillOp::create(b, loc, stored, empty).getResult(0);
}

} // namespace sardonyx
