//===- FormDispatches.cpp - Group compute operations into kernels ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups grow along the program: each operation tries to take in the groups of
// its producers, the nearest first. A group is always a contiguous run of its
// block, so that whether two may merge is a question about what lies between.
//
//===----------------------------------------------------------------------===//

#include "KernelGroup.h"
#include "Observed.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXFORMDISPATCHES
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// How far apart in a block two groups may be to be tried for a merge: bounds
/// the time for blocks of many thousands of operations.
constexpr unsigned kMaxDistance = 4096;

struct Group {
  SmallVector<Operation *> ops;
  unsigned order = 0; // of its last operation, as the block was
};

/// Cuts one block into groups.
class BlockGrouping {
public:
  BlockGrouping(Block &block, const sdx::FusionLimits &limits)
      : limits(limits) {
    SmallVector<Operation *> compute;
    for (Operation &op : block)
      if (isComputeOp(&op))
        compute.push_back(&op);
    for (auto [i, op] : llvm::enumerate(compute)) {
      groups.push_back(std::make_unique<Group>());
      groups.back()->ops.push_back(op);
      groups.back()->order = i;
      groupOf[op] = groups.back().get();
    }
    for (Eagerness eagerness :
         {Eagerness::Waits, Eagerness::AddsResults, Eagerness::TakesAll})
      for (Operation *op : compute)
        absorbProducers(op, eagerness);
  }

  /// The groups that are left, in no order.
  SmallVector<Group *> take() {
    SmallVector<Group *> left;
    for (auto &group : groups)
      if (!group->ops.empty())
        left.push_back(group.get());
    return left;
  }

private:
  Group *producerGroup(Value value) {
    Operation *op = value.getDefiningOp();
    return op ? groupOf.lookup(op) : nullptr;
  }

  /// What operations take in, in the order in which it is tried.
  enum class Eagerness {
    /// An epilogue of a product or convolution whose value others need as well
    /// makes the kernel write both: such an operation waits for a later one
    /// that takes it in (a row operation reads it for nothing).
    Waits,
    /// What makes larger numbers of such a kernel's bytes, to be reduced, still
    /// waits for the reduction, which reads bytes.
    AddsResults,
    TakesAll,
  };

  void absorbProducers(Operation *op, Eagerness eagerness) {
    Group *group = groupOf[op];
    SmallVector<Group *> producers;
    for (Value operand : op->getOperands()) {
      Group *producer = producerGroup(operand);
      if (producer && producer != group &&
          !llvm::is_contained(producers, producer))
        producers.push_back(producer);
    }
    llvm::sort(producers,
               [](Group *a, Group *b) { return a->order > b->order; });
    for (Group *producer : producers)
      if ((eagerness >= Eagerness::AddsResults || !addsResult(producer, op)) &&
          (eagerness >= Eagerness::TakesAll || !widensForRows(producer, op)))
        tryMerge(producer, group);
  }

  static bool isContraction(Group *group) {
    auto dense = dyn_cast<sdx::DenseOpInterface>(group->ops.front());
    return dense && dense.isContraction();
  }

  bool widensForRows(Group *producer, Operation *op) {
    auto bits = [](Value value) {
      return getElementTypeOrSelf(value).getIntOrFloatBitWidth();
    };
    if (!isContraction(producer) || !isElementwiseGeneric(op) ||
        !isReduced(op->getResult(0)))
      return false;
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return producerGroup(operand) == producer &&
             bits(operand) < bits(op->getResult(0));
    });
  }

  bool addsResult(Group *producer, Operation *op) {
    if (!isContraction(producer))
      return false;
    for (Value operand : op->getOperands())
      if (producerGroup(operand) == producer)
        for (Operation *user : operand.getUsers())
          if (user != op && groupOf.lookup(user) != producer &&
              !isObservation(user))
            return true;
    return false;
  }

  void tryMerge(Group *producer, Group *group) {
    SmallVector<Operation *> merged = producer->ops;
    merged.append(group->ops);
    if (!classifyGroup(merged, limits) || !moveTogether(producer, group))
      return;
    for (Operation *op : producer->ops)
      groupOf[op] = group;
    group->ops = std::move(merged);
    producer->ops.clear();
  }

  static bool usesAny(Operation *op, const DenseSet<Value> &values) {
    bool found = false;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        found |= values.contains(operand);
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found;
  }

  /// Moves `producer` right before `group`, and what lies between them and
  /// depends on `producer` behind `group`. False, and nothing is moved, where
  /// such an operation feeds `group` or has a side effect.
  bool moveTogether(Group *producer, Group *group) {
    DenseSet<Value> dependent;
    for (Operation *op : producer->ops)
      dependent.insert(op->result_begin(), op->result_end());
    DenseSet<Value> between;
    SmallVector<Operation *> late;
    DenseSet<Group *> lateGroups;
    unsigned distance = 0;
    for (Operation *op = producer->ops.back()->getNextNode();
         op != group->ops.front(); op = op->getNextNode()) {
      if (!op || ++distance > kMaxDistance)
        return false;
      Group *other = groupOf.lookup(op);
      // A group between moves as a whole or not at all.
      ArrayRef<Operation *> unit = op;
      if (other) {
        if (other->ops.front() != op)
          continue;
        unit = other->ops;
      }
      if (llvm::none_of(unit, [&](Operation *member) {
            return usesAny(member, dependent);
          }))
        continue;
      for (Operation *member : unit) {
        if ((!isMemoryEffectFree(member) && !isObservation(member)) ||
            member->hasTrait<OpTrait::IsTerminator>())
          return false;
        late.push_back(member);
        for (Value result : member->getResults()) {
          dependent.insert(result);
          between.insert(result);
        }
      }
    }
    for (Operation *op : group->ops)
      if (usesAny(op, between))
        return false;
    for (Operation *op : producer->ops)
      op->moveBefore(group->ops.front());
    Operation *last = group->ops.back();
    for (Operation *op : late) {
      op->moveAfter(last);
      last = op;
    }
    return true;
  }

  const sdx::FusionLimits limits;
  std::vector<std::unique_ptr<Group>> groups;
  DenseMap<Operation *, Group *> groupOf;
};

