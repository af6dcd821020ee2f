//===- Broadcasting.cpp - Generic ops with numpy broadcasting -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/Common.h"

using namespace mlir;

namespace sardonyx {

TypedTensor getTyped(Value original, Value converted) {
  return {converted, getOnnxElementType(original)};
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

namespace {

/// How a dimension of an operand is read.
enum class Access {
  Same,  // it has the result's size
  One,   // it is 1, the result's isn't
  Either // known at run time only
};

struct BroadcastPlan {
  Sizes sizes;
  SmallVector<SmallVector<Access>> accesses; // [operand][operand's dim]
};

/// One operand's part in one dimension of the result.
struct Contributor {
  unsigned operand;
  int64_t dim;
  Size size;
};

} // namespace

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

static void checkEqualOrOne(OpBuilder &b, Location loc, Size size, Size out,
                            bool mayBeOne) {
  if (isSameSize(size, out))
    return;
  Value in = asIndex(b, loc, size);
  Value good = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, in,
                                     asIndex(b, loc, out));
  if (mayBeOne) {
    Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, in,
                                        createIndex(b, loc, 1));
    good = arith::OrIOp::create(b, loc, good, isOne);
  }
  createCheck(b, loc, good,
              "sizes {0} and {1} of the operands cannot be broadcast",
              {size, out});
}

/// Decides one dimension of the result from those operands whose size there is
/// not known to be 1.
static FailureOr<Size> planDimension(OpBuilder &b, Location loc,
                                     ArrayRef<Contributor> contributors,
                                     std::optional<int64_t> declared,
                                     bool sureSame, BroadcastPlan &plan) {
  auto set = [&](const Contributor &c, Access access) {
    plan.accesses[c.operand][c.dim] = access;
  };
  std::optional<int64_t> known;
  for (const Contributor &c : contributors)
    if (std::optional<int64_t> size = getStaticSize(c.size)) {
      if (known && known != size)
        return failure();
      known = size;
    }
  if (sureSame && known) {
    for (const Contributor &c : contributors)
      set(c, Access::Same);
    return asSize(b, *known);
  }
  bool allSame =
      sureSame || llvm::all_of(contributors, [&](const Contributor &c) {
        return isSameSize(c.size, contributors.front().size);
      });
  if (allSame) {
    Size out = contributors.empty() ? asSize(b, 1) : contributors.front().size;
    if (declared && getStaticSize(out) && declared != getStaticSize(out))
      return failure();
    if (declared && !contributors.empty()) {
      checkEqualOrOne(b, loc, out, asSize(b, *declared), /*mayBeOne=*/false);
      out = asSize(b, *declared);
    }
    for (const Contributor &c : contributors)
      set(c, Access::Same);
    return out;
  }
  if (!known)
    known = declared;
  if (known) {
    for (const Contributor &c : contributors) {
      bool sure = getStaticSize(c.size) || *known == 1;
      checkEqualOrOne(b, loc, c.size, asSize(b, *known), /*mayBeOne=*/true);
      set(c, sure ? Access::Same : Access::Either);
    }
    return asSize(b, *known);
  }
  // Positions cut out of a longer table: min(n, length) against n.
  for (const Contributor &whole : contributors) {
    auto fits = [&](const Contributor &c) {
      return isSameSize(c.size, whole.size) ||
             isMinimumWith(c.size, whole.size);
    };
    if (!llvm::all_of(contributors, fits))
      continue;
    for (const Contributor &c : contributors) {
      checkEqualOrOne(b, loc, c.size, whole.size, /*mayBeOne=*/true);
      set(c, isSameSize(c.size, whole.size) ? Access::Same : Access::Either);
    }
    return whole.size;
  }
  Value one = createIndex(b, loc, 1), out;
  for (const Contributor &c : contributors) {
    Value size = asIndex(b, loc, c.size);
    if (!out) {
      out = size;
      continue;
    }
    Value isOne =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, out, one);
    out = arith::SelectOp::create(b, loc, isOne, size, out);
  }
  for (const Contributor &c : contributors) {
    checkEqualOrOne(b, loc, c.size, Size(out), /*mayBeOne=*/true);
    set(c, Access::Either);
  }
  return Size(out);
}

