//===- PlanMemory.cpp - Place the host's buffers ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer lives from its first use to the end of the last operation of the
// same block in which it, or a view of it, is used: the loop as a whole if it
// is used in a loop that does not make it. Small ones of a device live a little
// longer: kernels start together only where none of them needs the memory of
// another one.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXPLANMEMORY
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Bytes at whose multiples buffers begin: lines of the host's caches, and what
/// a device reads at once.
static constexpr int64_t kHostAlignment = 64, kDeviceAlignment = 256;

/// Bytes of a small buffer of a device, and the kernels behind its last use
/// during which its memory is not another one's.
static constexpr int64_t kSmall = 1 << 20, kKernelsBehind = 3;

namespace {

struct Buffer {
  memref::AllocOp alloc;
  Operation *lastUse = nullptr; // in the block of `alloc`
  bool escapes = false;
  int64_t begin = 0, end = 0; // positions, inclusive
  int64_t size = 0, offset = 0;
};

class Planner {
public:
  explicit Planner(func::FuncOp func) : func(func) {}

  void run() {
    // A piece of a buffer that gets no place in the arena is copied after all.
    DenseSet<Operation *> placed;
    for (const Buffer &buffer : findBuffers())
      if (!buffer.escapes && isStatic(buffer.alloc))
        placed.insert(buffer.alloc);
    makeOperandsContiguous(func, [&](OpOperand &operand) {
      Value value = operand.get();
      return isPassedByAddress(operand) ||
             (isViewOfPlannable(value) &&
              placed.contains(findViewedAllocation(value)));
    });

    llvm::MapVector<Attribute, SmallVector<Buffer>> planned;
    for (Buffer &buffer : findBuffers()) {
      if (buffer.escapes)
        continue;
      if (isStatic(buffer.alloc))
        planned[getSpace(buffer.alloc)].push_back(buffer);
      else
        freeAfter(buffer);
    }
    for (auto &[space, buffers] : planned)
      makeArena(space, buffers, place(buffers));
  }

private:
  static bool isStatic(memref::AllocOp alloc) {
    return alloc.getType().hasStaticShape() &&
           alloc.getSymbolOperands().empty();
  }

  static Attribute getSpace(memref::AllocOp alloc) {
    return alloc.getType().getMemorySpace();
  }

  SmallVector<Buffer> findBuffers() {
    span.clear();
    next = 0;
    number(func.getBody());
    BufferViewFlowAnalysis views(func);
    SmallVector<Buffer> buffers;
    func.walk([&](memref::AllocOp alloc) {
      buffers.push_back(describe(alloc, views));
    });
    return buffers;
  }

  void number(Region &region) {
    for (Operation &op : region.getOps()) {
      int64_t begin = next++;
      for (Region &nested : op.getRegions())
        number(nested);
      span[&op] = {begin, next++};
    }
  }

  static int64_t elementBytes(Type element) {
    if (isa<IndexType>(element))
      return 8;
    if (!element.isIntOrFloat())
      return 16;
    return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  }

  static int64_t bytesOf(MemRefType type) {
    int64_t bytes = std::max<int64_t>(type.getNumElements(), 1) *
                    elementBytes(type.getElementType());
    return llvm::alignTo(bytes, type.getMemorySpace() ? kDeviceAlignment
                                                      : kHostAlignment);
  }

  Buffer describe(memref::AllocOp alloc, BufferViewFlowAnalysis &views) {
    Buffer buffer{alloc};
    Block *block = alloc->getBlock();
    buffer.lastUse = alloc;
    int64_t first = next;
    // Iterations of a parallel loop would share the memory.
    for (Operation *parent = alloc->getParentOp(); parent != func;
         parent = parent->getParentOp())
      buffer.escapes |= isa<scf::ParallelOp, scf::ForallOp>(parent);
    for (Value alias : views.resolve(alloc)) {
      if (!block->getParent()->findAncestorBlockInRegion(
              *alias.getParentBlock())) {
        buffer.escapes = true;
        continue;
      }
      if (isa<BlockArgument>(alias) && alias.getParentBlock() == block)
        buffer.escapes = true; // an argument of the loop that makes it
      for (Operation *user : alias.getUsers()) {
        Operation *here = block->findAncestorOpInBlock(*user);
        if (!here || here->hasTrait<OpTrait::IsTerminator>() ||
            isa<memref::DeallocOp>(user)) // somebody frees it already
          buffer.escapes = true;
        else if (span[buffer.lastUse].second < span[here].second)
          buffer.lastUse = here;
        if (here && !isa<ViewLikeOpInterface>(user))
          first = std::min(first, span[here].first);
      }
    }
    // The address may be computed long before anything is written there.
    buffer.end = span[buffer.lastUse].second;
    buffer.begin = std::min(first, buffer.end);
    if (alloc.getType().hasStaticShape())
      buffer.size = bytesOf(alloc.getType());
    if (alloc.getType().getMemorySpace() && buffer.size <= kSmall)
      buffer.end = span[findKernelBehind(buffer.lastUse)].second;
    return buffer;
  }

  /// The last of the next few kernels in the block of `op`; `op` where there is
  /// none.
  static Operation *findKernelBehind(Operation *op) {
    Operation *found = op;
    int64_t count = 0;
    for (Operation *next = op->getNextNode(); next && count < kKernelsBehind;
         next = next->getNextNode())
      if (isa<sdx::CallOp>(next)) {
        found = next;
        ++count;
      }
    return found;
  }

  static void freeAfter(Buffer &buffer) {
    OpBuilder b(buffer.alloc);
    b.setInsertionPointAfter(buffer.lastUse);
    memref::DeallocOp::create(b, buffer.alloc.getLoc(), buffer.alloc);
  }

