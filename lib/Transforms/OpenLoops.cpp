//===- OpenLoops.cpp - Loops whose values change their rank ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpenLoops.h"
#include "ResultTypes.h"

#include <map>

using namespace mlir;
using namespace sardonyx;

namespace {

/// More ranks of one value, or combinations of ranks, are left alone.
constexpr unsigned kMaxRanks = 8;
/// So many times a body is inferred.
constexpr unsigned kMaxAttempts = 24;

using Types = SmallVector<Type>;
/// The types of one value by rank.
using ByRank = std::map<int64_t, Type>;

/// The ranks of tensors; -1 for what is none.
std::vector<int64_t> ranksOf(ArrayRef<Type> types) {
  std::vector<int64_t> ranks;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    ranks.push_back(tensor ? tensor.getRank() : -1);
  }
  return ranks;
}

/// For each carried value the types that it has, by rank; nothing if they
/// cannot be known, or are too many.
std::optional<SmallVector<ByRank>>
collectRanks(onnx::LoopOp op, function_ref<LogicalResult()> infer) {
  Block &body = op.getBody().front();
  Operation *yield = body.getTerminator();
  unsigned carried = op.getVInitial().size();
  std::map<std::vector<int64_t>, Types> seen;
  SmallVector<std::vector<int64_t>> work;
  // False if a type is not known, or differs in more than shape.
  auto reach = [&](ArrayRef<Type> types) {
    for (Type type : types)
      if (isa<UnrankedTensorType, onnx::UnknownType>(type))
        return false;
    std::vector<int64_t> ranks = ranksOf(types);
    auto [it, isNew] = seen.try_emplace(ranks, Types(types));
    bool isWider = isNew;
    for (auto [known, type] : llvm::zip_equal(it->second, types)) {
      Type joined = joinOnnxTypes(known, type);
      if (!joined)
        return false;
      isWider |= joined != known;
      known = joined;
    }
    if (isWider)
      work.push_back(ranks);
    return seen.size() <= kMaxRanks;
  };
  if (!reach(llvm::to_vector(op.getVInitial().getTypes())))
    return std::nullopt;
  Snapshot before(op);
  bool areKnown = true;
  for (unsigned attempt = 0; areKnown && !work.empty(); ++attempt) {
    for (auto [i, type] : llvm::enumerate(seen[work.pop_back_val()]))
      body.getArgument(i + 2).setType(type);
    areKnown = attempt < kMaxAttempts && succeeded(infer()) &&
               reach(llvm::to_vector(
                   yield->getOperands().slice(1, carried).getTypes()));
    before.restore();
  }
  if (!areKnown)
    return std::nullopt;
  SmallVector<ByRank> result(carried);
  for (const auto &[ranks, types] : seen)
    for (unsigned i = 0; i < carried; ++i) {
      Type &type = result[i][ranks[i]];
      type = type ? joinOnnxTypes(type, types[i]) : types[i];
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

template <typename OpT>
OpT create(OpBuilder &builder, Location loc, ArrayRef<Value> inputs,
           ArrayRef<Type> types, ArrayRef<NamedAttribute> attributes = {}) {
  OperationState state(loc, OpT::getOperationName());
  std::string error;
  if (failed(onnx::buildSchemaOp(state, OpT::getSchema(), inputs, types,
                                 attributes, error)))
    return {};
  return cast<OpT>(builder.create(state));
}

Value createNumber(OpBuilder &builder, Location loc, int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return onnx::createConstant(
      builder, loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(value)));
}

/// The sequence of one tensor.
Value wrap(OpBuilder &builder, Location loc, Value tensor) {
  return create<onnx::SequenceConstructOp>(
      builder, loc, {tensor},
      {onnx::SeqType::get(onnx::eraseShapes(tensor.getType()))});
}

/// The rank of a tensor, by its type where it is known.
Value createRank(OpBuilder &builder, Location loc, Value tensor) {
  Type i64 = builder.getI64Type();
  Value shape = create<onnx::ShapeOp>(
      builder, loc, {tensor},
      {RankedTensorType::get({ShapedType::kDynamic}, i64)});
  return create<onnx::SizeOp>(builder, loc, {shape},
                              {RankedTensorType::get({}, i64)});
}

/// The tensor in a sequence, of the type for its rank in each branch of an If.
Value unwrap(OpBuilder &builder, Location loc, Value sequence, Value rank,
             ByRank types) {
  auto [known, type] = *types.begin();
  types.erase(types.begin());
  if (types.empty())
    return create<onnx::SequenceAtOp>(
        builder, loc, {sequence, createNumber(builder, loc, 0)}, {type});
  Value isThis = create<onnx::EqualOp>(
      builder, loc, {rank, createNumber(builder, loc, known)},
      {RankedTensorType::get({}, builder.getI1Type())});
  auto choice =
      create<onnx::IfOp>(builder, loc, {isThis}, {onnx::eraseShapes(type)});
  for (unsigned branch : {0, 1}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&choice->getRegion(branch));
    Value tensor = unwrap(builder, loc, sequence, rank,
                          branch == 0 ? ByRank{{known, type}} : types);
    OperationState state(loc, onnx::YieldOp::getOperationName());
    state.addOperands(tensor);
    builder.create(state);
  }
  return choice->getResult(0);
}

} // namespace

