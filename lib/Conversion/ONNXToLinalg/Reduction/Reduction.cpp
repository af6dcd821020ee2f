//===- Reduction.cpp - Reduce* --------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reduction/ReductionKinds.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

/// The original type that accumulators have: f32 for small floats, so that
/// partial results are not rounded.
static Type getAccumulatorType(Type onnxType) {
  if (onnxType.isF16() || onnxType.isBF16())
    return Float32Type::get(onnxType.getContext());
  return onnxType;
}

static Value initOf(OpBuilder &b, Location loc, ReductionKind kind, Type type) {
  switch (kind) {
  case ReductionKind::Max:
    return createLowest(b, loc, type);
  case ReductionKind::Min:
    return createHighest(b, loc, type);
  case ReductionKind::Prod:
    return createIntConstant(b, loc, getComputeType(type), 1);
  default:
    return createIntConstant(b, loc, getComputeType(type), 0);
  }
}

static Value combine(ScalarBuilder &s, ReductionKind kind, Value element,
                     Value accumulator) {
  switch (kind) {
  case ReductionKind::Max:
    return s.max(accumulator, element);
  case ReductionKind::Min:
    return s.min(accumulator, element);
  case ReductionKind::Prod:
    return s.mul(accumulator, element);
  case ReductionKind::L1:
    return s.add(accumulator, s.abs(element));
  case ReductionKind::L2:
  case ReductionKind::SumSquare:
    return s.add(accumulator, s.mul(element, element));
  default:
    return s.add(accumulator, element);
  }
}

/// What happens to the accumulator at the end, or nothing.
static bool hasEpilogue(ReductionKind kind) {
  return kind == ReductionKind::Mean || kind == ReductionKind::L2 ||
         kind == ReductionKind::LogSum;
}

/// A floating-point function of an integer or float accumulator.
static Value throughFloat(ScalarBuilder &s, Value value,
                          function_ref<Value(ScalarBuilder &, Value)> apply) {
  if (s.isFloat())
    return apply(s, value);
  Type wide = s.getF64Type(), onnxType = s.getOnnxType();
  ScalarBuilder f(s, s.getLoc(), wide);
  Value number = castScalar(f, f.getLoc(), value, onnxType, wide);
  return castScalar(f, f.getLoc(), apply(f, number), wide, onnxType);
}

static Value finish(ScalarBuilder &s, ReductionKind kind, Value value,
                    Value count) {
  switch (kind) {
  case ReductionKind::Mean:
    return s.div(value, castScalar(s, s.getLoc(), count, s.getI64Type(),
                                   s.getOnnxType()));
  case ReductionKind::L2:
    return throughFloat(s, value,
                        [](ScalarBuilder &f, Value x) { return f.sqrt(x); });
  case ReductionKind::LogSum:
    return throughFloat(s, value,
                        [](ScalarBuilder &f, Value x) { return f.log(x); });
  default:
    return value;
  }
}

//===----------------------------------------------------------------------===//
// Known axes
//===----------------------------------------------------------------------===//

/// Makes adjacent reduced axes one; the axes of the result are `axes`.
static Value mergeReducedAxes(OpBuilder &b, Location loc, Value tensor,
                              SmallVectorImpl<int64_t> &axes) {
  for (size_t i = axes.size(); i-- > 1;) {
    if (axes[i] != axes[i - 1] + 1)
      continue;
    tensor = collapseRange(b, loc, tensor, axes[i - 1], axes[i] + 1);
    axes.erase(axes.begin() + i);
    for (size_t k = i; k < axes.size(); ++k)
      --axes[k];
  }
  return tensor;
}

/// The number of reduced elements as an i64 scalar.
static Value countReduced(OpBuilder &b, Location loc, Value tensor,
                          ArrayRef<int64_t> axes) {
  Size count = asSize(b, 1);
  for (int64_t axis : axes)
    count = mulSizes(b, loc, count, getSize(b, loc, tensor, axis));
  if (std::optional<int64_t> known = getStaticSize(count))
    return createIntConstant(b, loc, b.getI64Type(), *known);
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), cast<Value>(count));
}

