//===- HoistConstants.cpp - Split @main_graph into @init and @main --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is constant if all that it is made of is. @init computes the
// constant values that others use, @main gets them as arguments. Elements of
// constants are never looked at, only their types.
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXHOISTCONSTANTS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Up to so many elements a constant stays where it is.
static constexpr int64_t kInlineElements = 16;
/// A constant computation whose result is this much larger than what it is
/// made of (and large at all) is repeated rather than kept.
static constexpr int64_t kMaxGrowth = 8;
static constexpr int64_t kLargeElements = 1 << 20;
/// Sines and the like take longer than what is kept of them takes to read: up
/// to so many are kept whatever they are made of.
static constexpr int64_t kMaxFunctions = 1 << 24;

static bool isLargeConstant(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant)
    return false;
  auto elements = dyn_cast<ElementsAttr>(constant.getValue());
  if (!elements || isa<SplatElementsAttr>(elements))
    return false;
  // LLVM has no arrays of constants wider than 64 bits.
  Type type = elements.getElementType();
  return elements.getNumElements() > kInlineElements ||
         (type.isInteger() && type.getIntOrFloatBitWidth() > 64);
}

/// Made again where it is needed rather than kept: costs nothing, or is folded
/// into kernels.
static bool isCheap(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return !isLargeConstant(op);
  if (isa<tensor::EmptyOp, linalg::FillOp, tensor::ExpandShapeOp,
          tensor::CollapseShapeOp, tensor::CastOp, tensor::FromElementsOp,
          tensor::DimOp, tensor::SplatOp>(op))
    return true;
  // Scalars: shape arithmetic.
  return op->getNumRegions() == 0 &&
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
}

static int64_t staticElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 0;
  return type.hasStaticShape() ? type.getNumElements() : 0;
}

