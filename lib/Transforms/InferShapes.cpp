//===- InferShapes.cpp - Make the types of all values precise -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingBranches.h"
#include "OpenLoops.h"
#include "OpenRanks.h"
#include "ResultTypes.h"
#include "ShapeValues.h"
#include "sardonyx/BoxedResults.h"
#include "sardonyx/Transforms/Passes.h"

#include "dialects/SDX/SDX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/SaveAndRestore.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXINFERSHAPES
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

//===----------------------------------------------------------------------===//
// What two types say together
//===----------------------------------------------------------------------===//

namespace {
/// `declared` made more precise by `inferred`. A contradiction in a size is
/// settled for `inferred` and noted.
Type refine(Type declared, Type inferred, bool &contradiction) {
  if (!inferred || isa<onnx::UnknownType>(inferred))
    return declared;
  if (isa<onnx::UnknownType>(declared))
    return inferred;
  if (auto a = dyn_cast<onnx::SeqType>(declared))
    if (auto b = dyn_cast<onnx::SeqType>(inferred))
      return onnx::SeqType::get(
          refine(a.getElementType(), b.getElementType(), contradiction));
  if (auto a = dyn_cast<onnx::OptType>(declared))
    if (auto b = dyn_cast<onnx::OptType>(inferred))
      return onnx::OptType::get(
          refine(a.getElementType(), b.getElementType(), contradiction));
  auto from = dyn_cast<TensorType>(declared);
  auto to = dyn_cast<TensorType>(inferred);
  if (!from || !to || !to.hasRank())
    return declared;
  Type element = isa<onnx::UnknownType>(from.getElementType())
                     ? to.getElementType()
                     : from.getElementType();
  if (!from.hasRank())
    return RankedTensorType::get(to.getShape(), element);
  if (from.getRank() != to.getRank()) {
    contradiction = true;
    return RankedTensorType::get(to.getShape(), element);
  }
  SmallVector<int64_t> shape;
  for (auto [old, now] : llvm::zip(from.getShape(), to.getShape())) {
    contradiction |= !ShapedType::isDynamic(old) &&
                     !ShapedType::isDynamic(now) && old != now;
    shape.push_back(ShapedType::isDynamic(now) ? old : now);
  }
  return RankedTensorType::get(shape, element);
}

/// Whether both are tensors of known element types that differ.
bool haveDifferentElements(Type a, Type b) {
  auto left = dyn_cast_or_null<TensorType>(a);
  auto right = dyn_cast_or_null<TensorType>(b);
  return left && right && left.getElementType() != right.getElementType() &&
         !isa<onnx::UnknownType>(left.getElementType()) &&
         !isa<onnx::UnknownType>(right.getElementType());
}

Type getElementType(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

//===----------------------------------------------------------------------===//
// Beyond the schemas
//===----------------------------------------------------------------------===//

class Inference {
public:
  /// While the body of a loop is inferred with types that may not be those of
  /// all iterations, `isGuess`, nothing but types may change.
  explicit Inference(unsigned retries = 0, bool isGuess = false)
      : retries(retries), isGuess(isGuess) {}
  ~Inference() {
    for (Operation *op : dead)
      op->dropAllReferences();
    for (Operation *op : dead)
      op->destroy();
  }
  LogicalResult run(Block &block) { return run(block, block.begin()); }
  LogicalResult boxResults(Operation *terminator,
                           SmallVectorImpl<int64_t> &boxed);

private:
  LogicalResult run(Block &block, Block::iterator begin);
  LogicalResult runOp(Operation *op);
  void foldKnown(Operation *op);
  LogicalResult runBranches(onnx::IfOp op);
  bool runBranch(Block &branch, Block::iterator begin,
                 std::optional<std::pair<Location, std::string>> &error);
  LogicalResult
  settleBranches(onnx::IfOp op,
                 ArrayRef<std::pair<Location, std::string>> errors);
  FailureOr<bool> pullIntoBranches(Operation *op);
  Operation *openLoop(onnx::LoopOp op);
  bool isEmptySequence(Value value);
  Type inferInserted(onnx::SequenceInsertOp op);
  bool takeBranch(onnx::IfOp op);
  LogicalResult runGraphs(Operation *op);
  bool enterLoop(onnx::LoopOp op);
  void enterScan(onnx::ScanOp op);
  Type inferReshape(onnx::ReshapeOp op);
  Type inferExpand(onnx::ExpandOp op);
  Type inferSlice(onnx::SliceOp op);
  Type inferFromShape(Value shape, Type element);
  Type inferMore(Operation *op, unsigned index);
  Type inferReduction(Operation *op);
  Type inferYielded(Operation *op, unsigned index);
  LogicalResult inferFromGraphs(Operation *op, SmallVectorImpl<Type> &types);

  // A body that changes the types of what it carries is gone through several
  // times, and so are those in it each time: but for so many, bodies are gone
  // through once.
  static constexpr unsigned maxRetries = 3;

  ShapeEvaluator evaluator;
  unsigned retries; // of the bodies around this one
  const bool isGuess;
  OpenRanks openRanks;
  // Operations that were replaced: what the evaluator remembers is keyed by
  // their values.
  SmallVector<Operation *> dead;
  DenseSet<Block *> skipped; // branches that a guess cannot be sure of
  DenseSet<Value> empty;     // sequences that nothing has been put into yet
};

/// A tensor whose shape is the value of `shape`.
Type Inference::inferFromShape(Value shape, Type element) {
  auto elements = evaluator.evaluate(shape);
  if (!elements || !element)
    return {};
  SmallVector<int64_t> sizes;
  for (ShapeElement size : *elements)
    sizes.push_back(size.isKnown() && size.isNonNegative()
                        ? size.value
                        : ShapedType::kDynamic);
  return RankedTensorType::get(sizes, element);
}

Type Inference::inferReshape(onnx::ReshapeOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  if (!elements || !getElementType(op.getData()))
    return {};
  auto data = dyn_cast<RankedTensorType>(op.getData().getType());
  SmallVector<int64_t> sizes;
  ShapeElement rest = ShapeElement::known(1);
  int64_t open = -1, unknown = 0;
  for (auto [i, size] : llvm::enumerate(*elements)) {
    if (size.isKnown(0) && !op.getAllowzero())
      size = evaluator.getDim(op.getData(), i);
    bool known = size.isKnown() && size.value >= 0;
    sizes.push_back(known ? size.value : ShapedType::kDynamic);
    if (known || size.isSymbolic()) {
      rest = multiply(rest, size);
    } else {
      open = i;
      ++unknown;
    }
  }
  // The number of elements stays, so a single unknown size is what is left.
  if (unknown == 1 && data) {
    auto left = divideExactly(evaluator.getNumElements(op.getData()), rest);
    if (left && left->isKnown())
      sizes[open] = left->value;
  }
  return RankedTensorType::get(sizes, getElementType(op.getData()));
}

Type Inference::inferExpand(onnx::ExpandOp op) {
  auto elements = evaluator.evaluate(op.getShape());
  auto input = dyn_cast<RankedTensorType>(op.getInput().getType());
  if (!elements || !input)
    return {};
  int64_t rank = std::max<int64_t>(elements->size(), input.getRank());
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t fromInput = i - (rank - input.getRank());
    int64_t fromShape = i - (rank - static_cast<int64_t>(elements->size()));
    int64_t a = fromInput < 0 ? 1 : input.getDimSize(fromInput);
    ShapeElement b =
        fromShape < 0 ? ShapeElement::known(1) : (*elements)[fromShape];
    if (b.isKnown(1))
      sizes.push_back(a);
    else if (b.isKnown() && b.value >= 0)
      sizes.push_back(b.value);
    else if (!ShapedType::isDynamic(a) && a != 1)
      sizes.push_back(a);
    else
      sizes.push_back(ShapedType::kDynamic);
  }
  return RankedTensorType::get(sizes, input.getElementType());
}

/// Dimensions that are not sliced stay.
Type Inference::inferSlice(onnx::SliceOp op) {
  auto data = dyn_cast<RankedTensorType>(op.getData().getType());
  auto axes = op.getAxes() ? evaluator.evaluate(op.getAxes()) : std::nullopt;
  if (!data || !axes)
    return {};
  SmallVector<int64_t> sizes(data.getShape());
  for (const ShapeElement &axis : *axes) {
    int64_t at = axis.value < 0 ? axis.value + data.getRank() : axis.value;
    if (!axis.isKnown() || at < 0 || at >= data.getRank())
      return {};
    sizes[at] = ShapedType::kDynamic;
  }
  return RankedTensorType::get(sizes, data.getElementType());
}

/// Which axes are reduced may be known at run time only, but how many isn't.
Type Inference::inferReduction(Operation *op) {
  auto data = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto axes = op->getNumOperands() > 1
                  ? dyn_cast<RankedTensorType>(op->getOperand(1).getType())
                  : RankedTensorType();
  auto keep = op->getAttrOfType<IntegerAttr>("keepdims");
  if (!data)
    return {};
  int64_t rank = data.getRank();
  if (keep && keep.getValue().isZero()) {
    if (!axes || !axes.hasStaticShape() || axes.getNumElements() > rank)
      return {};
    // No axes are all of them, or none.
    auto noop = op->getAttrOfType<IntegerAttr>("noop_with_empty_axes");
    if (axes.getNumElements() > 0)
      rank -= axes.getNumElements();
    else if (!noop || noop.getValue().isZero())
      rank = 0;
  }
  return RankedTensorType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic),
                               data.getElementType());
}

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

