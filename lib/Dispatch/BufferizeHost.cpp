//===- BufferizeHost.cpp - Bufferize the host functions ---------*- C++ -*-===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

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
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXBUFFERIZEHOST
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

void sardonyx::registerDispatchBufferization(DialectRegistry &registry) {
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

/// Tensor arguments become memrefs that are only read.
static void convertArguments(func::FuncOp func) {
  Block &entry = func.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  for (BlockArgument argument : entry.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    argument.setType(bufferOf(type));
    auto tensor =
        bufferization::ToTensorOp::create(b, argument.getLoc(), type, argument,
                                          /*restrict=*/true);
    argument.replaceAllUsesExcept(tensor, tensor);
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
    if (failed(addSizes()))
      return failure();
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
  LogicalResult addSizes() {
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
    if (failed(applyPatternsGreedily(func, std::move(patterns))))
      return failure();
    unsigned next = count;
    for (unsigned i = 0; i < count; ++i) {
      auto type = cast<RankedTensorType>(ret.getOperand(i).getType());
      SmallVector<Value> sizes;
      for (int64_t d = 0; d < type.getNumDynamicDims(); ++d)
        sizes.push_back(ret.getOperand(next++));
      allSizes.push_back(sizes);
    }
    ret.getOperandsMutable().erase(count, next - count);
    return success();
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
    b.setInsertionPoint(ret);
    bufferization::MaterializeInDestinationOp::create(b, loc, Type(), value,
                                                      buffer, /*restrict=*/true,
                                                      /*writable=*/true);
  }

  func::FuncOp func;
  func::ReturnOp ret;
  SmallVector<SmallVector<Value>> allSizes;
  llvm::SmallPtrSet<Operation *, 16> hoisted;
};

} // namespace

/// What a loop yields goes into the memory of its iteration argument, so that
/// no iteration allocates. Sizes that may change from one iteration to the
/// next are left to new memory, and so are arguments that the loop passes on
/// as they are: they are still needed when the new value is there.
static void yieldInPlace(func::FuncOp func) {
  func.walk([](scf::ForOp loop) {
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    OpBuilder b(yield);
    for (auto [argument, operand] :
         llvm::zip(loop.getRegionIterArgs(), yield->getOpOperands())) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || !type.hasStaticShape() ||
          llvm::is_contained(loop.getRegionIterArgs(), operand.get()) ||
          llvm::is_contained(yield.getOperands(), argument))
        continue;
      operand.set(bufferization::MaterializeInDestinationOp::create(
                      b, loop.getLoc(), type, operand.get(), argument)
                      .getResult());
    }
  });
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

/// The piece of a tensor that `op` overwrites is contiguous, and the tensor is
/// made by slices that are put into an empty one and is no result of the
/// function: the piece will have an address of its own.
static bool insertsIntoPlannable(tensor::InsertSliceOp op) {
  RankedTensorType whole = op.getDestType();
  if (!whole.hasStaticShape() || !op.getSourceType().hasStaticShape() ||
      !op.hasUnitStride())
    return false;
  bool partial = false; // an outer dimension already goes over several
  for (auto [size, full] : llvm::zip(op.getStaticSizes(), whole.getShape())) {
    if (ShapedType::isDynamic(size) || (partial && size != full))
      return false;
    partial |= size != 1;
  }
  Value dest = op.getDest();
  while (auto before = dest.getDefiningOp<tensor::InsertSliceOp>())
    dest = before.getDest();
  if (!dest.getDefiningOp<tensor::EmptyOp>())
    return false;
  Value result = op.getResult();
  while (result.hasOneUse()) {
    auto after = dyn_cast<tensor::InsertSliceOp>(*result.user_begin());
    if (!after || after.getDest() != result)
      break;
    result = after.getResult();
  }
  return llvm::none_of(
      result.getUsers(),
      llvm::IsaPred<bufferization::MaterializeInDestinationOp, scf::YieldOp>);
}