Operation *sardonyx::carryInSequences(onnx::LoopOp op,
                                      function_ref<LogicalResult()> infer,
                                      SmallVectorImpl<Operation *> &dead) {
  unsigned carried = op.getVInitial().size();
  Block &body = op.getBody().front();
  Operation *yield = body.getTerminator();
  if (body.getNumArguments() != carried + 2 ||
      yield->getNumOperands() != op->getNumResults() + 1)
    return nullptr;
  auto ranks = collectRanks(op, infer);
  if (!ranks || llvm::all_of(*ranks, [](const ByRank &types) {
        return types.size() == 1;
      }))
    return nullptr;

  Location loc = op.getLoc();
  OpBuilder outside(op), top = OpBuilder::atBlockBegin(&body), end(yield);
  // What comes after the states: ranks, as inputs, arguments and results.
  SmallVector<Value> inputs = onnx::getPositionalInputs(op);
  const size_t first = inputs.size() - carried;
  Types results =
      llvm::to_vector(op->getResults().take_front(carried).getTypes());
  SmallVector<Value> wrapped(carried), rankInputs, rankYielded;
  Operation *begin = nullptr;
  Type number = RankedTensorType::get({}, outside.getI64Type());
  for (unsigned i = 0; i < carried; ++i) {
    if ((*ranks)[i].size() == 1)
      continue;
    Value initial = inputs[first + i];
    inputs[first + i] = wrap(outside, loc, initial);
    begin = begin ? begin : inputs[first + i].getDefiningOp();
    auto tensor = cast<RankedTensorType>(initial.getType());
    rankInputs.push_back(createNumber(outside, loc, tensor.getRank()));

    BlockArgument held = body.getArgument(i + 2);
    BlockArgument rank = body.addArgument(number, loc);
    Value out = unwrap(top, loc, held, rank, (*ranks)[i]);
    held.replaceUsesWithIf(out, [&](OpOperand &use) {
      return !isa<onnx::SequenceAtOp>(use.getOwner()) ||
             use.getOperandNumber() != 0 ||
             !out.getDefiningOp()->isProperAncestor(use.getOwner());
    });
    held.setType(inputs[first + i].getType());
    Value after = yield->getOperand(1 + i);
    wrapped[i] = wrap(end, loc, after);
    rankYielded.push_back(createRank(end, loc, after));
    results[i] = inputs[first + i].getType();
  }
  llvm::append_range(inputs, rankInputs);
  SmallVector<Value> yielded(yield->getOperands());
  for (unsigned i = 0; i < carried; ++i)
    if (wrapped[i])
      yielded[1 + i] = wrapped[i];
  yielded.insert(yielded.begin() + 1 + carried, rankYielded.begin(),
                 rankYielded.end());
  yield->setOperands(yielded);
  results.append(rankInputs.size(), number);
  llvm::append_range(results, op->getResults().drop_front(carried).getTypes());

  auto loop = create<onnx::LoopOp>(outside, loc, inputs, results);
  loop.getBody().takeBody(op.getBody());
  unsigned ranked = 0;
  for (unsigned i = 0, e = op->getNumResults(); i < e; ++i) {
    unsigned at = i < carried ? i : i + rankInputs.size();
    Value result = loop->getResult(at);
    if (i < carried && (*ranks)[i].size() > 1)
      result = unwrap(outside, loc, result, loop->getResult(carried + ranked++),
                      (*ranks)[i]);
    op->getResult(i).replaceAllUsesWith(result);
  }
  op->dropAllReferences();
  op->remove();
  dead.push_back(op);
  return begin;
}