Type Inference::inferMore(Operation *op, unsigned index) {
  if (auto reshape = dyn_cast<onnx::ReshapeOp>(op))
    return inferReshape(reshape);
  if (auto expand = dyn_cast<onnx::ExpandOp>(op))
    return inferExpand(expand);
  if (auto slice = dyn_cast<onnx::SliceOp>(op))
    return inferSlice(slice);
  if (auto insert = dyn_cast<onnx::SequenceInsertOp>(op))
    return inferInserted(insert);
  if (auto split = dyn_cast<onnx::SplitOp>(op))
    return inferSplit(split);
  if (isa<onnx::PadOp, onnx::SqueezeOp, onnx::UnsqueezeOp>(op))
    return inferAxes(op);
  if (isa<onnx::MelWeightMatrixOp>(op))
    if (Type element = getElementType(op->getResult(index)))
      return RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                                   element);
  if (auto product = dyn_cast<onnx::MSMatMulNBitsOp>(op))
    if (auto rows = dyn_cast<RankedTensorType>(product.getA().getType());
        rows && rows.getRank() > 0) {
      SmallVector<int64_t> shape(rows.getShape());
      int64_t columns = product.getN();
      shape.back() = columns > 0 ? columns : ShapedType::kDynamic;
      return rows.clone(shape);
    }
  if (isa<onnx::GroupNormalizationOp>(op)) // The schema infers nothing.
    return op->getOperand(0).getType();
  if (op->hasTrait<onnx::Reduces>())
    return inferReduction(op);
  if (auto filled = dyn_cast<onnx::ConstantOfShapeOp>(op)) {
    Type element = Float32Type::get(op->getContext());
    if (ElementsAttr value = filled.getValueAttr())
      element = value.getShapedType().getElementType();
    return inferFromShape(filled.getInput(), element);
  }
  return inferYielded(op, index);
}

