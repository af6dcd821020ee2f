//===- InferGraphs.cpp - Types in and around branches and loops -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of Inference that is about the graphs of control flow operations.
//
//===----------------------------------------------------------------------===//

#include "FailingBranches.h"
#include "Inference.h"
#include "OpenLoops.h"
#include "ResultTypes.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace sardonyx;

/// The types that a graph's outputs give to the results around it.
Type Inference::inferYielded(Operation *op, unsigned index) {
  auto yielded = [&](Region &region, unsigned i) -> Type {
    auto yield = dyn_cast<onnx::YieldOp>(region.front().getTerminator());
    return yield && i < yield.getNumOperands() ? yield.getOperand(i).getType()
                                               : Type();
  };
  if (auto conditional = dyn_cast<onnx::IfOp>(op)) {
    Value x = getYielded(conditional, 0, index);
    Value y = getYielded(conditional, 1, index);
    if (!x || !y)
      return {};
    if (skipped.contains(&conditional.getElseBranch().front()) ||
        isEmptySequence(y))
      return x.getType();
    if (skipped.contains(&conditional.getThenBranch().front()) ||
        isEmptySequence(x))
      return y.getType();
    return joinOnnxTypes(x.getType(), y.getType());
  }
  if (auto scan = dyn_cast<onnx::ScanOp>(op))
    return inferScanned(scan, yielded(scan.getBody(), index), index);
  if (auto loop = dyn_cast<onnx::LoopOp>(op)) {
    Type type = yielded(loop.getBody(), index + 1);
    if (!type)
      return {};
    if (index < loop.getVInitial().size()) { // no iteration: the initial value
      Value initial = loop.getVInitial()[index];
      return isEmptySequence(initial) ? type
                                      : joinOnnxTypes(type, initial.getType());
    }
    auto slice = dyn_cast<RankedTensorType>(type);
    if (!slice)
      return {};
    SmallVector<int64_t> shape(slice.getShape());
    shape.insert(shape.begin(), ShapedType::kDynamic);
    return RankedTensorType::get(shape, slice.getElementType());
  }
  return {};
}

/// Gives the body's arguments the types that the loop-carried values have in
/// all iterations: those of the initial values, unless the body changes them.
/// True if the body has been inferred with them.
bool Inference::enterLoop(onnx::LoopOp op) {
  Block &body = op.getBody().front();
  auto yield = dyn_cast<onnx::YieldOp>(body.getTerminator());
  unsigned carried = op.getVInitial().size();
  if (!yield || yield.getNumOperands() < carried + 1 ||
      body.getNumArguments() != carried + 2)
    return false;
  // The number of the iteration, and whether there is one.
  for (unsigned i : {0, 1})
    if (auto type = dyn_cast<UnrankedTensorType>(body.getArgument(i).getType()))
      body.getArgument(i).setType(
          RankedTensorType::get({}, type.getElementType()));
  Snapshot before(op);
  bool ignored = false;
  SmallVector<Type> types;
  SmallVector<bool> areEmpty; // sequences so far
  for (unsigned i = 0; i < carried; ++i) {
    Value initial = op.getVInitial()[i];
    types.push_back(
        refine(body.getArgument(i + 2).getType(), initial.getType(), ignored));
    areEmpty.push_back(isEmptySequence(initial));
  }
  // Sizes become unknown, then ranks: it ends soon.
  for (unsigned attempt = 0; attempt < 4 && retries + attempt <= maxRetries;
       ++attempt) {
    for (unsigned i = 0; i < carried; ++i)
      body.getArgument(i + 2).setType(types[i]);
    // What an attempt finds wrong may be the attempt's fault.
    ScopedDiagnosticHandler silent(op.getContext(),
                                   [](Diagnostic &) { return success(); });
    Inference guess(retries + attempt, /*isGuess=*/true);
    auto markEmpty = [&](Inference &inference) {
      for (unsigned i = 0; i < carried; ++i)
        if (areEmpty[i])
          inference.empty.insert(body.getArgument(i + 2));
    };
    guess.empty = empty;
    markEmpty(guess);
    LogicalResult sound = guess.run(body);
    bool stable = true;
    for (unsigned i = 0; i < carried; ++i) {
      Value next = yield.getOperand(i + 1);
      if (guess.isEmptySequence(next))
        continue;
      Type joined = areEmpty[i] ? next.getType()
                                : joinOnnxTypes(types[i], next.getType());
      stable &= joined == types[i] && !areEmpty[i];
      areEmpty[i] = false;
      types[i] = joined;
    }
    // Then the body has the types that it would get once more.
    if (stable && succeeded(sound)) {
      markEmpty(*this);
      return isGuess || succeeded(run(body));
    }
    before.restore();
    if (failed(sound) || llvm::is_contained(types, Type()))
      return false;
  }
  return false;
}

