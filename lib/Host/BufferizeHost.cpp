//===- BufferizeHost.cpp - Bufferize the host functions ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXBUFFERIZEHOST
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

void sardonyx::registerHostBufferization(DialectRegistry &registry) {
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  cf::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  registerSDXBufferization(registry);
}

static MemRefType bufferOf(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// Tensor arguments become memrefs that are only read. Each operation that
/// reads one sees a tensor of its own: nothing is ever written to it, and to
/// the analysis, whose questions go through all that may be the same memory,
/// they have nothing to do with each other.
static void convertArguments(func::FuncOp func) {
  Block &entry = func.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    argument.setType(bufferOf(type));
    llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : argument.getUses())
      uses[use.getOwner()].push_back(&use);
    for (auto &[user, operands] : uses) {
      Value tensor = bufferization::ToTensorOp::create(
          b, argument.getLoc(), type, argument, /*restrict=*/true);
      for (OpOperand *operand : operands)
        operand->set(tensor);
    }
  }
  func.setFunctionType(
      b.getFunctionType(entry.getArgumentTypes(), func.getResultTypes()));
}

/// Moves an operation to where its operands in the same block are known.
static void hoist(Operation *op) {
  Operation *after = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() &&
        (!after || after->isBeforeInBlock(def)))
      after = def;
  }
  if (after)
    op->moveAfter(after);
  else
    op->moveBefore(&op->getBlock()->front());
}

/// Moves the computation of a scalar, or of an empty tensor, to where its
/// operands are known, and theirs. `moved` keeps what is in place already:
/// shape arithmetic shares a lot.
static void hoistCheap(Value value, llvm::SmallPtrSetImpl<Operation *> &moved) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isMemoryEffectFree(op) ||
      (isa<ShapedType>(value.getType()) && !isa<tensor::EmptyOp>(op)) ||
      !moved.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    hoistCheap(operand, moved);
  hoist(op);
}

/// Puts each slice into its place as soon as it is known: the next one may then
/// be made in its place.
static void hoistInsertions(func::FuncOp func) {
  llvm::SmallPtrSet<Operation *, 16> moved;
  func.walk([&](tensor::InsertSliceOp op) {
    for (Value operand : llvm::drop_begin(op->getOperands()))
      hoistCheap(operand, moved);
    hoist(op);
  });
}

namespace {

/// Writes the results of a host function to output buffers.
class Outputs {
public:
  explicit Outputs(func::FuncOp func)
      : func(func),
        ret(cast<func::ReturnOp>(func.getBody().front().getTerminator())) {}

  LogicalResult write() {
    for (Value value : ret.getOperands())
      if (!isa<RankedTensorType>(value.getType()))
        return ret.emitOpError("returns ")
               << value.getType() << "; a host function returns ranked "
               << "tensors only";
    addSizes();
    for (auto [i, sizes] : llvm::enumerate(allSizes))
      writeResult(i, sizes);
    keepResults();
    ret->setOperands({});
    func.setFunctionType(FunctionType::get(
        func.getContext(), func.getArgumentTypes(), TypeRange()));
    return success();
  }

private:
  /// What the function's results were: their types and attributes move to
  /// `sdx.results`.
  void keepResults() {
    Builder b(func.getContext());
    SmallVector<Attribute> described;
    for (auto [i, type] : llvm::enumerate(ret.getOperandTypes())) {
      NamedAttrList attrs(func.getResultAttrDict(i));
      attrs.set("sdx.type", TypeAttr::get(type));
      described.push_back(attrs.getDictionary(func.getContext()));
    }
    func->setAttr(sdx::kResultsAttr, b.getArrayAttr(described));
    func.removeResAttrsAttr();
  }