/// Whether a sequence is one that nothing has been put into, of which the type
/// of its tensors says nothing.
bool Inference::isEmptySequence(Value value) {
  if (auto identity = value.getDefiningOp<onnx::IdentityOp>())
    return isEmptySequence(identity.getInput());
  return value.getDefiningOp<onnx::SequenceEmptyOp>() || empty.contains(value);
}

/// The first tensor in a sequence says what is in it.
Type Inference::inferInserted(onnx::SequenceInsertOp op) {
  Type sequence = op.getInputSequence().getType();
  Type tensor = op.getTensor().getType();
  if (!isa<TensorType>(tensor))
    return {};
  if (isEmptySequence(op.getInputSequence()))
    return onnx::SeqType::get(tensor);
  auto held = dyn_cast<onnx::SeqType>(sequence);
  Type joined = held ? joinOnnxTypes(held.getElementType(), tensor) : Type();
  return joined ? onnx::SeqType::get(joined) : Type();
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

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

LogicalResult Inference::runOp(Operation *op) {
  if (failed(runGraphs(op)))
    return failure();
  auto interface = dyn_cast<onnx::ONNXOpInterface>(op);
  auto custom = dyn_cast<onnx::CustomOp>(op);
  if (!interface && !custom)
    return success();
  SmallVector<Type> types;
  if (custom) {
    if (failed(onnx::inferCustomTypes(op, types)))
      return failure();
  } else if (auto constant = dyn_cast<onnx::ConstantOp>(op)) {
    // Its value says it all; the bytes, which need not be at hand, are no
    // matter.
    SmallVector<OpFoldResult> value;
    if (succeeded(constant->fold(value)))
      types.push_back(
          cast<TypedAttr>(cast<Attribute>(value.front())).getType());
  } else if (failed(inferFromGraphs(op, types)) &&
             failed(interface.inferOnnxTypes(types))) {
    return failure();
  }
  if (types.size() != op->getNumResults())
    return op->emitOpError("has ")
           << op->getNumResults() << " results, but type inference knows "
           << types.size() << ".";
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Type declared = result.getType();
    bool contradiction = false, ours = false;
    // Lowerings compute in the type of the result; that of the schema counts.
    if (haveDifferentElements(declared, types[i]))
      return op->emitOpError("result ") << i << " is declared as " << declared
                                        << ", but is " << types[i] << ".";
    Type type = refine(declared, types[i], contradiction);
    // The schemas' inference may have seen less than is known here, but what
    // both know is the same; a constant target that doesn't fit its data is an
    // error of the model that the schema's inference has reported.
    type = refine(type, inferMore(op, i), ours);
    if (contradiction)
      op->emitWarning() << "result " << i << " is declared as " << declared
                        << ", but follows from the inputs as " << type
                        << "; the latter is taken.";
    result.setType(type);
    evaluator.refineType(cast<OpResult>(result));
  }
  if (!isGuess)
    foldKnown(op);
  return success();
}