/// A Scan's states keep their types; of the other inputs the body sees slices.
void Inference::enterScan(onnx::ScanOp op) {
  Block &body = op.getBody().front();
  unsigned states = op->getNumOperands() - op.getNumScanInputs();
  bool ignored = false;
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    Type type = op->getOperand(i).getType();
    if (i >= states) {
      auto whole = dyn_cast<RankedTensorType>(type);
      if (!whole)
        continue;
      auto axis =
          getScanAxis(op.getScanInputAxes(), i - states, whole.getRank());
      if (!axis)
        continue;
      SmallVector<int64_t> shape(whole.getShape());
      shape.erase(shape.begin() + *axis);
      type = RankedTensorType::get(shape, whole.getElementType());
    }
    argument.setType(refine(argument.getType(), type, ignored));
  }
}

LogicalResult Inference::runGraphs(Operation *op) {
  llvm::SaveAndRestore<unsigned> scope(retries);
  if (auto conditional = dyn_cast<onnx::IfOp>(op))
    return runBranches(conditional);
  if (auto loop = dyn_cast<onnx::LoopOp>(op)) {
    if (enterLoop(loop))
      return success();
    ++retries;
  } else if (auto scan = dyn_cast<onnx::ScanOp>(op)) {
    enterScan(scan);
  }
  // What is declared of arguments need not hold in all iterations.
  Inference guess(retries, /*isGuess=*/true);
  guess.empty = empty;
  Inference &inner = isGuess ? *this : guess;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (failed(inner.run(block)))
        return failure();
  return success();
}

/// Infers the types in a branch from an op on. False if that fails, with what
/// is wrong first.
bool Inference::runBranch(
    Block &branch, Block::iterator begin,
    std::optional<std::pair<Location, std::string>> &error) {
  ScopedDiagnosticHandler note(
      branch.getParentOp()->getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        if (!error)
          error.emplace(diagnostic.getLocation(), diagnostic.str());
        return success();
      });
  return succeeded(run(branch, begin));
}

/// One of the branches may be wrong, for it need not be taken.
LogicalResult Inference::runBranches(onnx::IfOp op) {
  SmallVector<std::pair<Location, std::string>> errors;
  for (Region &region : op->getRegions()) {
    if (!region.hasOneBlock())
      continue;
    std::optional<std::pair<Location, std::string>> error;
    Block &branch = region.front();
    if (isFailing(branch) || runBranch(branch, branch.begin(), error))
      continue;
    if (!error)
      error.emplace(op.getLoc(), "a branch cannot be computed");
    errors.push_back(*error);
    if (isGuess)
      skipped.insert(&branch);
    else
      makeFailing(branch, error->first, error->second, dead);
  }
  return settleBranches(op, errors);
}

/// Refuses an If if no branch is sound, and else gives those that are not the
/// types of the other one.
LogicalResult
Inference::settleBranches(onnx::IfOp op,
                          ArrayRef<std::pair<Location, std::string>> errors) {
  bool isAnySound = false, isAnyFailing = !errors.empty();
  for (Region &region : op->getRegions()) {
    if (!region.hasOneBlock())
      return success();
    bool isSound =
        !isFailing(region.front()) && !skipped.contains(&region.front());
    isAnySound |= isSound;
    isAnyFailing |= !isSound;
  }
  if (isAnySound &&
      (isGuess || !isAnyFailing || succeeded(completeFailing(op, dead))))
    return success();
  if (!errors.empty())
    emitError(errors.front().first) << errors.front().second;
  else
    op.emitOpError("has no branch that can be computed.");
  return failure();
}

/// Puts `op` into the branches of an If that decides on the rank of what it
/// reads. False if there is none.
FailureOr<bool> Inference::pullIntoBranches(Operation *op) {
  if (isGuess)
    return false;
  SmallVector<std::pair<Location, std::string>> errors;
  onnx::IfOp taker = openRanks.pull(
      op,
      [&](onnx::IfOp into, unsigned branch, Operation *first) {
        std::optional<std::pair<Location, std::string>> error;
        Block &block = into->getRegion(branch).front();
        if (runBranch(block, first->getIterator(), error))
          return;
        if (!error)
          error.emplace(op->getLoc(), "a branch cannot be computed");
        errors.push_back(*error);
        makeFailing(block, error->first, error->second, dead);
      },
      dead);
  if (!taker)
    return false;
  if (failed(settleBranches(taker, errors)))
    return failure();
  for (OpResult result : taker->getResults())
    if (Type type = inferYielded(taker, result.getResultNumber()))
      result.setType(type);
  // The If itself may read what another one decides.
  if (failed(pullIntoBranches(taker)))
    return failure();
  return true;
}