  /// The sizes of the results' dynamic dimensions, in terms of what is known
  /// as early as possible.
  void addSizes() {
    OpBuilder b(ret);
    SmallVector<Value> dims;
    for (Value value : ret.getOperands())
      dims.append(tensor::createDynamicDimValues(b, ret.getLoc(), value));
    // Hold the sizes as operands while patterns replace them.
    unsigned count = ret.getNumOperands();
    ret.getOperandsMutable().append(dims);
    RewritePatternSet patterns(func.getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, func.getContext());
    affine::AffineApplyOp::getCanonicalizationPatterns(patterns,
                                                       func.getContext());
    rewriteGreedily(func, std::move(patterns));
    unsigned next = count;
    for (unsigned i = 0; i < count; ++i) {
      auto type = cast<RankedTensorType>(ret.getOperand(i).getType());
      SmallVector<Value> sizes;
      for (int64_t d = 0; d < type.getNumDynamicDims(); ++d)
        sizes.push_back(ret.getOperand(next++));
      allSizes.push_back(sizes);
    }
    ret.getOperandsMutable().erase(count, next - count);
  }

  void writeResult(unsigned i, ArrayRef<Value> sizes) {
    Value value = ret.getOperand(i);
    OpBuilder b(func.getContext());
    Operation *after = nullptr;
    for (Value size : sizes) {
      hoistCheap(size, hoisted);
      Operation *def = size.getDefiningOp();
      if (def && (!after || after->isBeforeInBlock(def)))
        after = def;
    }
    if (after)
      b.setInsertionPointAfter(after);
    else
      b.setInsertionPointToStart(&func.getBody().front());
    Location loc = ret.getLoc();
    Value buffer = sdx::OutputBufferOp::create(
        b, loc, bufferOf(cast<RankedTensorType>(value.getType())), i, sizes);
    // A result that is a view of another tensor: write that, through the
    // inverse view of the buffer, so that its maker can write here.
    while (Operation *view = value.getDefiningOp()) {
      Value source;
      if (auto expand = dyn_cast<tensor::ExpandShapeOp>(view)) {
        source = expand.getSrc();
        buffer = memref::CollapseShapeOp::create(
            b, loc, buffer, expand.getReassociationIndices());
      } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(view)) {
        source = collapse.getSrc();
        auto type = cast<RankedTensorType>(source.getType());
        if (!type.hasStaticShape())
          break;
        buffer = memref::ExpandShapeOp::create(
            b, loc, bufferOf(type), buffer, collapse.getReassociationIndices());
      } else {
        break;
      }
      value = source;
    }
    keepFromWriters(value);
    b.setInsertionPoint(ret);
    bufferization::MaterializeInDestinationOp::create(b, loc, Type(), value,
                                                      buffer, /*restrict=*/true,
                                                      /*writable=*/true);
  }

  /// A result must not change once it is made: what would write into its
  /// memory gets a copy. Bufferization takes any write on the way to an output
  /// buffer for a part of what is written there.
  static void keepFromWriters(Value result) {
    for (OpOperand *use : findWriters(result)) {
      OpBuilder b(use->getOwner());
      auto type = cast<RankedTensorType>(use->get().getType());
      use->set(bufferization::AllocTensorOp::create(
          b, use->getOwner()->getLoc(), type, ValueRange(), use->get()));
    }
  }

  func::FuncOp func;
  func::ReturnOp ret;
  SmallVector<SmallVector<Value>> allSizes;
  llvm::SmallPtrSet<Operation *, 16> hoisted;
};

} // namespace

/// True if `value` is `argument` with elements written over: it will be made
/// in the argument's memory.
static bool isMadeIn(Value value, Value argument) {
  while (value != argument) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return false;
    Operation *op = result.getOwner();
    unsigned index = result.getResultNumber();
    if (auto insert = dyn_cast<tensor::InsertOp>(op)) {
      value = insert.getDest();
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      value = insert.getDest();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (!isMadeIn(loop.getYieldedValues()[index],
                    loop.getRegionIterArg(index)))
        return false;
      value = loop.getInitArgs()[index];
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      return llvm::all_of(op->getRegions(), [&](Region &region) {
        return isMadeIn(region.front().getTerminator()->getOperand(index),
                        argument);
      });
    } else {
      return false;
    }
  }
  return true;
}