static FailureOr<BroadcastPlan> planBroadcast(OpBuilder &b, Location loc,
                                              ValueRange tensors,
                                              RankedTensorType declared,
                                              ArrayRef<int64_t> sameDims = {}) {
  BroadcastPlan plan;
  int64_t rank = declared ? declared.getRank() : 0;
  SmallVector<Sizes> sizes;
  for (Value tensor : tensors) {
    sizes.push_back(getSizes(b, loc, tensor));
    rank = std::max<int64_t>(rank, sizes.back().size());
    plan.accesses.emplace_back(sizes.back().size(), Access::One);
  }
  if (declared && declared.getRank() != rank)
    return failure();
  for (int64_t d = 0; d < rank; ++d) {
    SmallVector<Contributor> contributors;
    for (auto [operand, shape] : llvm::enumerate(sizes)) {
      int64_t dim = d - (rank - static_cast<int64_t>(shape.size()));
      if (dim >= 0 && getStaticSize(shape[dim]) != 1)
        contributors.push_back(
            {static_cast<unsigned>(operand), dim, shape[dim]});
    }
    std::optional<int64_t> stated;
    if (declared && !declared.isDynamicDim(d))
      stated = declared.getDimSize(d);
    FailureOr<Size> size = planDimension(b, loc, contributors, stated,
                                         llvm::is_contained(sameDims, d), plan);
    if (failed(size))
      return failure();
    plan.sizes.push_back(*size);
    if (getStaticSize(*size) == 1)
      for (auto [operand, shape] : llvm::enumerate(sizes)) {
        int64_t dim = d - (rank - static_cast<int64_t>(shape.size()));
        if (dim >= 0)
          plan.accesses[operand][dim] = Access::Same;
      }
  }
  return plan;
}

/// Expands `tensor` at run time if one of its undecided dimensions is 1 where
/// the result's isn't.
static Value expandIfNeeded(OpBuilder &b, Location loc, Value tensor,
                            ArrayRef<Access> accesses,
                            ArrayRef<OpFoldResult> resultSizes) {
  int64_t rank = accesses.size();
  ArrayRef<OpFoldResult> aligned = resultSizes.take_back(rank);
  Sizes sizes = getSizes(b, loc, tensor), expanded(sizes);
  SmallVector<Value> isOne(rank);
  Value needed;
  for (int64_t i = 0; i < rank; ++i) {
    if (accesses[i] != Access::Either || isSameSize(sizes[i], aligned[i]))
      continue;
    expanded[i] = aligned[i];
    Value in = asIndex(b, loc, sizes[i]);
    isOne[i] = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, in,
                                     createIndex(b, loc, 1));
    Value differs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, in,
                                          asIndex(b, loc, aligned[i]));
    needed = needed ? arith::OrIOp::create(b, loc, needed, differs).getResult()
                    : differs;
  }
  if (!needed)
    return tensor;
  Type element = typeOf(tensor).getElementType();
  // Undecided sizes stay open in the type: when one branch turns out to be
  // dead, its sizes may contradict the other's.
  SmallVector<int64_t> shape(getTensorType(expanded, element).getShape());
  for (int64_t i = 0; i < rank; ++i)
    if (isOne[i])
      shape[i] = ShapedType::kDynamic;
  auto type = RankedTensorType::get(shape, element);
  auto expand = [&](OpBuilder &nested, Location at) {
    Value empty = createEmpty(nested, at, expanded, element);
    auto generic = linalg::GenericOp::create(
        nested, at, TypeRange{empty.getType()}, ValueRange{}, ValueRange{empty},
        ArrayRef<AffineMap>{nested.getMultiDimIdentityMap(rank)},
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [&](OpBuilder &body, Location where, ValueRange) {
          SmallVector<Value> position;
          Value zero = createIndex(body, where, 0);
          for (int64_t i = 0; i < rank; ++i) {
            Value index = linalg::IndexOp::create(body, where, i);
            if (isOne[i])
              index =
                  arith::SelectOp::create(body, where, isOne[i], zero, index);
            position.push_back(index);
          }
          Value read = tensor::ExtractOp::create(body, where, tensor, position);
          linalg::YieldOp::create(body, where, read);
        });
    scf::YieldOp::create(nested, at,
                         castTo(nested, at, generic.getResult(0), type));
  };
  auto keep = [&](OpBuilder &nested, Location at) {
    scf::YieldOp::create(nested, at, castTo(nested, at, tensor, type));
  };
  return scf::IfOp::create(b, loc, needed, expand, keep).getResult(0);
}