/// Carries values in sequences that have different ranks in the iterations of a
/// loop that was inferred. Returns what stands for it then.
Operation *Inference::openLoop(onnx::LoopOp op) {
  Block &body = op.getBody().front();
  unsigned carried = op.getVInitial().size();
  bool isOpen = false;
  if (!isGuess && body.getNumArguments() == carried + 2)
    for (unsigned i = 0; i < carried; ++i)
      isOpen |= isa<UnrankedTensorType>(body.getArgument(i + 2).getType()) &&
                isa<RankedTensorType>(op.getVInitial()[i].getType());
  if (!isOpen)
    return nullptr;
  auto infer = [&] {
    ScopedDiagnosticHandler silent(op.getContext(),
                                   [](Diagnostic &) { return success(); });
    Inference guess(retries, /*isGuess=*/true);
    guess.empty = empty;
    return guess.run(body);
  };
  return carryInSequences(op, infer, dead);
}

/// Puts results of a function whose ranks branches decide into sequences.
LogicalResult Inference::boxResults(Operation *terminator,
                                    SmallVectorImpl<int64_t> &boxed) {
  for (unsigned i = 0, e = terminator->getNumOperands(); i < e; ++i) {
    Value value = terminator->getOperand(i);
    if (!isDecidedByBranch(value))
      continue;
    OpBuilder builder(terminator);
    OperationState state(value.getLoc(),
                         onnx::SequenceConstructOp::getOperationName());
    state.addOperands(value);
    state.addTypes(onnx::SeqType::get(value.getType()));
    Operation *box = builder.create(state);
    terminator->setOperand(i, box->getResult(0));
    if (failed(pullIntoBranches(box)))
      return failure();
    boxed.push_back(i);
  }
  return success();
}

/// What the graphs of a control flow operation, which are inferred by now, say
/// about all of its results. The schemas would go through each graph again,
/// and through those in it: a nest of n would cost n times n.
LogicalResult Inference::inferFromGraphs(Operation *op,
                                         SmallVectorImpl<Type> &types) {
  if (op->getNumRegions() == 0)
    return failure();
  auto loop = dyn_cast<onnx::LoopOp>(op);
  for (Region &region : op->getRegions())
    if (region.empty() || region.front().getTerminator()->getNumOperands() !=
                              op->getNumResults() + (loop ? 1 : 0))
      return failure();
  unsigned arguments = op->getRegion(0).getNumArguments();
  if (loop ? arguments != loop.getVInitial().size() + 2
           : arguments != (isa<onnx::IfOp>(op) ? 0 : op->getNumOperands()))
    return failure();
  SmallVector<Type> found;
  for (unsigned i = 0, e = op->getNumResults(); i < e; ++i) {
    found.push_back(inferYielded(op, i));
    // Tensors in sequences may differ in rank, which the schemas do not see.
    if (isa_and_nonnull<onnx::SeqType>(found.back()))
      continue;
    auto type = dyn_cast_or_null<RankedTensorType>(found.back());
    if (!type || isa<NoneType>(type.getElementType()))
      return failure();
  }
  types = std::move(found);
  return success();
}

/// Puts the branch of an If that is certain to run in the If's place. The other
/// one says nothing about types then, and need not even fit.
bool Inference::takeBranch(onnx::IfOp op) {
  if (isGuess)
    return false;
  auto condition = evaluator.evaluate(op.getCond());
  if (!condition || condition->size() != 1 || !condition->front().isKnown())
    return false;
  Region &region =
      condition->front().value ? op.getThenBranch() : op.getElseBranch();
  if (!region.hasOneBlock())
    return false;
  Block &block = region.front();
  auto yield = dyn_cast<onnx::YieldOp>(block.getTerminator());
  if (!yield || yield.getNumOperands() != op->getNumResults() ||
      block.getNumArguments() != 0)
    return false;
  SmallVector<Type> types;
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), yield.getOperands())) {
    bool contradiction = false;
    // What the result is declared as must not get lost, unless it is wrong.
    Type type = refine(result.getType(), value.getType(), contradiction);
    bool isInside = value.getParentBlock() == &block;
    if (contradiction)
      type = value.getType();
    if (!isInside && type != value.getType())
      return false;
    types.push_back(type);
  }
  for (auto [value, type] : llvm::zip_equal(yield.getOperands(), types))
    value.setType(type);
  op->replaceAllUsesWith(yield.getOperands());
  Block::OpListType &target = op->getBlock()->getOperations();
  target.splice(op->getIterator(), block.getOperations(), block.begin(),
                yield->getIterator());
  op->dropAllReferences();
  op->remove();
  dead.push_back(op);
  return true;
}
