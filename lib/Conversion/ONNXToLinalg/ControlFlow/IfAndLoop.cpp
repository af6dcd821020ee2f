//===- IfAndLoop.cpp - If and Loop ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph becomes an scf.execute_region whose results are what it yields; the
// structured op around it carries them. Values whose shape changes from one
// iteration to the next have a type that fits all.
//
//===----------------------------------------------------------------------===//

#include "ControlFlow/Regions.h"
#include "StringsAndSequences/Sequences.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

RankedTensorType joinTypes(Type x, Type y) {
  auto a = dyn_cast_or_null<RankedTensorType>(x);
  auto c = dyn_cast_or_null<RankedTensorType>(y);
  if (!a || !c || a.getRank() != c.getRank() ||
      a.getElementType() != c.getElementType())
    return {};
  SmallVector<int64_t> shape;
  for (auto [m, n] : llvm::zip_equal(a.getShape(), c.getShape()))
    shape.push_back(m == n ? m : ShapedType::kDynamic);
  return RankedTensorType::get(shape, a.getElementType());
}

ValueRange getYielded(Region &region) {
  return region.front().getTerminator()->getOperands();
}

FailureOr<SmallVector<Type>> convertTypes(ValueRange values) {
  SmallVector<Type> types;
  for (Value value : values) {
    types.push_back(getConvertedType(value));
    if (!types.back())
      return failure();
  }
  return types;
}