static bool computesFunctions(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<math::CosOp, math::ExpOp, math::LogOp, math::PowFOp,
                   math::SinOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool growsTooMuch(Operation *op) {
  // Weights that runs read in the place of what they are made of, in bytes
  // maybe.
  auto dense = dyn_cast<sdx::DenseOpInterface>(op);
  if (dense && dense.replacesWeights())
    return false;
  int64_t made = 0, read = 0;
  for (Value result : op->getResults())
    made += staticElements(result);
  if (made <= kMaxFunctions && computesFunctions(op))
    return false;
  auto inputs = dyn_cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (!inputs || inputs.isDpsInput(&operand))
      read += staticElements(operand.get());
  for (Value value : capturedValues(op))
    read += staticElements(value);
  return made > kLargeElements &&
         made > kMaxGrowth * std::max<int64_t>(read, 1);
}

namespace {

class Splitter {
public:
  explicit Splitter(func::FuncOp graph)
      : graph(graph), builder(graph.getContext()) {}

  void run(ModuleOp module) {
    Block &body = graph.getBody().front();
    hoistOutOfRegions(body);
    splatsToFills(body);
    // What several products make of the same weights is made and kept once.
    mergeEqual(graph);
    findConstants(body);
    findBoundary(body);
    makeInit(module);
    rewriteMain();
  }

private:
  bool allConstant(Operation *op) {
    auto isKnown = [&](Value value) { return constant.contains(value); };
    return llvm::all_of(op->getOperands(), isKnown) &&
           llvm::all_of(capturedValues(op), isKnown);
  }

  static bool isPure(Operation *op) {
    return isMemoryEffectFree(op) && !op->hasTrait<OpTrait::IsTerminator>() &&
           !op->walk([](sdx::RuntimeCallOp) {
                return WalkResult::interrupt();
              }).wasInterrupted();
  }

  /// Moves what is constant and pure out of branches and loops.
  void hoistOutOfRegions(Block &body) {
    DenseSet<Value> known;
    for (Operation &top : llvm::make_early_inc_range(body)) {
      top.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (op != &top && isa<linalg::LinalgOp>(op->getParentOp()))
          return WalkResult::skip();
        // Loops of a kernel on elements compute on elements, too.
        if (op != &top && isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op) &&
            op->getParentOfType<scf::ForallOp>())
          return WalkResult::skip();
        bool dense = isComputeOp(op) || isa<linalg::FillOp>(op);
        if (!isPure(op) || !(dense || isSpeculatable(op)) ||
            !llvm::all_of(op->getOperands(),
                          [&](Value v) { return known.contains(v); }) ||
            !llvm::all_of(capturedValues(op),
                          [&](Value v) { return known.contains(v); }))
          return WalkResult::advance();
        known.insert(op->result_begin(), op->result_end());
        if (op != &top)
          op->moveBefore(&top);
        return WalkResult::skip();
      });
    }
  }

  /// A large splat is a fill, which kernels make for themselves.
  void splatsToFills(Block &body) {
    for (auto op :
         llvm::make_early_inc_range(body.getOps<arith::ConstantOp>())) {
      auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
      auto type = dyn_cast<RankedTensorType>(op.getType());
      if (!splat || !type || type.getNumElements() <= kInlineElements ||
          !isa<FloatType, IntegerType, IndexType>(type.getElementType()))
        continue;
      builder.setInsertionPoint(op);
      Value value = arith::ConstantOp::create(builder, op.getLoc(),
                                              splat.getSplatValue<TypedAttr>());
      Value empty = tensor::EmptyOp::create(
          builder, op.getLoc(), type.getShape(), type.getElementType());
      op.replaceAllUsesWith(
          linalg::FillOp::create(builder, op.getLoc(), value, empty)
              .getResult(0));
      op.erase();
    }
  }

  /// Whether nothing but a result of the graph is made, and of no tensor: kept,
  /// it would be copied at each run.
  static bool isMadeForResult(Operation *op) {
    auto isNumber = [](Value value) {
      return !isa<ShapedType>(value.getType()) ||
             value.getDefiningOp<tensor::EmptyOp>();
    };
    return isa<linalg::LinalgOp>(op) && !computesFunctions(op) &&
           llvm::all_of(op->getOperands(), isNumber) &&
           llvm::all_of(capturedValues(op), isNumber) &&
           llvm::all_of(op->getUsers(), llvm::IsaPred<func::ReturnOp>);
  }

  /// @init returns tensors only, so a loop that computes a scalar stays.
  void findConstants(Block &body) {
    auto isTensor = llvm::IsaPred<RankedTensorType>;
    for (Operation &op : body)
      if (isPure(&op) && allConstant(&op) &&
          (isCheap(&op) || (llvm::all_of(op.getResultTypes(), isTensor) &&
                            (isLargeConstant(&op) || !growsTooMuch(&op)) &&
                            !isMadeForResult(&op))))
        constant.insert(op.result_begin(), op.result_end());
  }

  /// Collects what @main needs of @init: constant values that are not cheap
  /// and have users that are not constant. Cheap ones are kept in @main,
  /// which may make their operands needed.
  void findBoundary(Block &body) {
    SmallVector<Value> worklist;
    for (Operation &op : body) {
      if (op.getNumResults() && llvm::all_of(op.getResults(), [&](Value v) {
            return constant.contains(v);
          }))
        continue;
      op.walk([&](Operation *nested) {
        worklist.append(nested->operand_begin(), nested->operand_end());
      });
    }
    DenseSet<Value> seen;
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (!constant.contains(value) || !seen.insert(value).second)
        continue;
      Operation *op = value.getDefiningOp();
      if (!isCheap(op)) {
        needed.insert(value);
        continue;
      }
      for (Value captured : capturedValues(op))
        worklist.push_back(captured);
      worklist.append(op->operand_begin(), op->operand_end());
    }
    // In program order, so that the result does not depend on the traversal.
    SmallVector<Value> ordered;
    for (Operation &op : body)
      for (Value result : op.getResults())
        if (needed.contains(result))
          ordered.push_back(result);
    needed = {};
    needed.insert(ordered.begin(), ordered.end());
  }

  /// A constant as an argument.
  static void describeConstant(func::FuncOp func, unsigned argument,
                               arith::ConstantOp op) {
    func.setArgAttr(argument, sdx::kConstantAttr, op.getValue());
    if (Attribute source = op->getAttr(sdx::kSourceAttr))
      func.setArgAttr(argument, sdx::kSourceAttr, source);
  }

  void makeInit(ModuleOp module) {
    SmallVector<Value> results;
    for (Value value : needed)
      if (!isLargeConstant(value.getDefiningOp()))
        results.push_back(value);
    // All that the results are made of.
    DenseSet<Operation *> slice;
    SmallVector<Value> worklist(results);
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val().getDefiningOp();
      if (!slice.insert(op).second)
        continue;
      worklist.append(op->operand_begin(), op->operand_end());
      for (Value captured : capturedValues(op))
        worklist.push_back(captured);
    }
    builder.setInsertionPoint(graph);
    auto init = func::FuncOp::create(
        builder, graph.getLoc(), "init",
        builder.getFunctionType({}, ValueRange(results).getTypes()));
    Block *entry = init.addEntryBlock();
    OpBuilder b = OpBuilder::atBlockEnd(entry);
    IRMapping mapping;
    for (Operation &op : graph.getBody().front()) {
      if (!slice.contains(&op))
        continue;
      if (!isLargeConstant(&op)) {
        b.clone(op, mapping);
        continue;
      }
      unsigned number = init.getNumArguments();
      (void)init.insertArgument(number, op.getResult(0).getType(), {},
                                op.getLoc());
      describeConstant(init, number, cast<arith::ConstantOp>(op));
      mapping.map(op.getResult(0), init.getArgument(number));
    }
    SmallVector<Value> returned;
    for (Value result : results)
      returned.push_back(mapping.lookup(result));
    func::ReturnOp::create(b, graph.getLoc(), returned);
  }

  void rewriteMain() {
    graph.setName("main");
    for (unsigned i = 0, e = graph.getNumArguments(); i < e; ++i)
      graph.setArgAttr(i, sdx::kInputAttr, builder.getI64IntegerAttr(i));
    int64_t persistent = 0;
    for (Value value : needed) {
      unsigned number = graph.getNumArguments();
      (void)graph.insertArgument(number, value.getType(), {}, value.getLoc());
      value.replaceAllUsesWith(graph.getArgument(number));
      auto op = dyn_cast<arith::ConstantOp>(value.getDefiningOp());
      if (op && isLargeConstant(op))
        describeConstant(graph, number, op);
      else
        graph.setArgAttr(number, sdx::kPersistentAttr,
                         builder.getI64IntegerAttr(persistent++));
    }
    Block &body = graph.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  func::FuncOp graph;
  OpBuilder builder;
  DenseSet<Value> constant;
  llvm::SetVector<Value> needed;
};

struct HoistConstantsPass
    : sardonyx::impl::SDXHoistConstantsBase<HoistConstantsPass> {
  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<func::FuncOp>("main_graph");
    if (!graph) {
      getOperation().emitError("has no function '@main_graph'");
      return signalPassFailure();
    }
    if (!graph.getBody().hasOneBlock()) {
      graph.emitOpError("must be one block of structured control flow");
      return signalPassFailure();
    }
    for (StringRef name : {"init", "main"})
      if (Operation *taken = getOperation().lookupSymbol(name)) {
        taken->emitOpError("has a name that the host program needs");
        return signalPassFailure();
      }
    Splitter(graph).run(getOperation());
  }
};

} // namespace