/// Results whose elements are all known become constants, which the schemas'
/// inference can read.
void Inference::foldKnown(Operation *op) {
  if (isa<onnx::ConstantOp>(op) || op->getNumRegions() != 0 || !isPure(op))
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    const ShapeTensor *tensor =
        type && !result.use_empty() ? evaluator.getTensor(result) : nullptr;
    DenseElementsAttr value =
        tensor ? getKnownElements(type, tensor->elements) : DenseElementsAttr();
    if (value)
      result.replaceAllUsesWith(
          onnx::createConstant(builder, op->getLoc(), value));
  }
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

LogicalResult Inference::run(Block &block, Block::iterator begin) {
  for (auto it = begin; it != block.end();) {
    bool isFirst = it == block.begin();
    auto before = isFirst ? it : std::prev(it);
    auto conditional = dyn_cast<onnx::IfOp>(*it);
    if (conditional && takeBranch(conditional)) {
      it = isFirst ? block.begin() : std::next(before);
      continue;
    }
    Operation *op = &*it++;
    FailureOr<bool> isGone = pullIntoBranches(op);
    if (failed(isGone) || (!*isGone && failed(runOp(op))))
      return failure();
    if (auto loop = *isGone ? onnx::LoopOp() : dyn_cast<onnx::LoopOp>(op))
      if (Operation *first = openLoop(loop))
        it = first->getIterator();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

struct OnnxInferShapesPass
    : sardonyx::impl::OnnxInferShapesBase<OnnxInferShapesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Inference inference;
      for (Block &block : function.getBody())
        if (failed(inference.run(block)))
          return signalPassFailure();
      Operation *terminator = function.getBody().back().getTerminator();
      SmallVector<int64_t> boxed;
      if (failed(inference.boxResults(terminator, boxed)))
        return signalPassFailure();
      if (!boxed.empty())
        getOperation()->setAttr(kBoxedResultsAttr,
                                DenseI64ArrayAttr::get(&getContext(), boxed));
      function.setType(FunctionType::get(
          &getContext(), function.getBody().front().getArgumentTypes(),
          terminator->getOperandTypes()));
    }
  }
};
} // namespace