/// Applies `body` to every element; the result has another element type.
static Value mapElements(OpBuilder &b, Location loc, TypedTensor input,
                         Type resultType, ScalarBody body) {
  int64_t rank = cast<RankedTensorType>(input.value.getType()).getRank();
  return createMapped(b, loc, input, b.getMultiDimIdentityMap(rank),
                      getSizes(b, loc, input.value), resultType, body);
}

/// log(sum(exp(x))) = m + log(sum(exp(x - m))) for the maximum m, or 0 where
/// that is infinite.
static Value reduceLogSumExp(OpBuilder &b, Location loc, TypedTensor input,
                             ArrayRef<int64_t> axes, Type accumulator) {
  // Integers are summed as floats.
  Type work = isa<FloatType>(accumulator) ? accumulator : Type(b.getF64Type());
  Value maximum =
      createReduction(b, loc, input, axes, work, createLowest(b, loc, work),
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        return ScalarBuilder(n, at, work).max(args[1], args[0]);
                      });
  maximum = mapElements(b, loc, {maximum, work}, work,
                        [&](OpBuilder &n, Location at, ValueRange args) {
                          ScalarBuilder s(n, at, work);
                          Value finite =
                              s.lt(s.abs(args[0]), createHighest(n, at, work));
                          return s.select(finite, args[0], s.constant(0));
                        });
  Sizes sizes = getSizes(b, loc, input.value);
  SmallVector<AffineExpr> kept;
  int64_t rank = sizes.size();
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(axes, d))
      kept.push_back(b.getAffineDimExpr(d));
  Value exps = createMapped(
      b, loc, {input, {maximum, work}},
      {b.getMultiDimIdentityMap(rank),
       AffineMap::get(rank, 0, kept, b.getContext())},
      sizes, work, [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, work);
        Value x = castScalar(n, at, args[0], input.onnxElementType, work);
        return s.exp(s.sub(x, args[1]));
      });
  Value zero = createConstant(b, loc, work, 0);
  Value sum =
      createReduction(b, loc, {exps, work}, axes, work, zero,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        return ScalarBuilder(n, at, work).add(args[1], args[0]);
                      });
  Type result = input.onnxElementType;
  int64_t resultRank = kept.size();
  AffineMap identity = b.getMultiDimIdentityMap(resultRank);
  return createMapped(b, loc, {{sum, work}, {maximum, work}},
                      {identity, identity}, getSizes(b, loc, sum), result,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        ScalarBuilder s(n, at, work);
                        Value value = s.add(s.log(args[0]), args[1]);
                        return castScalar(n, at, value, work, result);
                      });
}

Value reduceAxes(OpBuilder &b, Location loc, TypedTensor input,
                 ArrayRef<int64_t> axes, ReductionKind kind) {
  SmallVector<int64_t> merged(axes);
  Value count = kind == ReductionKind::Mean
                    ? countReduced(b, loc, input.value, axes)
                    : Value();
  Value tensor = mergeReducedAxes(b, loc, input.value, merged);
  TypedTensor typed{tensor, input.onnxElementType};
  Type accumulator = getAccumulatorType(input.onnxElementType);
  if (kind == ReductionKind::LogSumExp)
    return reduceLogSumExp(b, loc, typed, merged, accumulator);
  Value reduced = createReduction(
      b, loc, typed, merged, accumulator, initOf(b, loc, kind, accumulator),
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, accumulator);
        return combine(s, kind, args[0], args[1]);
      });
  if (!hasEpilogue(kind) && accumulator == input.onnxElementType)
    return reduced;
  return mapElements(b, loc, {reduced, accumulator}, input.onnxElementType,
                     [&](OpBuilder &n, Location at, ValueRange args) {
                       ScalarBuilder s(n, at, accumulator);
                       Value value = finish(s, kind, args[0], count);
                       return castScalar(n, at, value, accumulator,
                                         input.onnxElementType);
                     });
}