struct FormDispatchesPass
    : sardonyx::impl::SDXFormDispatchesBase<FormDispatchesPass> {
  void runOnOperation() override {
    // Sizes of results would tie what reads them to what makes them.
    RewritePatternSet patterns(&getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    rewriteGreedily(getOperation(), std::move(patterns));

    getOperation().walk([](sdx::ObserveOp op) { lookThroughMovement(op); });

    SymbolTable symbols(getOperation());
    unsigned number = 0;
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!isHostFunction(func))
        continue;
      const sdx::FusionLimits limits = sdx::getFusionLimits(func);
      dropUnreadLoops(func);
      dropEmptyResults(func);
      SmallVector<Block *> blocks;
      collectBlocks(func, blocks);
      // What only empty results were made of makes no kernel either.
      for (Block *block : llvm::reverse(blocks))
        eraseDeadOps(*block);
      for (Block *block : blocks) {
        BlockGrouping grouping(*block, limits);
        for (Group *group : grouping.take())
          outlineKernel(group->ops, *classifyGroup(group->ops, limits), symbols,
                        number++);
      }
      // What inner blocks read may be dead or filled in outer ones.
      for (Block *block : llvm::reverse(blocks))
        eraseDeadOps(*block);
      for (Block *block : blocks)
        outlineFills(*block, symbols, number);
      for (Block *block : llvm::reverse(blocks))
        eraseDeadOps(*block);
    }
  }

private:
  /// Numbers that are seen in any order are seen where they are made.
  static void lookThroughMovement(sdx::ObserveOp op) {
    while (Operation *def = op.getValue().getDefiningOp()) {
      if (!op.isUnordered() ||
          !isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
               linalg::TransposeOp>(def))
        return;
      op.getValueMutable().set(def->getOperand(0));
    }
  }

  /// A tensor that certainly has no elements needs no kernel: it is the
  /// destination, as it is.
  static void dropEmptyResults(func::FuncOp func) {
    func.walk([](DestinationStyleOpInterface op) {
      if (!isa<linalg::FillOp>(op) && !isComputeOp(op))
        return;
      for (OpResult result : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        Value destination = op.getTiedOpOperand(result)->get();
        if (type && llvm::is_contained(type.getShape(), 0) &&
            destination.getType() == type)
          result.replaceAllUsesWith(destination);
      }
      if (isOpTriviallyDead(op))
        op.erase();
    });
  }

  /// The blocks that run on the host: the function's, and those of control
  /// flow in it.
  static void collectBlocks(Operation *parent, SmallVector<Block *> &blocks) {
    for (Region &region : parent->getRegions())
      for (Block &block : region) {
        blocks.push_back(&block);
        for (Operation &op : block)
          if (isa<scf::SCFDialect>(op.getDialect()) && !isComputeOp(&op))
            collectBlocks(&op, blocks);
      }
  }

  /// Fills are cloned into the kernels that read them; what is left is read by
  /// the host (a slice is inserted into it, it is returned, ...).
  static void outlineFills(Block &block, SymbolTable &symbols,
                           unsigned &number) {
    for (auto fill : llvm::to_vector(block.getOps<linalg::FillOp>()))
      if (fill->getNumResults())
        outlineKernel(fill.getOperation(), GroupKind::Single, symbols,
                      number++);
  }

  static void eraseDeadOps(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  /// Drops loops that have lost all results, as nobody reads them. The checks
  /// that are left in them are not made, like those of any value that nobody
  /// reads.
  static void dropUnreadLoops(func::FuncOp func) {
    func.walk([](scf::ForallOp loop) {
      if (loop->getNumResults() == 0)
        loop.erase();
    });
  }
};

} // namespace