namespace {

/// The condition tensor (one element, bool) as i1.
Value loadCondition(OpBuilder &b, Location loc, Value tensor) {
  return loadScalar(b, loc, getScalar(b, loc, tensor), b.getI1Type());
}

/// The end of a graph: its values in the types that the op around it returns.
LogicalResult lowerYield(Lowering<onnx::YieldOp> &b) {
  Operation *parent = b.op->getParentOp();
  if (!isa<scf::ExecuteRegionOp, scf::IfOp>(parent))
    return b.refuse("the op around has no lowering");
  SmallVector<Value> values;
  for (auto [value, type] :
       llvm::zip_equal(b.in.getOperands(), parent->getResultTypes()))
    values.push_back(b.cast(value, type));
  b.rewriter.replaceOpWithNewOp<scf::YieldOp>(b.op, values);
  return success();
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

LogicalResult lowerIf(Lowering<onnx::IfOp> &b) {
  auto thenTypes = convertTypes(getYielded(b.op.getThenBranch()));
  auto elseTypes = convertTypes(getYielded(b.op.getElseBranch()));
  if (failed(thenTypes) || failed(elseTypes) ||
      thenTypes->size() != elseTypes->size())
    return b.refuse("a branch yields a value of unknown rank or type");
  SmallVector<Type> types;
  for (auto [x, y] : llvm::zip_equal(*thenTypes, *elseTypes)) {
    types.push_back(joinTypes(x, y));
    if (!types.back())
      return b.refuse("branches differ in rank");
  }
  Value condition = loadCondition(b, b.getLoc(), b.in.getCond());
  auto branch = scf::IfOp::create(b, b.getLoc(), types, condition,
                                  /*withElseRegion=*/false);
  auto moveInto = [&](Region &from, Region &to) {
    while (!to.empty())
      b.rewriter.eraseBlock(&to.front());
    b.rewriter.inlineRegionBefore(from, to, to.end());
  };
  moveInto(b.op.getThenBranch(), branch.getThenRegion());
  moveInto(b.op.getElseBranch(), branch.getElseRegion());
  return b.replace(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// What a Loop's iterations hand on, in order: state, then scan results.
struct LoopTypes {
  SmallVector<RankedTensorType> state;
  SmallVector<RankedTensorType> elements; ///< Of each scan result.
  /// Whether the room that a scan result takes is not known before the loop, so
  /// that its elements go to a list first.
  SmallVector<bool> isList;
  /// The sizes of each scan result's elements where there is none; empty, or
  /// -1, where nobody says.
  SmallVector<SmallVector<int64_t>> sizesOfNone;
};

/// What the model declares of scan results: for each the rank, or -1, and then
/// the sizes.
SmallVector<SmallVector<int64_t>>
getSizesOfNone(onnx::LoopOp op, ArrayRef<RankedTensorType> elements) {
  SmallVector<SmallVector<int64_t>> all(elements.size());
  auto attribute = op->getAttrOfType<DenseI64ArrayAttr>("sdx.scan_sizes");
  ArrayRef<int64_t> rest =
      attribute ? attribute.asArrayRef() : ArrayRef<int64_t>();
  for (auto [element, sizes] : llvm::zip_equal(elements, all)) {
    if (rest.empty())
      break;
    int64_t rank = rest.front();
    rest = rest.drop_front();
    if (rank < 0)
      continue;
    if (rank > static_cast<int64_t>(rest.size()))
      break;
    if (rank == element.getRank())
      sizes.assign(rest.begin(), rest.begin() + rank);
    rest = rest.drop_front(rank);
  }
  return all;
}

FailureOr<LoopTypes> getTypes(onnx::LoopOp op, ValueRange initial,
                              ArrayRef<Type> yielded) {
  LoopTypes types;
  Block &body = op.getBody().front();
  if (yielded.size() < initial.size() + 1 ||
      body.getNumArguments() != initial.size() + 2)
    return failure();
  for (auto [i, value] : llvm::enumerate(initial)) {
    RankedTensorType type = joinTypes(value.getType(), yielded[1 + i]);
    RankedTensorType declared = getConvertedType(body.getArgument(2 + i));
    // An argument declared without a rank says nothing.
    if (type && declared)
      type = joinTypes(type, declared);
    if (!type)
      return failure();
    types.state.push_back(type);
  }
  for (Type type : yielded.drop_front(1 + initial.size()))
    types.elements.push_back(cast<RankedTensorType>(type));
  types.sizesOfNone = getSizesOfNone(op, types.elements);
  return types;
}

/// A tensor of one element, of the rank that the body's argument has.
Value wrapScalar(TensorBuilder &b, Value scalar, Value argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  SmallVector<int64_t> shape(type ? type.getRank() : 0, 1);
  return tensor::FromElementsOp::create(
      b, RankedTensorType::get(shape, scalar.getType()), scalar);
}

/// The most iterations, none negative, as an index; null when there is no such
/// limit.
Value getLimit(Lowering<onnx::LoopOp> &b, Value zero) {
  if (!b.in.getM())
    return {};
  Value trips = getScalar(b, b.getLoc(), b.in.getM());
  Value limit = arith::IndexCastOp::create(b, b.getIndexType(), trips);
  return arith::MaxSIOp::create(b, limit, zero);
}

/// What a scan result is before the first iteration.
Value createScanResult(TensorBuilder &b, RankedTensorType element, bool isList,
                       Value limit) {
  if (isList)
    return createList(b, {}, element.getElementType());
  Sizes sizes = getDeclaredSizes(b, element);
  // Also a body that never runs needs a place that it would write to.
  Value room =
      b.createOrFold<arith::MaxSIOp>(limit, createIndex(b, b.getLoc(), 1));
  sizes.insert(sizes.begin(), Size(room));
  return b.empty(sizes, element.getElementType());
}

/// `before` with what iteration `index` has made.
Value extendScanResult(TensorBuilder &b, Value before, Value made,
                       RankedTensorType element, bool isList, Value index) {
  if (isList)
    return insertIntoList(b, before, made);
  Sizes sizes = getDeclaredSizes(b, element);
  sizes.insert(sizes.begin(), b.size(1));
  Sizes offsets(sizes.size(), b.size(0));
  offsets.front() = Size(index);
  return b.insert(made, before, offsets, sizes);
}

/// The scan result after `count` iterations.
Value finishScanResult(TensorBuilder &b, Value last, RankedTensorType element,
                       bool isList, ArrayRef<int64_t> sizesOfNone,
                       Value count) {
  if (isList) {
    SmallVector<int64_t> shape(element.getShape()), otherwise(sizesOfNone);
    shape.insert(shape.begin(), ShapedType::kDynamic);
    if (!otherwise.empty())
      otherwise.insert(otherwise.begin(), 0);
    return concatList(b, last, 0, ListConcat::Scan, element.clone(shape),
                      otherwise);
  }
  Sizes sizes = getDeclaredSizes(b, element);
  sizes.insert(sizes.begin(), Size(count));
  Sizes offsets(sizes.size(), b.size(0));
  return slice(b, b.getLoc(), last, offsets, sizes);
}

/// Whether there is another iteration, and what it gets: all that is carried.
void createLoopTest(TensorBuilder &b, Block *block, Value limit) {
  Value go = block->getArgument(1);
  if (limit) {
    Value more =
        b.compare(arith::CmpIPredicate::slt, block->getArgument(0), limit);
    go = arith::AndIOp::create(b, go, more);
  }
  scf::ConditionOp::create(b, go, block->getArguments());
}

/// One iteration: the number, whether to go on, and the states are handed to
/// the graph.
LogicalResult createIteration(Lowering<onnx::LoopOp> &b, Block *block,
                              const LoopTypes &types, Type conditionType) {
  Location loc = b.getLoc();
  Block &body = b.op.getBody().front();
  Value index = block->getArgument(0);
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), index);
  Value flag = storeScalar(b, loc, block->getArgument(1), b.getI1Type());
  SmallVector<Value> arguments = {wrapScalar(b, number, body.getArgument(0)),
                                  wrapScalar(b, flag, body.getArgument(1))};
  int64_t states = types.state.size();
  llvm::append_range(arguments, block->getArguments().slice(2, states));
  SmallVector<Type> wanted = {conditionType};
  llvm::append_range(wanted, types.state);
  llvm::append_range(wanted, types.elements);
  FailureOr<ValueRange> values =
      inlineGraph(b, b.op.getBody(), arguments, wanted);
  if (failed(values))
    return failure();

  SmallVector<Value> next = {
      arith::AddIOp::create(b, index, createIndex(b, loc, 1)),
      loadCondition(b, loc, values->front())};
  llvm::append_range(next, values->slice(1, states));
  for (auto [i, element] : llvm::enumerate(types.elements))
    next.push_back(extendScanResult(b, block->getArgument(2 + states + i),
                                    (*values)[1 + states + i], element,
                                    types.isList[i], index));
  scf::YieldOp::create(b, next);
  return success();
}

FailureOr<scf::WhileOp> createLoop(Lowering<onnx::LoopOp> &b, Value limit,
                                   ArrayRef<Value> carried,
                                   const LoopTypes &types, Type conditionType) {
  SmallVector<Type> carriedTypes =
      llvm::map_to_vector(carried, [](Value value) { return value.getType(); });
  auto loop = scf::WhileOp::create(b, carriedTypes, carried);
  SmallVector<Location> locations(carried.size(), b.getLoc());
  OpBuilder::InsertionGuard guard(b);
  createLoopTest(
      b, b.createBlock(&loop.getBefore(), {}, carriedTypes, locations), limit);
  Block *after = b.createBlock(&loop.getAfter(), {}, carriedTypes, locations);
  if (failed(createIteration(b, after, types, conditionType)))
    return failure();
  return loop;
}

LogicalResult lowerLoop(Lowering<onnx::LoopOp> &b) {
  Location loc = b.getLoc();
  ValueRange initial = b.in.getVInitial();
  auto yielded = convertTypes(getYielded(b.op.getBody()));
  if (failed(yielded))
    return b.refuse("the body yields a value of unknown rank or type");
  FailureOr<LoopTypes> types = getTypes(b.op, initial, *yielded);
  if (failed(types))
    return b.refuse("a carried value changes its rank");

  Value zero = createIndex(b, loc, 0);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value limit = getLimit(b, zero);
  Value condition =
      b.in.getCond() ? loadCondition(b, loc, b.in.getCond()) : yes;
  SmallVector<Value> carried = {zero, condition};
  for (auto [value, type] : llvm::zip_equal(initial, types->state))
    carried.push_back(b.cast(value, type));
  for (RankedTensorType element : types->elements) {
    types->isList.push_back(!limit || !element.hasStaticShape());
    carried.push_back(
        createScanResult(b, element, types->isList.back(), limit));
  }
  FailureOr<scf::WhileOp> loop =
      createLoop(b, limit, carried, *types, yielded->front());
  if (failed(loop))
    return failure();
  int64_t states = types->state.size();
  SmallVector<Value> results(loop->getResults().slice(2, states));
  for (auto [i, element] : llvm::enumerate(types->elements))
    results.push_back(finishScanResult(
        b, loop->getResult(2 + states + i), element, types->isList[i],
        types->sizesOfNone[i], loop->getResult(0)));
  return b.replace(results);
}

} // namespace

void populateControlFlowPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  addLowering<onnx::YieldOp, lowerYield>(patterns, converter);
  addLowering<onnx::IfOp, lowerIf>(patterns, converter);
  addLowering<onnx::LoopOp, lowerLoop>(patterns, converter);
  populateScanPatterns(converter, patterns);
}

} // namespace sardonyx