//===----------------------------------------------------------------------===//
// Axes known at run time only
//===----------------------------------------------------------------------===//

/// For each dimension whether it is reduced, as i1 values.
static SmallVector<Value> findReduced(OpBuilder &b, Location loc, Value axes,
                                      int64_t rank, bool noopWithoutAxes) {
  int64_t count = cast<RankedTensorType>(axes.getType()).getDimSize(0);
  Type i1 = b.getI1Type();
  SmallVector<Value> reduced;
  if (count == 0) {
    reduced.assign(rank, createIntConstant(b, loc, i1, !noopWithoutAxes));
    return reduced;
  }
  reduced.assign(rank, createIntConstant(b, loc, i1, 0));
  Value rankValue = createIndex(b, loc, rank), zero = createIndex(b, loc, 0);
  // As many as the list is long, so that this cannot fail.
  FailureOr<SmallVector<Value>> given =
      getIntListAsIndices(b, loc, axes, count, "axes");
  for (Value axis : *given) {
    Value negative =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, axis, zero);
    Value wrapped = arith::AddIOp::create(b, loc, axis, rankValue);
    Value normal = arith::SelectOp::create(b, loc, negative, wrapped, axis);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         normal, rankValue);
    createCheck(b, loc, inside, "axis {0} is out of range", {Size(axis)});
    for (int64_t d = 0; d < rank; ++d) {
      Value hit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        normal, createIndex(b, loc, d));
      reduced[d] = arith::OrIOp::create(b, loc, reduced[d], hit);
    }
  }
  return reduced;
}

static Size selectSize(OpBuilder &b, Location loc, Value condition, Size x,
                       Size y) {
  return arith::SelectOp::create(b, loc, condition, asIndex(b, loc, x),
                                 asIndex(b, loc, y))
      .getResult();
}

/// The sizes without the reduced dimensions; `rank` of them remain.
static Sizes dropReduced(OpBuilder &b, Location loc, ArrayRef<Size> sizes,
                         ArrayRef<Value> reduced, int64_t rank) {
  Sizes kept(rank, asSize(b, 1));
  Value zero = createIndex(b, loc, 0), one = createIndex(b, loc, 1);
  Value position = zero;
  for (auto [size, drop] : llvm::zip(sizes, reduced)) {
    for (int64_t k = 0; k < rank; ++k) {
      Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         position, createIndex(b, loc, k));
      Value keep = arith::XOrIOp::create(
          b, loc, drop, createIntConstant(b, loc, b.getI1Type(), 1));
      Value take = arith::AndIOp::create(b, loc, here, keep);
      kept[k] = selectSize(b, loc, take, size, kept[k]);
    }
    Value step = arith::SelectOp::create(b, loc, drop, zero, one);
    position = arith::AddIOp::create(b, loc, position, step);
  }
  return kept;
}