/// Makes an operand readable by a projection of the result's dimensions.
static std::pair<Value, AffineMap>
prepareOperand(OpBuilder &b, Location loc, Value tensor,
               ArrayRef<Access> accesses, ArrayRef<OpFoldResult> sizes) {
  tensor = expandIfNeeded(b, loc, tensor, accesses, sizes);
  int64_t rank = sizes.size(), offset = rank - accesses.size();
  SmallVector<int64_t> dropped;
  SmallVector<AffineExpr> exprs;
  for (auto [dim, access] : llvm::enumerate(accesses)) {
    if (access == Access::One)
      dropped.push_back(dim);
    else
      exprs.push_back(b.getAffineDimExpr(offset + dim));
  }
  return {squeeze(b, loc, tensor, dropped),
          AffineMap::get(rank, 0, exprs, b.getContext())};
}

FailureOr<Sizes> broadcastSizes(OpBuilder &b, Location loc, ValueRange tensors,
                                RankedTensorType declared) {
  FailureOr<BroadcastPlan> plan = planBroadcast(b, loc, tensors, declared);
  if (failed(plan))
    return failure();
  return plan->sizes;
}

LogicalResult checkBroadcastsTo(OpBuilder &b, Location loc, Value tensor,
                                ArrayRef<OpFoldResult> sizes) {
  Sizes from = getSizes(b, loc, tensor);
  if (from.size() > sizes.size())
    return failure();
  for (auto [size, out] : llvm::zip(from, sizes.take_back(from.size()))) {
    std::optional<int64_t> x = getStaticSize(size), y = getStaticSize(out);
    if (x == 1)
      continue;
    if (x && y && x != y)
      return failure();
    checkEqualOrOne(b, loc, size, out, /*mayBeOne=*/!x);
  }
  return success();
}

Value broadcastTo(OpBuilder &b, Location loc, Value tensor,
                  ArrayRef<OpFoldResult> sizes) {
  Sizes from = getSizes(b, loc, tensor);
  int64_t offset = sizes.size() - from.size();
  SmallVector<Access> accesses;
  bool same = offset == 0;
  for (auto [dim, size] : llvm::enumerate(from)) {
    Size out = sizes[offset + dim];
    if (isSameSize(size, out)) {
      accesses.push_back(Access::Same);
      continue;
    }
    same = false;
    if (getStaticSize(size) == 1) {
      accesses.push_back(Access::One);
      continue;
    }
    checkEqualOrOne(b, loc, size, out, /*mayBeOne=*/true);
    accesses.push_back(getStaticSize(size) ? Access::Same : Access::Either);
  }
  if (same)
    return tensor;
  auto [operand, map] = prepareOperand(b, loc, tensor, accesses, sizes);
  if (map.isIdentity())
    return operand;
  return createMapped(
      b, loc, {{operand, Type()}}, {map}, sizes,
      /*resultOnnxElementType=*/Type(),
      [](OpBuilder &, Location, ValueRange args) { return args.front(); });
}

//===----------------------------------------------------------------------===//
// Generic ops
//===----------------------------------------------------------------------===//

FailureOr<Value> createElementwise(OpBuilder &b, Location loc,
                                   ArrayRef<TypedTensor> inputs,
                                   Type resultOnnxElementType,
                                   RankedTensorType declared, ScalarBody body,
                                   ArrayRef<int64_t> sameDims) {
  SmallVector<Value> tensors;
  for (const TypedTensor &input : inputs)
    tensors.push_back(stripCast(input.value));
  FailureOr<BroadcastPlan> plan =
      planBroadcast(b, loc, tensors, declared, sameDims);
  if (failed(plan))
    return failure();
  SmallVector<TypedTensor> operands;
  SmallVector<AffineMap> maps;
  SmallVector<TypedAttr> splats;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    TypedAttr splat = getConstantSplat(tensors[index]);
    splats.push_back(splat);
    if (splat)
      continue;
    auto [operand, map] = prepareOperand(b, loc, tensors[index],
                                         plan->accesses[index], plan->sizes);
    operands.push_back({operand, input.onnxElementType});
    maps.push_back(map);
  }
  return createMapped(
      b, loc, operands, maps, plan->sizes, resultOnnxElementType,
      [&](OpBuilder &nested, Location at, ValueRange args) {
        SmallVector<Value> scalars;
        unsigned next = 0;
        for (auto [input, splat] : llvm::zip(inputs, splats)) {
          if (!splat) {
            scalars.push_back(args[next++]);
            continue;
          }
          Value stored = arith::ConstantOp::create(nested, at, splat);
          scalars.push_back(
              loadScalar(nested, at, stored, input.onnxElementType));
        }
        return body(nested, at, scalars);
      });
}