/// The tensors whose memory `value` may turn out to be.
static void collectOrigins(Value value,
                           llvm::SmallPtrSetImpl<void *> &origins) {
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!isa<TensorType>(next.getType()) ||
        !origins.insert(next.getAsOpaquePointer()).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || isa<sdx::CallOp, sdx::RuntimeCallOp>(op))
      continue;
    llvm::append_range(work, op->getOperands());
    for (Region &region : op->getRegions())
      if (!region.empty())
        llvm::append_range(work, region.back().getTerminator()->getOperands());
  }
}

/// What a loop yields goes into the memory of its iteration argument, so that
/// no iteration allocates. Sizes that may change from one iteration to the
/// next are left to new memory, and so are arguments that a value of the next
/// iteration may be a view of: they are still needed when that is there.
static void yieldInto(Block::BlockArgListType arguments, scf::YieldOp yield) {
  llvm::SmallPtrSet<void *, 16> origins;
  SmallVector<bool> made;
  for (auto [argument, value] : llvm::zip(arguments, yield.getOperands())) {
    made.push_back(isa<RankedTensorType>(argument.getType()) &&
                   isMadeIn(value, argument));
    if (!made.back())
      collectOrigins(value, origins);
  }
  OpBuilder b(yield);
  for (auto [argument, operand, inPlace] :
       llvm::zip(arguments, yield->getOpOperands(), made)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() || inPlace ||
        origins.contains(argument.getAsOpaquePointer()))
      continue;
    operand.set(bufferization::MaterializeInDestinationOp::create(
                    b, yield.getLoc(), type, operand.get(), argument)
                    .getResult());
  }
}

static void yieldInPlace(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      yieldInto(loop.getRegionIterArgs(),
                cast<scf::YieldOp>(loop.getBody()->getTerminator()));
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      if (llvm::equal(loop.getConditionOp().getArgs(),
                      loop.getBeforeArguments()))
        yieldInto(loop.getAfterArguments(), loop.getYieldOp());
  });
}

/// A tensor that loops write elements of, hundreds of them in turn (scatters),
/// is copied now and then: for each the analysis looks at all that came before
/// in the same memory.
static void breakChains(Block &block) {
  constexpr unsigned longest = 32;
  llvm::DenseMap<Value, unsigned> lengths; // of the chain that ends in a value
  for (auto loop : block.getOps<scf::ForOp>())
    for (auto [init, result] :
         llvm::zip(loop.getInitArgsMutable(), loop.getResults())) {
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      if (!type)
        continue;
      unsigned length = lengths.lookup(init.get()) + 1;
      if (length > longest) {
        OpBuilder b(loop);
        init.set(bufferization::AllocTensorOp::create(
            b, loop.getLoc(), type, ValueRange(), init.get()));
        length = 1;
      }
      lengths[result] = length;
    }
}

/// Each use of an empty tensor is a destination of its own.
static void splitEmptyTensors(func::FuncOp func) {
  SmallVector<tensor::EmptyOp> empties;
  func.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (tensor::EmptyOp op : empties) {
    if (op->use_empty())
      continue;
    OpBuilder b(op);
    for (OpOperand &use :
         llvm::make_early_inc_range(llvm::drop_begin(op->getUses())))
      use.set(b.clone(*op)->getResult(0));
  }
}

/// The output buffer that `buffer` is all of, in whatever shape; else null.
static sdx::OutputBufferOp wholeOutput(Value buffer) {
  while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp,
                         memref::CastOp>(buffer.getDefiningOp()))
    buffer = buffer.getDefiningOp()->getOperand(0);
  return buffer.getDefiningOp<sdx::OutputBufferOp>();
}