/// Kernels do not write to strided slices: only memory that is asked for as a
/// whole, or contiguous pieces, replace an empty tensor.
static Value destinationInsteadOf(RewriterBase &rewriter,
                                  SubsetInsertionOpInterface op,
                                  tensor::EmptyOp empty, Operation *user) {
  auto insert = dyn_cast<tensor::InsertSliceOp>(op.getOperation());
  if (!isa<bufferization::MaterializeInDestinationOp>(op) &&
      !(insert && insertsIntoPlannable(insert)))
    return {};
  return bufferization::buildSubsetExtraction(rewriter, op, empty, user);
}

static LogicalResult bufferize(func::FuncOp func) {
  bufferization::OneShotBufferizationOptions options;
  options.allowReturnAllocsFromLoops = true;
  IRRewriter rewriter(func.getContext());
  {
    // Where the analysis sees no way (a view that must not be copied of
    // something that is overwritten), everything is copied before a write.
    ScopedDiagnosticHandler quiet(func.getContext(),
                                  [](Diagnostic &) { return success(); });
    bufferization::OneShotAnalysisState state(func, options);
    if (failed(bufferization::analyzeOp(func, state)))
      options.copyBeforeWrite = true;
    else if (failed(bufferization::eliminateEmptyTensors(rewriter, func, state,
                                                         destinationInsteadOf)))
      return failure();
  }
  bufferization::BufferizationState state;
  return bufferization::runOneShotBufferize(func, options, state);
}

/// Folds what bufferization leaves: copies of a buffer onto itself, sizes of
/// buffers just made, casts.
static LogicalResult cleanUp(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (isa<memref::MemRefDialect, bufferization::BufferizationDialect,
            scf::SCFDialect>(op.getDialect()))
      op.getCanonicalizationPatterns(patterns, context);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  if (failed(applyPatternsGreedily(func, frozen)))
    return failure();
  // The same view made twice, and then copied onto itself.
  IRRewriter rewriter(context);
  DominanceInfo dominance(func);
  eliminateCommonSubExpressions(rewriter, dominance, func);
  return applyPatternsGreedily(func, frozen);
}

/// What `op` needs of its block, in no order.
static llvm::SetVector<Operation *> needsOf(Operation *op) {
  Block *block = op->getBlock();
  llvm::SetVector<Operation *> needs;
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    work.pop_back_val()->walk([&](Operation *part) {
      for (Value operand : part->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (Operation *here = block->findAncestorOpInBlock(*def))
            if (needs.insert(here))
              work.push_back(here);
    });
  }
  return needs;
}

/// Moves checks, and what they need, before everything else in their block: on
/// tensors the order of other ops means nothing and may be any, but no copy or
/// kernel may run on sizes that a check refuses. Those that only compute with
/// sizes go first. Each check stands before what only later ones need: it may
/// be what allows to read that.
static void hoistChecks(Block &block) {
  llvm::SetVector<Operation *> early[2];
  for (auto check : block.getOps<sdx::CheckOp>()) {
    SmallVector<Operation *> needs = needsOf(check).takeVector();
    bool onSizes = llvm::all_of(needs, [](Operation *op) {
      return isa<bufferization::ToTensorOp>(op) ||
             llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
    });
    llvm::sort(needs, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    early[onSizes ? 0 : 1].insert(needs.begin(), needs.end());
    early[onSizes ? 0 : 1].insert(check);
  }
  Operation *last = nullptr;
  for (llvm::SetVector<Operation *> &chosen : early)
    for (Operation *op : chosen) {
      if (&chosen == &early[1] && early[0].contains(op))
        continue;
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
    registerDispatchBufferization(registry);
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
      convertArguments(func);
      yieldInPlace(func);
      hoistInsertions(func);
      splitEmptyTensors(func);
      func.walk([](Block *block) { hoistChecks(*block); });
      if (failed(bufferize(func)) || failed(cleanUp(func)))
        return signalPassFailure();
      makeOperandsContiguous(func, isViewOfPlannable);
    }
  }
};

} // namespace
