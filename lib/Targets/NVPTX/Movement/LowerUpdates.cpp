//===- LowerUpdates.cpp - Writes at places that data decide ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread makes an update, or has neighbours of a piece. Where several may
// have one place, an element that is combined with the one that is there is
// exchanged atomically; of others the last in the loop's order is written: a
// thread looks whether there is a later one, and where there may be many of
// them each place has a number in memory, of the last of its updates.
//
//===----------------------------------------------------------------------===//

#include "Movement/CombineAtomically.h"
#include "Movement/TaskScalars.h"
#include "Movement/UpdateLoop.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERUPDATES
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// Updates that may have one place of which a thread looks at all the later
/// ones.
static constexpr int64_t kFew = 64;

static Value flatten(Indices &i, ArrayRef<Value> index, ArrayRef<Value> sizes) {
  Value flat = i.constant(0);
  for (auto [at, size] : llvm::zip_equal(index, sizes))
    flat = i.add(i.mul(flat, size), at);
  return flat;
}

namespace {

/// The kernels of one update of all tasks. A thread has a position: of the
/// task, of each loop, and of a piece.
class UpdateKernel {
public:
  UpdateKernel(const UpdateLoop &all, const Update &update, KernelBody &body,
               Value target)
      : forall(all.op), part(all.part), update(update), scalars(body),
        target(target), type(cast<MemRefType>(target.getType())) {
    scalars.setBuffer(forall.getRegionIterArgs()[0], target);
  }

  void emit(ImplicitLocOpBuilder &b) {
    measure(b);
    Indices i(b);
    if (update.old)
      return forThreads(b, places, {}, [&](ArrayRef<Value> at) {
        enter(b, at, true, {}, [&](IRMapping &mapping) -> Value {
          combine(b, mapping);
          return {};
        });
      });
    std::optional<int64_t> known = getConstantIntValue(rivals);
    if (known == 1)
      return write(b, {}, nullptr);
    if (known)
      return *known <= kFew ? writeLast(b, {}) : writeOwned(b, {});
    Value few = i.less(rivals, i.constant(kFew + 1));
    Value yes = arith::ConstantIntOp::create(b, 1, 1);
    writeLast(b, few);
    writeOwned(b, arith::XOrIOp::create(b, few, yes));
  }

private:
  using Leaf = llvm::function_ref<Value(IRMapping &)>;

  /// The sizes of all positions, on the host.
  void measure(ImplicitLocOpBuilder &b) {
    Indices i(b);
    Region &region = forall.getRegion();
    places = getValueOrCreateConstantIndexOp(b, b.getLoc(),
                                             forall.getMixedUpperBound());
    tasks = places.size();
    rivals = i.constant(1);
    for (scf::ForOp loop : update.loops) {
      TripBound bound = *TripBound::find(loop, region);
      Value trips = hoistValue(&b, bound.limit, region);
      Value step = hoistValue(&b, loop.getStep(), region);
      if (bound.from && !isConstantIntValue(bound.from, 0))
        trips = b.createOrFold<arith::SubIOp>(
            trips, hoistValue(&b, bound.from, region));
      if (bound.other)
        trips = b.createOrFold<arith::MinSIOp>(
            trips, hoistValue(&b, bound.other, region));
      if (!isConstantIntValue(step, 1))
        trips = b.createOrFold<arith::CeilDivSIOp>(trips, step);
      trips = b.createOrFold<arith::MaxSIOp>(trips, i.constant(0));
      places.push_back(trips);
      if (!update.isDistinguishedBy(loop)) {
        rivalLoops.push_back(places.size() - 1);
        rivals = i.mul(rivals, trips);
      }
    }
    loops = places.size() - tasks;
    pieces = places;
    inPiece = update.getPieceDims();
    if (update.isPiece())
      measurePiece(b);
  }