/// Reduces with loops over each dimension twice: once over the result (size 1
/// where it is reduced), once over what is reduced (size 1 where it isn't).
/// The element read is at the sum of both. Keeps all dimensions.
static Value reduceFlagged(OpBuilder &b, Location loc, TypedTensor input,
                           ArrayRef<Value> reduced, ReductionKind kind) {
  Sizes sizes = getSizes(b, loc, input.value), outer, inner;
  int64_t rank = sizes.size();
  Size one = asSize(b, 1), countSize = one;
  for (auto [size, flag] : llvm::zip(sizes, reduced)) {
    outer.push_back(selectSize(b, loc, flag, one, size));
    inner.push_back(selectSize(b, loc, flag, size, one));
    countSize = mulSizes(b, loc, countSize, inner.back());
  }
  Value count = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                           asIndex(b, loc, countSize));
  Type accumulator = getAccumulatorType(input.onnxElementType);
  Value init =
      storeScalar(b, loc, initOf(b, loc, kind, accumulator), accumulator);
  Value dest = createFilled(b, loc, outer, init);
  // An operand that only carries the sizes of the inner loops.
  Value extent = createEmpty(b, loc, inner, b.getI8Type());
  SmallVector<AffineExpr> outerDims, innerDims;
  for (int64_t d = 0; d < rank; ++d) {
    outerDims.push_back(b.getAffineDimExpr(d));
    innerDims.push_back(b.getAffineDimExpr(rank + d));
  }
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.append(rank, utils::IteratorType::reduction);
  SmallVector<AffineMap> maps = {
      AffineMap::get(2 * rank, 0, innerDims, b.getContext()),
      AffineMap::get(2 * rank, 0, outerDims, b.getContext())};
  Value source = input.value;
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{dest.getType()}, ValueRange{extent}, ValueRange{dest},
      maps, iterators, [&](OpBuilder &n, Location at, ValueRange args) {
        SmallVector<Value> position;
        for (int64_t d = 0; d < rank; ++d)
          position.push_back(
              arith::AddIOp::create(n, at, linalg::IndexOp::create(n, at, d),
                                    linalg::IndexOp::create(n, at, rank + d)));
        Value element = tensor::ExtractOp::create(n, at, source, position);
        element = loadScalar(n, at, element, input.onnxElementType);
        element =
            castScalar(n, at, element, input.onnxElementType, accumulator);
        ScalarBuilder s(n, at, accumulator);
        Value next =
            combine(s, kind, element, loadScalar(n, at, args[1], accumulator));
        linalg::YieldOp::create(n, at, storeScalar(n, at, next, accumulator));
      });
  return mapElements(
      b, loc, {generic.getResult(0), accumulator}, input.onnxElementType,
      [&](OpBuilder &n, Location at, ValueRange args) {
        ScalarBuilder s(n, at, accumulator);
        Value value = finish(s, kind, args[0], count);
        return castScalar(n, at, value, accumulator, input.onnxElementType);
      });
}

