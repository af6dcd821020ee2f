//===- ThreadMemory.cpp - Temporaries of threads --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelBuffers.h"
#include "Kernel/Block.h"
#include "ThreadLoops.h"
#include "dialects/NV/NV.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;

/// What a thread has of its own lies in the device's memory, too, and for as
/// many threads as the device can hold: larger temporaries are pieces of a
/// buffer for those that there are.
constexpr int64_t kThreadBytes = 1024;
/// Pieces begin at multiples of so many bytes.
constexpr int64_t kAlignment = 16;

static int64_t getElementBytes(MemRefType type) {
  Type element = type.getElementType();
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

static bool isSmall(MemRefType type) {
  return type.hasStaticShape() && type.getNumElements() <= kThreadBytes &&
         type.getNumElements() * getElementBytes(type) <= kThreadBytes;
}

/// The number of an iteration of `loop`, and of all of them before it.
static std::pair<Value, Value>
countIterations(OpBuilder &before, OpBuilder &inside, scf::ParallelOp loop) {
  Location loc = loop.getLoc();
  Value count = arith::ConstantIndexOp::create(before, loc, 1);
  Value number = arith::ConstantIndexOp::create(inside, loc, 0);
  for (auto [position, from, to, step] :
       llvm::zip(loop.getInductionVars(), loop.getLowerBound(),
                 loop.getUpperBound(), loop.getStep())) {
    Value extent = arith::CeilDivSIOp::create(
        before, loc, arith::SubIOp::create(before, loc, to, from), step);
    count = arith::MulIOp::create(before, loc, count, extent);
    Value at = arith::DivUIOp::create(
        inside, loc, arith::SubIOp::create(inside, loc, position, from), step);
    number = arith::AddIOp::create(
        inside, loc, arith::MulIOp::create(inside, loc, number, extent), at);
  }
  return {count, number};
}

/// Gives each iteration its part of a buffer that is made before `loop`.
static LogicalResult makePieces(memref::AllocOp alloc, scf::ParallelOp loop) {
  MemRefType type = alloc.getType();
  Location loc = alloc.getLoc();
  OpBuilder before(loop);
  auto inside = OpBuilder::atBlockBegin(loop.getBody());
  int64_t known = getElementBytes(type);
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      known *= size;
  Value bytes = arith::ConstantIndexOp::create(before, loc, known);
  SmallVector<Value> sizes;
  for (Value size : alloc.getDynamicSizes()) {
    Value hoisted = nv::hoistValue(&before, size, loop.getRegion());
    if (!hoisted)
      return alloc.emitOpError("makes a temporary in each thread whose size is "
                               "not known before, which is not supported");
    sizes.push_back(hoisted);
    bytes = arith::MulIOp::create(before, loc, bytes, hoisted);
  }
  Value alignment = arith::ConstantIndexOp::create(before, loc, kAlignment);
  bytes = arith::MulIOp::create(
      before, loc, arith::CeilDivUIOp::create(before, loc, bytes, alignment),
      alignment);
  auto [count, number] = countIterations(before, inside, loop);
  auto bufferType = MemRefType::get({ShapedType::kDynamic}, before.getI8Type(),
                                    AffineMap(), type.getMemorySpace());
  auto buffer = memref::AllocOp::create(
      before, loc, bufferType,
      ValueRange{arith::MulIOp::create(before, loc, count, bytes)});
  OpBuilder after(loop->getContext());
  after.setInsertionPointAfter(loop);
  memref::DeallocOp::create(after, loc, buffer);
  Value place = arith::MulIOp::create(inside, loc, number, bytes);
  Value piece = memref::ViewOp::create(inside, loc, type, buffer, place, sizes);
  alloc.replaceAllUsesWith(piece);
  alloc.erase();
  return success();
}

static LogicalResult placeTemporary(memref::AllocOp alloc,
                                    scf::ParallelOp loop) {
  MemRefType type = alloc.getType();
  if (!type.getLayout().isIdentity() ||
      !(type.getElementType().isIntOrIndexOrFloat()))
    return alloc.emitOpError("is of a type that no temporary of a thread has");
  // Two of an operation's buffers would be in use at once.
  if (escapesBlock(alloc, alloc->getBlock()))
    return alloc.emitOpError("makes a temporary that outlives its iteration, "
                             "which is not supported");
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  if (!isSmall(type))
    return makePieces(alloc, loop);
  auto b = OpBuilder::atBlockBegin(loop.getBody());
  auto variable = memref::AllocaOp::create(b, alloc.getLoc(), type);
  alloc.replaceAllUsesWith(variable.getResult());
  alloc.erase();
  return success();
}

LogicalResult nv::placeThreadMemory(func::FuncOp func) {
  for (auto loop : llvm::make_early_inc_range(func.getOps<scf::ParallelOp>())) {
    SmallVector<memref::AllocOp> allocs;
    loop.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
    for (memref::AllocOp alloc : allocs)
      if (failed(placeTemporary(alloc, loop)))
        return failure();
  }
  return success();
}
