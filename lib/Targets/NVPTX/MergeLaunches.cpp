//===- MergeLaunches.cpp - Start independent kernels together -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each start of a kernel costs time in which the device computes nothing.
// Kernels none of which reads or writes what another one writes, as products of
// one activation by several weights, become one kernel: some of its blocks are
// those of the first, the others of the next ones.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "MemoryUses.h"

#include "dialects/NV/NV.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

#include <map>

namespace sardonyx {
#define GEN_PASS_DEF_NVMERGELAUNCHES
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The most kernels that start together, and the most such starts, one after
/// the other, that a later kernel may still join.
static constexpr size_t kMostMerged = 8, kMostSteps = 16;
/// Blocks of a multiprocessor: a kernel with more of them keeps the device busy
/// for so long that its start does not count, and its registers are its own.
static constexpr int64_t kMostBlocks = 4;
/// Where a piece of shared memory begins, in bytes.
static constexpr int64_t kSharedAlignment = 128;

//===----------------------------------------------------------------------===//
// What can be merged
//===----------------------------------------------------------------------===//

/// The loops over blocks of a kernel whose code is nothing else, besides what
/// has no effect and memory of its own; none if there is more.
static SmallVector<scf::ParallelOp> findLoops(func::FuncOp kernel) {
  SmallVector<scf::ParallelOp> loops;
  if (kernel.isDeclaration() || !kernel->hasAttr(sdx::kKernelAttr))
    return {};
  for (Operation &op : kernel.front()) {
    if (auto loop = dyn_cast<scf::ParallelOp>(op)) {
      if (!loop->hasAttr(kThreadsAttr) || loop.getNumLoops() != 1 ||
          !isConstantIntValue(loop.getLowerBound()[0], 0) ||
          !isConstantIntValue(loop.getStep()[0], 1))
        return {};
      loops.push_back(loop);
    } else if (!isa<memref::AllocOp, memref::DeallocOp, func::ReturnOp>(op) &&
               !(isMemoryEffectFree(&op) && op.getNumRegions() == 0)) {
      return {};
    }
  }
  return loops;
}

/// Whether starts of the two are worth merging: of one kernel always, of others
/// where blocks are as large and none of them has many.
static bool canMerge(func::FuncOp one, func::FuncOp other) {
  SmallVector<scf::ParallelOp> loops = findLoops(one),
                               others = findLoops(other);
  if (loops.empty() || loops.size() != others.size())
    return false;
  if (one == other)
    return true;
  const int64_t most =
      kMostBlocks * getTargetOrDefault(one).countMultiprocessors();
  auto isShort = [&](scf::ParallelOp loop) {
    std::optional<int64_t> blocks =
        getConstantIntValue(loop.getUpperBound()[0]);
    return blocks && *blocks <= most;
  };
  for (auto [loop, with] : llvm::zip_equal(loops, others))
    if (loop->getAttr(kThreadsAttr) != with->getAttr(kThreadsAttr) ||
        loop->getAttr(kBlocksAttr) != with->getAttr(kBlocksAttr) ||
        loop->getAttr(kClusterAttr) != with->getAttr(kClusterAttr) ||
        !isShort(loop) || !isShort(with))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// The kernel of several
//===----------------------------------------------------------------------===//

namespace {

/// Makes a kernel of several calls. Its arguments are those of all of them,
/// each value once.
class KernelMerger {
public:
  /// A kernel and the numbers of its arguments among the merged one's.
  using Part = std::pair<func::FuncOp, SmallVector<unsigned>>;

  KernelMerger(ArrayRef<Part> parts, func::FuncOp merged)
      : parts(parts), merged(merged), b(ImplicitLocOpBuilder::atBlockBegin(
                                          merged.getLoc(), &merged.front())) {}

  void run() {
    for (const Part &part : parts) {
      IRMapping &mapping = mappings.emplace_back();
      func::FuncOp kernel = part.first;
      for (auto [argument, number] :
           llvm::zip_equal(kernel.getArguments(), part.second))
        mapping.map(argument, merged.getArgument(number));
      for (Operation &op : kernel.front())
        if (!isa<scf::ParallelOp, memref::DeallocOp, func::ReturnOp>(op))
          b.clone(op, mapping);
      loops.push_back(findLoops(kernel));
    }
    for (size_t step = 0; step < loops.front().size(); ++step)
      emitLoop(step);
    for (auto [part, mapping] : llvm::zip_equal(parts, mappings)) {
      func::FuncOp kernel = part.first;
      for (auto op : kernel.getOps<memref::DeallocOp>())
        b.clone(*op, mapping);
    }
    func::ReturnOp::create(b);
  }

private:
  /// The parts of one kernel, which follow each other.
  struct Branch {
    size_t from, to;
  };

  SmallVector<Branch> findBranches() const {
    SmallVector<Branch> branches;
    for (size_t part = 0; part < parts.size(); ++part) {
      if (part == 0 || parts[part].first != parts[part - 1].first)
        branches.push_back({part, part});
      branches.back().to = part + 1;
    }
    return branches;
  }

  /// The blocks of all parts, one part's after another's.
  void emitLoop(size_t step) {
    Indices i(b);
    ends.clear();
    pieces.clear();
    mostShared = 0;
    Value total = i.constant(0);
    SmallVector<Location> locations;
    for (auto [ofPart, mapping] : llvm::zip_equal(loops, mappings)) {
      Value blocks = mapping.lookupOrDefault(ofPart[step].getUpperBound()[0]);
      total = i.add(total, blocks);
      ends.push_back(total);
      locations.push_back(ofPart[step].getLoc());
    }
    OpBuilder::InsertionGuard guard(b);
    const Location before = b.getLoc();
    b.setLoc(b.getFusedLoc(locations));
    scf::ParallelOp first = loops.front()[step];
    auto name = first->getAttrOfType<StringAttr>(kStepAttr);
    scf::ParallelOp loop = startBlocks(
        b, total, first->getAttrOfType<IntegerAttr>(kThreadsAttr).getInt(),
        name ? name.getValue() : "loop");
    // Blocks of a loop are whole clusters: so are those of all loops.
    for (StringRef attribute : {kBlocksAttr, kClusterAttr})
      if (Attribute count = first->getAttr(attribute))
        loop->setAttr(attribute, count);
    const SmallVector<Branch> branches = findBranches();
    emitBranches(step, branches, loop.getInductionVars()[0]);
    if (branches.size() > 1)
      shareMemory(loop);
    b.setLoc(before);
  }

  /// The code of block `id`, which is one of the branches'.
  void emitBranches(size_t step, ArrayRef<Branch> branches, Value id) {
    const Branch branch = branches.front();
    if (branches.size() == 1)
      return emitBranch(step, branch, id);
    Value isOurs = Indices(b).less(id, ends[branch.to - 1]);
    auto which = scf::IfOp::create(b, isOurs, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(which.thenYield());
    emitBranch(step, branch, id);
    b.setInsertionPoint(which.elseYield());
    emitBranches(step, branches.drop_front(), id);
  }

  void emitBranch(size_t step, const Branch &branch, Value id) {
    scf::ParallelOp loop = loops[branch.from][step];
    IRMapping inner;
    Value begin =
        branch.from == 0 ? Indices(b).constant(0) : ends[branch.from - 1];
    SmallVector<Value> isBefore; // whether the block is of this part or before
    for (size_t part = branch.from; part + 1 < branch.to; ++part)
      isBefore.push_back(Indices(b).less(id, ends[part]));
    auto choose = [&](function_ref<Value(size_t part)> ofPart) {
      Value chosen = ofPart(branch.to - 1);
      for (size_t part = branch.to - 1; part-- > branch.from;)
        chosen = b.createOrFold<arith::SelectOp>(isBefore[part - branch.from],
                                                 ofPart(part), chosen);
      return chosen;
    };
    Value first = choose([&](size_t part) {
      return part == branch.from ? begin : ends[part - 1];
    });
    inner.map(loop.getInductionVars()[0],
              b.createOrFold<arith::SubIOp>(id, first));
    SetVector<Value> used;
    getUsedValuesDefinedAbove(loop.getRegion(), used);
    for (Value value : used)
      inner.map(value, isSame(value, branch)
                           ? mappings[branch.from].lookup(value)
                           : choose([&](size_t part) {
                               return mappings[part].lookup(value);
                             }));
    int64_t taken = 0;
    for (Operation &op : loop.getBody()->without_terminator())
      b.clone(op, inner)->walk([&](SharedMemoryOp piece) {
        pieces.emplace_back(piece, taken);
        taken += llvm::alignTo(piece.getBytes().getType().getNumElements(),
                               kSharedAlignment);
      });
    mostShared = std::max(mostShared, taken);
  }

  /// Whether `value` of the kernel is the same in all parts of the branch.
  bool isSame(Value value, const Branch &branch) {
    if (Operation *op = value.getDefiningOp())
      return !isa<memref::AllocOp>(op) &&
             llvm::all_of(op->getOperands(), [&](Value operand) {
               return isSame(operand, branch);
             });
    for (size_t part = branch.from; part < branch.to; ++part)
      if (mappings[part].lookup(value) != mappings[branch.from].lookup(value))
        return false;
    return true;
  }

  /// Has the branches use the same shared memory, since a block runs only one.
  void shareMemory(scf::ParallelOp loop) {
    if (pieces.empty())
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value all = allocateShared(b, mostShared);
    for (auto [piece, place] : pieces) {
      b.setInsertionPoint(piece);
      const int64_t size = piece.getBytes().getType().getNumElements();
      piece.getBytes().replaceAllUsesWith(
          viewShared(b, all, place, {size}, b.getI8Type()));
      piece.erase();
    }
  }

  ArrayRef<Part> parts;
  func::FuncOp merged;
  ImplicitLocOpBuilder b;
  SmallVector<IRMapping> mappings;
  SmallVector<SmallVector<scf::ParallelOp>> loops;
  /// Of the loop that is emitted: behind the blocks of each part; the pieces of
  /// shared memory of all branches, and where each lies in that of its branch.
  SmallVector<Value> ends;
  SmallVector<std::pair<SharedMemoryOp, int64_t>> pieces;
  int64_t mostShared = 0;
};

/// Finds calls that can be merged, and merges them.
class LaunchMerger {
public:
  explicit LaunchMerger(ModuleOp module) : symbols(module) {}

  /// Visits the operations of a block of the host. Calls join the earliest
  /// ones that they can start with: those behind the last use of the memory
  /// that they use.
  void visit(Block &block) {
    steps.clear();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isMemoryEffectFree(&op) ||
          isa<memref::AllocOp, sdx::OutputBufferOp>(op))
        continue;
      std::optional<Uses> uses = findUses(&op);
      if (!uses) {
        mergeFirst(steps.size());
        continue;
      }
      auto call = dyn_cast<sdx::CallOp>(op);
      func::FuncOp kernel;
      if (call)
        kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (kernel && !canMerge(kernel, kernel))
        kernel = {};
      Step *with = kernel ? findStep(call, kernel, *uses) : nullptr;
      if (!with) {
        if (steps.size() == kMostSteps)
          mergeFirst(1);
        with = &steps.emplace_back();
      }
      with->push_back({&op, kernel, *uses});
    }
    mergeFirst(steps.size());
  }

  /// Erases kernels that nothing calls any more.
  void eraseUnused() {
    for (func::FuncOp kernel : replaced)
      if (SymbolTable::symbolKnownUseEmpty(kernel, kernel->getParentOp()))
        symbols.erase(kernel);
  }

private:
  /// An operation: the call of `kernel`, if that is set.
  struct Part {
    Operation *op;
    func::FuncOp kernel;
    Uses uses;

    sdx::CallOp call() const { return cast<sdx::CallOp>(op); }
  };
  /// Calls that start together, one after the other in the block, or one other
  /// operation.
  using Step = SmallVector<Part, 0>;

  /// The earliest step that `call` can be part of; moves it there.
  Step *findStep(sdx::CallOp call, func::FuncOp kernel, const Uses &uses) {
    Step *found = nullptr;
    for (Step &step : llvm::reverse(steps)) {
      if (llvm::any_of(step, [&](const Part &part) {
            return uses.conflictWith(part.uses);
          }))
        break;
      if (step.front().kernel && step.size() < kMostMerged &&
          llvm::all_of(step,
                       [&](const Part &part) {
                         return canMerge(part.kernel, kernel);
                       }) &&
          canMoveBehind(call, step.back().op))
        found = &step;
    }
    if (found)
      moveBehind(call, found->back().op);
    return found;
  }

  /// Whether all that `op` uses is there behind `place`, or can be made there.
  static bool canMoveBehind(Operation *op, Operation *place) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      if (!def || def->getBlock() != place->getBlock() ||
          def->isBeforeInBlock(place))
        return true;
      return def->getNumRegions() == 0 &&
             (isMemoryEffectFree(def) ||
              isa<memref::AllocOp, sdx::OutputBufferOp>(def)) &&
             canMoveBehind(def, place);
    });
  }

  static void moveBehind(Operation *op, Operation *place) {
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == place->getBlock() &&
          place->isBeforeInBlock(def)) {
        moveBehind(def, place);
        place = def;
      }
    op->moveAfter(place);
  }

  /// Merges the parts of the first `count` steps, and forgets these.
  void mergeFirst(size_t count) {
    for (const Step &step : ArrayRef(steps).take_front(count))
      merge(step);
    steps.erase(steps.begin(), steps.begin() + count);
  }

  /// Puts one call in the place of the last of `calls`, if there are several.
  void merge(ArrayRef<Part> calls) {
    if (calls.size() < 2)
      return;
    OpBuilder b(calls.back().op);
    // Calls of one kernel follow each other.
    SmallVector<Part, 0> sorted;
    for (const Part &first : calls)
      if (llvm::none_of(sorted, [&](const Part &known) {
            return known.kernel == first.kernel;
          }))
        llvm::copy_if(calls, std::back_inserter(sorted),
                      [&](const Part &waiting) {
                        return waiting.kernel == first.kernel;
                      });
    SetVector<Value> ins, outs;
    SmallVector<int64_t> updates;
    for (const Part &waiting : sorted) {
      ins.insert(waiting.call().getIns().begin(),
                 waiting.call().getIns().end());
      for (auto [i, out] : llvm::enumerate(waiting.call().getOuts())) {
        if (waiting.call().updatesOut(i))
          updates.push_back(outs.size());
        outs.insert(out);
      }
    }
    SmallVector<KernelMerger::Part> parts;
    SmallVector<Location> locations;
    for (const Part &waiting : sorted) {
      auto &[kernel, numbers] = parts.emplace_back();
      kernel = waiting.kernel;
      for (Value in : waiting.call().getIns())
        numbers.push_back(llvm::find(ins, in) - ins.begin());
      for (Value out : waiting.call().getOuts())
        numbers.push_back(ins.size() + (llvm::find(outs, out) - outs.begin()));
      locations.push_back(waiting.call().getLoc());
    }
    SmallVector<Value> arguments(ins.getArrayRef());
    llvm::append_range(arguments, outs);
    func::FuncOp together = findMerged(b, parts, arguments);
    sdx::CallOp::create(b, b.getFusedLoc(locations), together.getName(),
                        ins.getArrayRef(), outs.getArrayRef(), updates);
    for (const Part &waiting : sorted) {
      waiting.op->erase();
      replaced.insert(waiting.kernel);
    }
  }

  /// The kernel of `parts` for arguments as `arguments`.
  func::FuncOp findMerged(OpBuilder b, ArrayRef<KernelMerger::Part> parts,
                          ArrayRef<Value> arguments) {
    std::string key;
    llvm::raw_string_ostream os(key);
    for (const auto &[kernel, numbers] : parts) {
      os << func::FuncOp(kernel).getName() << '(';
      llvm::interleave(numbers, os, ",");
      os << ')';
    }
    func::FuncOp &known = merged[key];
    if (known)
      return known;
    SmallVector<Location> locations;
    std::string name;
    for (size_t from = 0; from < parts.size();) {
      size_t to = from;
      while (to < parts.size() && parts[to].first == parts[from].first)
        locations.push_back(func::FuncOp(parts[to++].first).getLoc());
      name +=
          (from ? "_" : "") + func::FuncOp(parts[from].first).getName().str();
      if (to - from > 1)
        name += "_x" + std::to_string(to - from);
      from = to;
    }
    func::FuncOp kernel = parts.front().first;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(kernel);
    known = func::FuncOp::create(
        b, b.getFusedLoc(locations), name,
        b.getFunctionType(TypeRange(ValueRange(arguments)), {}));
    known.setPrivate();
    known->setAttr(sdx::kKernelAttr, b.getUnitAttr());
    symbols.insert(known, Block::iterator(kernel));
    known.addEntryBlock();
    KernelMerger(parts, known).run();
    return known;
  }

  SymbolTable symbols;
  SmallVector<Step, 0> steps;
  SetVector<func::FuncOp> replaced;
  std::map<std::string, func::FuncOp> merged;
};

struct MergeLaunchesPass
    : sardonyx::impl::NVMergeLaunchesBase<MergeLaunchesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // What runs once need not start soon.
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    LaunchMerger merger(module);
    SmallVector<Block *> blocks;
    main.walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
    });
    for (Block *block : blocks)
      merger.visit(*block);
    merger.eraseUnused();
  }
};

} // namespace