/// Kernels do not write to strided slices: only memory that is asked for as a
/// whole replaces an empty tensor.
static Value destinationInsteadOf(RewriterBase &rewriter,
                                  SubsetInsertionOpInterface op,
                                  tensor::EmptyOp empty, Operation *user) {
  auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(*op);
  // A tensor there is a loop's argument.
  if (!write || (!isa<TensorType>(write.getDest().getType()) &&
                 !wholeOutput(write.getDest())))
    return {};
  return bufferization::buildSubsetExtraction(rewriter, op, empty, user);
}

/// False where the analysis sees no way: a value must be made in place and
/// can't be.
static bool chooseInPlace(func::FuncOp func,
                          bufferization::OneShotBufferizationOptions &options) {
  // Whoever calls has another way.
  ScopedDiagnosticHandler quiet(func.getContext(),
                                [](Diagnostic &) { return success(); });
  IRRewriter rewriter(func.getContext());
  bufferization::OneShotAnalysisState state(func, options);
  return succeeded(bufferization::analyzeOp(func, state)) &&
         succeeded(bufferization::eliminateEmptyTensors(rewriter, func, state,
                                                        destinationInsteadOf));
}

/// What yieldInPlace does.
static void undoYieldInPlace(func::FuncOp func) {
  func.walk([](bufferization::MaterializeInDestinationOp op) {
    if (op->getNumResults() == 0)
      return;
    op->getResult(0).replaceAllUsesWith(op.getSource());
    op.erase();
  });
}

static LogicalResult bufferize(func::FuncOp func) {
  bufferization::OneShotBufferizationOptions options;
  options.allowReturnAllocsFromLoops = true;
  if (!chooseInPlace(func, options)) {
    undoYieldInPlace(func);
    // The last resort copies everything before it is written to.
    options.copyBeforeWrite = !chooseInPlace(func, options);
  }
  bufferization::BufferizationState state;
  return bufferization::runOneShotBufferize(func, options, state);
}

/// Folds what bufferization leaves: copies of a buffer onto itself, sizes of
/// buffers just made, casts.
static void cleanUp(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (isa<memref::MemRefDialect, bufferization::BufferizationDialect,
            scf::SCFDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, context);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  rewriteGreedily(func, frozen);
  // The same view made twice, and then copied onto itself.
  IRRewriter rewriter(context);
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
  rewriteGreedily(func, frozen);
}