  /// Greedy by size: each buffer goes into the tightest gap among those that
  /// live at the same time. Returns the bytes of all.
  static int64_t place(MutableArrayRef<Buffer> buffers) {
    SmallVector<Buffer *> order;
    for (Buffer &buffer : buffers)
      order.push_back(&buffer);
    llvm::stable_sort(order,
                      [](Buffer *a, Buffer *b) { return a->size > b->size; });
    SmallVector<Buffer *> placed; // by offset
    int64_t total = 0;
    for (Buffer *buffer : order) {
      int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max();
      int64_t top = 0;
      for (Buffer *other : placed) {
        if (other->end < buffer->begin || buffer->end < other->begin)
          continue;
        int64_t gap = other->offset - top;
        if (gap >= buffer->size && gap < bestGap) {
          best = top;
          bestGap = gap;
        }
        top = std::max(top, other->offset + other->size);
      }
      buffer->offset = best >= 0 ? best : top;
      total = std::max(total, buffer->offset + buffer->size);
      auto at = llvm::upper_bound(placed, buffer, [](Buffer *a, Buffer *b) {
        return a->offset < b->offset;
      });
      placed.insert(at, buffer);
    }
    return total;
  }

  /// Gives the buffers of a memory space their places.
  void makeArena(Attribute space, ArrayRef<Buffer> buffers, int64_t bytes) {
    OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
    auto type = MemRefType::get({bytes}, b.getI8Type(),
                                MemRefLayoutAttrInterface(), space);
    Value arena = sdx::ArenaOp::create(b, func.getLoc(), type);
    DenseMap<int64_t, Value> offsets;
    DenseMap<Operation *, int64_t> offsetOf;
    for (const Buffer &buffer : buffers)
      offsetOf[buffer.alloc] = buffer.offset;
    placePieces(arena, offsetOf);
    b.setInsertionPointAfter(arena.getDefiningOp());
    for (const Buffer &buffer : buffers) {
      Value &offset = offsets[buffer.offset];
      if (!offset)
        offset =
            arith::ConstantIndexOp::create(b, func.getLoc(), buffer.offset);
    }
    for (const Buffer &buffer : buffers) {
      memref::AllocOp alloc = buffer.alloc;
      b.setInsertionPoint(alloc);
      Value view =
          memref::ViewOp::create(b, alloc.getLoc(), alloc.getType(), arena,
                                 offsets[buffer.offset], ValueRange());
      alloc.replaceAllUsesWith(view);
      alloc.erase();
    }
  }

  /// Pieces of buffers that kernels read or write are views of the arena.
  void placePieces(Value arena,
                   const DenseMap<Operation *, int64_t> &offsetOf) {
    func.walk([&](Operation *call) {
      if (!isa<sdx::CallOp, sdx::RuntimeCallOp>(call))
        return;
      for (OpOperand &operand : call->getOpOperands()) {
        auto type = dyn_cast<MemRefType>(operand.get().getType());
        if (!type || type.getLayout().isIdentity())
          continue;
        memref::AllocOp alloc = findViewedAllocation(operand.get());
        if (!offsetOf.contains(alloc))
          continue; // in another memory space
        OpBuilder b(call);
        Location loc = call->getLoc();
        int64_t bytes = elementBytes(type.getElementType());
        auto [fixed, variable] = elementOffset(b, loc, operand.get());
        Value shift = arith::ConstantIndexOp::create(
            b, loc, offsetOf.lookup(alloc) + fixed * bytes);
        if (variable)
          shift = arith::AddIOp::create(b, loc, shift,
                                        times(b, loc, variable, bytes));
        operand.set(memref::ViewOp::create(
            b, loc,
            MemRefType::get(type.getShape(), type.getElementType(),
                            MemRefLayoutAttrInterface(), type.getMemorySpace()),
            arena, shift, ValueRange()));
      }
    });
  }

  static Value times(OpBuilder &b, Location loc, Value value, int64_t factor) {
    return arith::MulIOp::create(
        b, loc, value, arith::ConstantIndexOp::create(b, loc, factor));
  }

  /// How many elements after the start of its buffer a view begins: a constant
  /// and, if not null, a value.
  static std::pair<int64_t, Value> elementOffset(OpBuilder &b, Location loc,
                                                 Value value) {
    int64_t fixed = 0;
    Value variable;
    for (Operation *op = value.getDefiningOp(); !isa<memref::AllocOp>(op);
         op = op->getOperand(0).getDefiningOp()) {
      auto subview = dyn_cast<memref::SubViewOp>(op);
      if (!subview)
        continue;
      SmallVector<int64_t> strides;
      int64_t ignored;
      (void)subview.getSourceType().getStridesAndOffset(strides, ignored);
      for (auto [offset, stride] :
           llvm::zip(subview.getMixedOffsets(), strides)) {
        if (std::optional<int64_t> constant = getConstantIntValue(offset)) {
          fixed += *constant * stride;
          continue;
        }
        Value term = times(b, loc, cast<Value>(offset), stride);
        variable =
            variable ? arith::AddIOp::create(b, loc, variable, term).getResult()
                     : term;
      }
    }
    return {fixed, variable};
  }

  func::FuncOp func;
  DenseMap<Operation *, std::pair<int64_t, int64_t>> span;
  int64_t next = 0;
};

struct PlanMemoryPass : sardonyx::impl::SDXPlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (isHostFunction(func)) {
        freeYielded(func);
        Planner(func).run();
      }
  }
};

} // namespace