/// log(sum(exp(x))): the sum of exponentials is taken of x minus the maximum of
/// all elements, since which of them belong together isn't known.
static Value reduceFlaggedLogSumExp(OpBuilder &b, Location loc,
                                    TypedTensor input,
                                    ArrayRef<Value> reduced) {
  Type type = input.onnxElementType;
  Type work =
      isa<FloatType>(type) ? getAccumulatorType(type) : Type(b.getF64Type());
  auto unary = [&](TypedTensor from, Type to,
                   function_ref<Value(ScalarBuilder &, Value)> apply) {
    return mapElements(
        b, loc, from, to, [&](OpBuilder &n, Location at, ValueRange args) {
          ScalarBuilder s(n, at, work);
          Value x = castScalar(n, at, args[0], from.onnxElementType, work);
          return castScalar(n, at, apply(s, x), work, to);
        });
  };
  Value wide = unary(input, work, [](ScalarBuilder &, Value x) { return x; });
  Value maximum =
      reduceFlagged(b, loc, {wide, work}, reduced, ReductionKind::Max);
  maximum = unary({maximum, work}, work, [&](ScalarBuilder &s, Value x) {
    Value finite = s.lt(s.abs(x), createHighest(s, s.getLoc(), work));
    return s.select(finite, x, s.constant(0));
  });
  // The maximum keeps all dimensions: it broadcasts where it was reduced.
  auto shifted =
      createElementwise(b, loc, {{wide, work}, {maximum, work}}, work,
                        cast<RankedTensorType>(wide.getType()),
                        [&](OpBuilder &n, Location at, ValueRange args) {
                          ScalarBuilder s(n, at, work);
                          return s.exp(s.sub(args[0], args[1]));
                        });
  if (failed(shifted))
    return {};
  Value sum =
      reduceFlagged(b, loc, {*shifted, work}, reduced, ReductionKind::Sum);
  int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  return createMapped(b, loc, {{sum, work}, {maximum, work}},
                      {identity, identity}, getSizes(b, loc, sum), type,
                      [&](OpBuilder &n, Location at, ValueRange args) {
                        ScalarBuilder s(n, at, work);
                        Value value = s.add(s.log(args[0]), args[1]);
                        return castScalar(n, at, value, work, type);
                      });
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

/// Over the axes that only the run knows, at most as many as are listed.
template <typename OpT>
LogicalResult lowerFlagged(Lowering<OpT> &b, TypedTensor data,
                           RankedTensorType declared, ReductionKind kind) {
  Location loc = b.getLoc();
  Value axes = b.in.getAxes();
  RankedTensorType axesType = rankedType(axes);
  if (axesType.getRank() != 1 || !axesType.hasStaticShape() ||
      axesType.getNumElements() > kMaxScalarised)
    return b.refuse("the number of axes is unknown");
  SmallVector<Value> reduced = findReduced(b, loc, axes, b.rank(data.value),
                                           b.op.getNoopWithEmptyAxes());
  Value result = kind == ReductionKind::LogSumExp
                     ? reduceFlaggedLogSumExp(b, loc, data, reduced)
                     : reduceFlagged(b, loc, data, reduced, kind);
  if (!result)
    return b.refuse("its shapes don't agree");
  if (!b.op.getKeepdims()) {
    Sizes sizes =
        dropReduced(b, loc, b.dims(data.value), reduced, declared.getRank());
    result = b.reshape(result, refineSizes(b, sizes, declared));
  }
  return b.replace(result);
}

template <typename OpT, ReductionKind kind>
LogicalResult lowerReduce(Lowering<OpT> &b) {
  Location loc = b.getLoc();
  TypedTensor data = getTyped(b.op.getData(), b.in.getData());
  auto type = dyn_cast<RankedTensorType>(b.in.getData().getType());
  RankedTensorType declared = getConvertedType(b.op.getReduced());
  if (!type || !declared)
    return b.refuse("a type has no lowering");
  int64_t rank = type.getRank();
  std::optional<SmallVector<int64_t>> axes = SmallVector<int64_t>();
  if (Value operand = b.op.getAxes()) {
    axes = getConstantInts(b.in.getAxes());
    auto axesType = cast<RankedTensorType>(b.in.getAxes().getType());
    if (!axes && axesType.hasStaticShape() && axesType.getNumElements() == 0)
      axes = SmallVector<int64_t>();
  }
  if (!axes)
    return lowerFlagged(b, data, declared, kind);
  if (axes->empty() && !b.op.getNoopWithEmptyAxes())
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  auto normal = normalizeAxes(*axes, rank);
  if (failed(normal))
    return b.refuse("its axes are not valid");
  Value result = reduceAxes(b, loc, data, *normal, kind);
  if (b.op.getKeepdims())
    result = unsqueeze(b, loc, result, *normal);
  return b.replace(result);
}

template <typename OpT, ReductionKind kind>
void addReduction(RewritePatternSet &patterns, const TypeConverter &converter) {
  addLowering<OpT, lowerReduce<OpT, kind>>(patterns, converter);
}

} // namespace

void populateReductionPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  addReduction<onnx::ReduceSumOp, ReductionKind::Sum>(patterns, converter);
  addReduction<onnx::ReduceMeanOp, ReductionKind::Mean>(patterns, converter);
  addReduction<onnx::ReduceMaxOp, ReductionKind::Max>(patterns, converter);
  addReduction<onnx::ReduceMinOp, ReductionKind::Min>(patterns, converter);
  addReduction<onnx::ReduceProdOp, ReductionKind::Prod>(patterns, converter);
  addReduction<onnx::ReduceL1Op, ReductionKind::L1>(patterns, converter);
  addReduction<onnx::ReduceL2Op, ReductionKind::L2>(patterns, converter);
  addReduction<onnx::ReduceLogSumOp, ReductionKind::LogSum>(patterns,
                                                            converter);
  addReduction<onnx::ReduceLogSumExpOp, ReductionKind::LogSumExp>(patterns,
                                                                  converter);
  addReduction<onnx::ReduceSumSquareOp, ReductionKind::SumSquare>(patterns,
                                                                  converter);
  populateArgReductionPatterns(converter, patterns);
  populateCumulativePatterns(converter, patterns);
}

} // namespace sardonyx