Value createMapped(OpBuilder &b, Location loc, ArrayRef<TypedTensor> inputs,
                   ArrayRef<AffineMap> maps, ArrayRef<OpFoldResult> sizes,
                   Type resultOnnxElementType, ScalarBody body) {
  Type stored = resultOnnxElementType
                    ? convertElementType(resultOnnxElementType)
                    : typeOf(inputs.front().value).getElementType();
  // No operand may end before the loops do, or hold more than they read.
  for (auto [input, map] : llvm::zip(inputs, maps))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        checkSameSize(b, loc, getSize(b, loc, input.value, dim),
                      sizes[loop.getPosition()],
                      "sizes of the operands do not fit each other");
  Value empty = createEmpty(b, loc, sizes, stored);
  SmallVector<Value> operands;
  for (const TypedTensor &input : inputs)
    operands.push_back(input.value);
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(b.getMultiDimIdentityMap(sizes.size()));
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{empty.getType()}, operands, ValueRange{empty}, allMaps,
      iterators, [&](OpBuilder &nested, Location at, ValueRange args) {
        SmallVector<Value> scalars;
        for (auto [input, arg] : llvm::zip(inputs, args))
          scalars.push_back(loadScalar(nested, at, arg, input.onnxElementType));
        Value result = body(nested, at, scalars);
        linalg::YieldOp::create(
            nested, at, storeScalar(nested, at, result, resultOnnxElementType));
      });
  return generic.getResult(0);
}

Value createReduction(OpBuilder &b, Location loc, TypedTensor input,
                      ArrayRef<int64_t> axes, Type accumulatorType, Value init,
                      ScalarBody body) {
  Sizes sizes = getSizes(b, loc, input.value), kept;
  int64_t rank = sizes.size(), next = 0;
  int64_t nextReduced = rank - static_cast<int64_t>(axes.size());
  // Reduced dimensions come last in the loop nest: codegen looks for that.
  SmallVector<AffineExpr> read, write;
  for (int64_t d = 0; d < rank; ++d) {
    if (llvm::is_contained(axes, d)) {
      read.push_back(b.getAffineDimExpr(nextReduced++));
      continue;
    }
    write.push_back(b.getAffineDimExpr(next));
    read.push_back(b.getAffineDimExpr(next++));
    kept.push_back(sizes[d]);
  }
  SmallVector<utils::IteratorType> iterators(next,
                                             utils::IteratorType::parallel);
  iterators.append(rank - next, utils::IteratorType::reduction);
  Value stored = storeScalar(b, loc, init, accumulatorType);
  Value dest = createFilled(b, loc, kept, stored);
  SmallVector<AffineMap> maps = {
      AffineMap::get(rank, 0, read, b.getContext()),
      AffineMap::get(rank, 0, write, b.getContext())};
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{dest.getType()}, ValueRange{input.value},
      ValueRange{dest}, maps, iterators,
      [&](OpBuilder &nested, Location at, ValueRange args) {
        Value element = loadScalar(nested, at, args[0], input.onnxElementType);
        element = castScalar(nested, at, element, input.onnxElementType,
                             accumulatorType);
        Value accumulator = loadScalar(nested, at, args[1], accumulatorType);
        Value result = body(nested, at, {element, accumulator});
        linalg::YieldOp::create(
            nested, at, storeScalar(nested, at, result, accumulatorType));
      });
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

LogicalResult replaceOp(ConversionPatternRewriter &rewriter,
                        const TypeConverter &converter, Operation *op,
                        ValueRange values) {
  SmallVector<Value> casted;
  for (auto [result, value] : llvm::zip(op->getResults(), values)) {
    if (!value) {
      if (!result.use_empty())
        return refuse(op, "a used result has no lowering");
      casted.push_back(nullptr);
      continue;
    }
    Type type = converter.convertType(result.getType());
    if (!type || !tensor::CastOp::areCastCompatible(value.getType(), type))
      return refuse(op, "the computed shape contradicts the declared one");
    casted.push_back(castTo(rewriter, op->getLoc(), value, type));
  }
  rewriter.replaceOp(op, casted);
  return success();
}

FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return failure();
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> normalizeAxes(ArrayRef<int64_t> axes,
                                              int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    FailureOr<int64_t> normal = normalizeAxis(axis, rank);
    if (failed(normal) || llvm::is_contained(result, *normal))
      return failure();
    result.push_back(*normal);
  }
  llvm::sort(result);
  return result;
}

} // namespace sardonyx