  /// Of a piece a thread has as many neighbours as fit into 16 bytes, where the
  /// sizes of all rows are multiples of them.
  void measurePiece(ImplicitLocOpBuilder &b) {
    Indices i(b);
    auto slice = cast<tensor::InsertSliceOp>(update.op);
    Region &region = forall.getRegion();
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes())) {
      if (!inPiece.test(dim))
        continue;
      Value limit = isa<Value>(size) ? findLimit(cast<Value>(size), region)
                                     : i.constant(*getConstantIntValue(size));
      limit = limit ? hoistValue(&b, limit, region)
                    : scalars.sizeOfWhole(b, slice.getSource(), sizes.size());
      pieces.push_back(limit);
      sizes.push_back(size);
    }
    if (sizes.empty() || !inPiece.test(inPiece.size() - 1))
      return;
    const int64_t row = type.getShape().back();
    std::optional<int64_t> limit = getConstantIntValue(pieces.back());
    width = countInPiece(type.getElementType());
    while (width > 1 &&
           (ShapedType::isDynamic(row) || row % width != 0 || !limit ||
            *limit % width != 0 || !divides(width, sizes.back())))
      width /= 2;
    pieces.back() = i.div(pieces.back(), width);
  }

  /// A loop whose threads have a position of a grid of `sizes` each; none where
  /// `condition`, if there is one, does not hold.
  void forThreads(ImplicitLocOpBuilder &b, ArrayRef<Value> sizes,
                  Value condition,
                  llvm::function_ref<void(ArrayRef<Value>)> body) {
    Indices i(b);
    Value count = i.constant(1);
    for (Value size : sizes)
      count = i.mul(count, size);
    Value blocks = i.ceilDiv(count, kThreads);
    if (condition)
      blocks = arith::SelectOp::create(b, condition, blocks, i.constant(0));
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop = startBlocks(b, blocks, kThreads, "update");
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(loop.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    body(i.unflatten(number, sizes));
  }

  /// Computes what the loops do up to the update at position `at`, and then
  /// `leaf`. Its value, if it has one, is `otherwise` where some loop does not
  /// turn that often.
  Value enter(ImplicitLocOpBuilder &b, ArrayRef<Value> at, bool checks,
              Value otherwise, Leaf leaf) {
    IRMapping mapping;
    for (auto [variable, value] : llvm::zip(forall.getInductionVars(), at))
      mapping.map(variable, value);
    return enterLoop(b, 0, forall.getBody(), at, checks, otherwise, mapping,
                     leaf);
  }

  Value enterLoop(ImplicitLocOpBuilder &b, size_t depth, Block *block,
                  ArrayRef<Value> at, bool checks, Value otherwise,
                  IRMapping &mapping, Leaf leaf) {
    Operation *next = update.findIn(block);
    for (Operation &op : block->without_terminator()) {
      if (&op == next)
        break;
      // Updates before this one are kernels of their own.
      if (isa<scf::ForOp, tensor::InsertOp, tensor::InsertSliceOp>(op) ||
          &op == part || update.isMadeOfOld(op) ||
          (!checks && isa<sdx::CheckOp>(op)))
        continue;
      scalars.clone(b, op, mapping);
    }
    if (depth == update.loops.size())
      return leaf(mapping);
    scf::ForOp loop = update.loops[depth];
    Indices i(b);
    Value position = i.add(
        mapping.lookupOrDefault(loop.getLowerBound()),
        i.mul(at[tasks + depth], mapping.lookupOrDefault(loop.getStep())));
    mapping.map(loop.getInductionVar(), position);
    auto goOn = [&] {
      return enterLoop(b, depth + 1, loop.getBody(), at, checks, otherwise,
                       mapping, leaf);
    };
    if (TripBound::find(loop, forall.getRegion())->isExact)
      return goOn();
    Value end = mapping.lookupOrDefault(loop.getUpperBound());
    return when(b, i.less(position, end), otherwise, goOn);
  }

  /// What `then` gives; without its being computed `otherwise`, where
  /// `condition` does not hold.
  static Value when(ImplicitLocOpBuilder &b, Value condition, Value otherwise,
                    llvm::function_ref<Value()> then) {
    OpBuilder::InsertionGuard guard(b);
    if (!otherwise) {
      auto some = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
      b.setInsertionPoint(some.thenYield());
      return then();
    }
    auto some = scf::IfOp::create(b, otherwise.getType(), condition, true);
    b.setInsertionPointToStart(some.thenBlock());
    scf::YieldOp::create(b, then());
    b.setInsertionPointToStart(some.elseBlock());
    scf::YieldOp::create(b, otherwise);
    return some.getResult(0);
  }

  /// Where element `piece` of the update is in the result.
  SmallVector<Value> placeOf(ImplicitLocOpBuilder &b, IRMapping &mapping,
                             ArrayRef<Value> piece) {
    SmallVector<Value> index;
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(update.op))
      index = TaskScalars::placeOf(b, slice, mapping, piece);
    else
      for (Value value : cast<tensor::InsertOp>(update.op).getIndices())
        index.push_back(mapping.lookupOrDefault(value));
    return TaskScalars::placeOf(b, part, mapping, index);
  }

  /// What tells places of updates apart: the indices of an element, and of a
  /// piece those of the dimensions that it has not, and its task, since another
  /// task may have other columns of the same rows.
  struct Slots {
    SmallVector<int64_t> dims; // of the result
    bool byTask;
  };
  Slots findSlots() {
    Slots slots{{}, false};
    llvm::SmallBitVector dropped = part.getDroppedDims();
    int64_t ofPart = 0;
    for (auto [dim, offset] : llvm::enumerate(part.getMixedOffsets()))
      if (dropped.test(dim) || !inPiece.test(ofPart++))
        slots.dims.push_back(dim);
      else if (getConstantIntValue(offset) != 0)
        slots.byTask = true;
    return slots;
  }

  SmallVector<Value> slotSizes(ImplicitLocOpBuilder &b) {
    SmallVector<Value> extents;
    Slots slots = findSlots();
    if (slots.byTask)
      extents.assign(places.begin(), places.begin() + tasks);
    for (int64_t dim : slots.dims)
      extents.push_back(sizeOf(b, target, dim));
    return extents;
  }

  /// The number of the place that is updated.
  Value slotOf(ImplicitLocOpBuilder &b, ArrayRef<Value> at,
               IRMapping &mapping) {
    Indices i(b);
    Slots slots = findSlots();
    SmallVector<Value> first(sizes.size(), i.constant(0)), index;
    if (slots.byTask)
      index.assign(at.begin(), at.begin() + tasks);
    SmallVector<Value> place = placeOf(b, mapping, first);
    for (int64_t dim : slots.dims)
      index.push_back(place[dim]);
    return flatten(i, index, slotSizes(b));
  }

  /// The number of the update at `at` of those that may have the same place.
  Value numberOf(ImplicitLocOpBuilder &b, ArrayRef<Value> at) {
    Indices i(b);
    SmallVector<Value> index, counts;
    for (size_t place : rivalLoops) {
      index.push_back(at[place]);
      counts.push_back(places[place]);
    }
    return flatten(i, index, counts);
  }

  /// Writes the updates for which `test`, if there is one, gives true.
  void write(ImplicitLocOpBuilder &b, Value condition,
             llvm::function_ref<Value(ArrayRef<Value> at, IRMapping &)> test) {
    forThreads(b, pieces, condition, [&](ArrayRef<Value> at) {
      enter(b, at, true, {}, [&](IRMapping &mapping) -> Value {
        ArrayRef<Value> piece = at.drop_front(tasks + loops);
        auto writeOne = [&]() -> Value {
          copy(b, mapping, piece);
          return {};
        };
        return test ? when(b, test(at, mapping), {}, writeOne) : writeOne();
      });
    });
  }

  void copy(ImplicitLocOpBuilder &b, IRMapping &mapping,
            ArrayRef<Value> piece) {
    Indices i(b);
    if (auto insert = dyn_cast<tensor::InsertOp>(update.op)) {
      Value value = mapping.lookupOrDefault(insert.getScalar());
      memref::StoreOp::create(b, value, target, placeOf(b, mapping, {}));
      return;
    }
    SmallVector<Value> at(piece);
    Value inside;
    if (!at.empty())
      at.back() = i.mul(at.back(), width);
    for (auto [position, size] : llvm::zip_equal(at, sizes)) {
      auto open = dyn_cast<Value>(size);
      if (!open)
        continue;
      Value less = i.less(position, mapping.lookupOrDefault(open));
      inside = inside ? i.both(inside, less) : less;
    }
    auto move = [&]() -> Value {
      Value source = cast<tensor::InsertSliceOp>(update.op).getSource();
      SmallVector<Value> values, index(at);
      for (int64_t j = 0; j < width; ++j) {
        if (!at.empty())
          index.back() = i.add(at.back(), j);
        TaskScalars::Place from = scalars.find(b, mapping, source, index);
        values.push_back(memref::LoadOp::create(b, from.buffer, from.index));
      }
      for (auto [j, value] : llvm::enumerate(values)) {
        if (!at.empty())
          index.back() = i.add(at.back(), j);
        memref::StoreOp::create(b, value, target, placeOf(b, mapping, index));
      }
      return {};
    };
    if (inside)
      when(b, inside, {}, move);
    else
      move();
  }

  /// Writes an update unless a later one has its place.
  void writeLast(ImplicitLocOpBuilder &b, Value condition) {
    write(b, condition, [&](ArrayRef<Value> at, IRMapping &mapping) {
      Indices i(b);
      Value slot = slotOf(b, at, mapping);
      Value no = arith::ConstantIntOp::create(b, 0, 1);
      SmallVector<Value> counts;
      for (size_t place : rivalLoops)
        counts.push_back(places[place]);
      auto later = scf::ForOp::create(b, i.add(numberOf(b, at), 1), rivals,
                                      i.constant(1), no);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(later.getBody());
        SmallVector<Value> other(at);
        for (auto [place, position] : llvm::zip_equal(
                 rivalLoops, i.unflatten(later.getInductionVar(), counts)))
          other[place] = position;
        Value same =
            enter(b, other, false, no, [&](IRMapping &mapping) -> Value {
              return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, slot,
                                           slotOf(b, other, mapping));
            });
        scf::YieldOp::create(
            b, arith::OrIOp::create(b, later.getRegionIterArgs()[0], same)
                   .getResult());
      }
      Value yes = arith::ConstantIntOp::create(b, 1, 1);
      return arith::XOrIOp::create(b, later.getResult(0), yes).getResult();
    });
  }

  /// Finds the last update of each place, then writes those.
  void writeOwned(ImplicitLocOpBuilder &b, Value condition) {
    Indices i(b);
    std::optional<int64_t> known = getConstantIntValue(rivals);
    const unsigned bits = known && *known <= INT32_MAX ? 32 : 64;
    Type word = b.getIntegerType(bits);
    Value slots = i.constant(1);
    for (Value size : slotSizes(b))
      slots = i.mul(slots, size);
    if (condition)
      slots = arith::SelectOp::create(b, condition, slots, i.constant(0));
    Value owners = memref::AllocOp::create(
        b,
        MemRefType::get({ShapedType::kDynamic}, word,
                        MemRefLayoutAttrInterface(), type.getMemorySpace()),
        slots);
    auto forUpdates = [&](llvm::function_ref<void(Value, Value)> body) {
      forThreads(b, places, condition, [&](ArrayRef<Value> at) {
        enter(b, at, true, {}, [&](IRMapping &mapping) -> Value {
          Value number = arith::IndexCastOp::create(b, word, numberOf(b, at));
          body(slotOf(b, at, mapping), number);
          return {};
        });
      });
    };
    // Only the places of updates have numbers.
    forUpdates([&](Value slot, Value) {
      Value none = arith::ConstantIntOp::create(b, -1, bits);
      memref::StoreOp::create(b, none, owners, slot);
    });
    forUpdates([&](Value slot, Value number) {
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::max,
                                addressOf(b, owners, slot), number,
                                LLVM::AtomicOrdering::monotonic, kAtomicScope);
    });
    write(b, condition, [&](ArrayRef<Value> at, IRMapping &mapping) {
      Value owner =
          memref::LoadOp::create(b, owners, slotOf(b, at, mapping)).getResult();
      Value number = arith::IndexCastOp::create(b, word, numberOf(b, at));
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, owner, number)
          .getResult();
    });
    memref::DeallocOp::create(b, owners);
  }

  /// Combines an element with the one that is there.
  void combine(ImplicitLocOpBuilder &b, IRMapping &mapping) {
    Indices i(b);
    SmallVector<Value> extents;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      extents.push_back(sizeOf(b, target, dim));
    combineAtomically(
        b, update, mapping,
        addressOf(b, target, flatten(i, placeOf(b, mapping, {}), extents)));
  }

  scf::ForallOp forall;
  tensor::ExtractSliceOp part;
  const Update &update;
  TaskScalars scalars;
  const Value target;
  const MemRefType type;
  /// Sizes of positions: of tasks and loops, and of these and pieces.
  SmallVector<Value> places, pieces;
  size_t tasks = 0, loops = 0;
  /// Sizes of a piece, as the task has them, in its dimensions of the part.
  SmallVector<OpFoldResult> sizes;
  llvm::SmallBitVector inPiece;
  int64_t width = 1;
  /// The places of those loops whose iterations may have one place; how many
  /// iterations these are.
  SmallVector<size_t> rivalLoops;
  Value rivals;
};

struct LowerUpdatesPass : sardonyx::impl::NVLowerUpdatesBase<LowerUpdatesPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func))
      return;
    KernelBody body(func);
    std::optional<UpdateLoop> loop = UpdateLoop::find(func, body);
    if (!loop)
      return;
    if (failed(body.replaceWith([&](ImplicitLocOpBuilder &b) {
          Value target = body.getOutputs().front().memref;
          loop->emitStart(b, body, target);
          for (const Update &update : loop->updates)
            UpdateKernel(*loop, update, body, target).emit(b);
        })))
      signalPassFailure();
  }
};

} // namespace