/// The memory that `buffer` is a view of.
static Value viewedMemory(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

/// The copies at the function's end that put whole results into their output
/// buffers. Others there, which write parts of a buffer or what parts are then
/// written over, are steps of how a result is made.
static SmallVector<memref::CopyOp> findResultCopies(func::FuncOp func) {
  SmallVector<memref::CopyOp> found;
  llvm::SmallPtrSet<Operation *, 8> written;
  Operation *ret = func.getBody().front().getTerminator();
  for (Operation *op = ret->getPrevNode(); op; op = op->getPrevNode()) {
    auto copy = dyn_cast<memref::CopyOp>(op);
    if (!copy && isMemoryEffectFree(op))
      continue;
    Operation *output = copy ? wholeOutput(copy.getTarget()) : nullptr;
    if (!output || !written.insert(output).second)
      break;
    found.insert(found.begin(), copy);
  }
  return found;
}

/// Copies results to their buffers in an order in which no copy overwrites what
/// a later one reads: what two results are made of may lie in the buffer of one
/// of them, where the other result was then made.
static void orderResultCopies(func::FuncOp func) {
  Operation *ret = func.getBody().front().getTerminator();
  SmallVector<memref::CopyOp> left = findResultCopies(func);
  auto isRead = [&](Value memory, memref::CopyOp by) {
    return llvm::any_of(left, [&](memref::CopyOp other) {
      return other != by && viewedMemory(other.getSource()) == memory;
    });
  };
  while (!left.empty()) {
    auto *next = llvm::find_if(left, [&](memref::CopyOp copy) {
      return !isRead(viewedMemory(copy.getTarget()), copy);
    });
    if (next == left.end()) {
      // Each reads what another one writes.
      next = left.begin();
      OpBuilder b(ret);
      Location loc = next->getLoc();
      Value source = next->getSource();
      auto type = cast<MemRefType>(source.getType());
      SmallVector<Value> sizes;
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (type.isDynamicDim(d))
          sizes.push_back(memref::DimOp::create(b, loc, source, d));
      Value kept = memref::AllocOp::create(
          b, loc, MemRefType::get(type.getShape(), type.getElementType()),
          sizes);
      memref::CopyOp::create(b, loc, source, kept);
      next->getSourceMutable().assign(kept);
      continue;
    }
    (*next)->moveBefore(ret);
    left.erase(next);
  }
}

/// Calls `visit` with the operations of the same block that `op` needs.
static void forEachNeed(Operation *op,
                        llvm::function_ref<void(Operation *)> visit) {
  Block *block = op->getBlock();
  op->walk([&](Operation *part) {
    for (Value operand : part->getOperands())
      if (Operation *def = operand.getDefiningOp())
        if (Operation *here = block->findAncestorOpInBlock(*def))
          if (here != op)
            visit(here);
  });
}

/// Moves checks, and what they need, before everything else in their block: on
/// tensors the order of other ops means nothing and may be any, but no copy or
/// kernel may run on sizes that a check refuses. Those that only compute with
/// sizes go first. Each check stands before what only later ones need: it may
/// be what allows to read that.
static void hoistChecks(Block &block) {
  if (block.getOps<sdx::CheckOp>().empty())
    return;
  // Definitions come before uses, so that one pass forwards tells what is made
  // of sizes only.
  llvm::SmallPtrSet<Operation *, 16> onSizes;
  for (Operation &op : block) {
    bool only = isa<sdx::CheckOp, bufferization::ToTensorOp>(op) ||
                llvm::none_of(op.getResultTypes(), llvm::IsaPred<TensorType>);
    forEachNeed(&op, [&](Operation *need) { only &= onSizes.contains(need); });
    if (only)
      onSizes.insert(&op);
  }
  llvm::SetVector<Operation *> first;
  SmallVector<std::pair<Operation *, bool>> stack; // whether its needs are done
  auto take = [&](sdx::CheckOp check) {
    stack.push_back({check, false});
    while (!stack.empty()) {
      auto [op, complete] = stack.pop_back_val();
      if (complete) {
        first.insert(op);
        continue;
      }
      if (first.contains(op))
        continue;
      stack.push_back({op, true});
      forEachNeed(op, [&](Operation *need) { stack.push_back({need, false}); });
    }
  };
  for (bool wanted : {true, false})
    for (auto check : block.getOps<sdx::CheckOp>())
      if (onSizes.contains(check) == wanted)
        take(check);
  Operation *last = nullptr;
  for (Operation *op : first) {
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&block, block.begin());
    last = op;
  }
}

namespace {

struct BufferizeHostPass
    : sardonyx::impl::SDXBufferizeHostBase<BufferizeHostPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    SDXBufferizeHostBase::getDependentDialects(registry);
    registerHostBufferization(registry);
  }

  void runOnOperation() override {
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!isHostFunction(func))
        continue;
      if (!func.getBody().hasOneBlock()) {
        func.emitOpError("must be one block of structured control flow");
        return signalPassFailure();
      }
      if (failed(Outputs(func).write()))
        return signalPassFailure();
      reshapeReducedSlices(func);
      convertArguments(func);
      yieldInPlace(func);
      hoistInsertions(func);
      func.walk([](Block *block) { breakChains(*block); });
      splitEmptyTensors(func);
      func.walk([](Block *block) { hoistChecks(*block); });
      // Hides from SSA what a tensor is made of: nothing moves after this.
      assembleSlices(func);
      if (failed(bufferize(func)))
        return signalPassFailure();
      cleanUp(func);
      orderResultCopies(func);
      makeOperandsContiguous(func, isViewOfPlannable);
    }
  }
};

} // namespace
