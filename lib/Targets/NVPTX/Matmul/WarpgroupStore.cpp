//===- WarpgroupStore.cpp - How warpgroups store results ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/WarpgroupStore.h"

#include "Kernel/Block.h"
#include "Matmul/WarpgroupTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// What is swizzled, and the columns that neighbouring sums of a thread are of.
static constexpr int64_t kChunkBytes = 16, kPieceCols = 8;
/// The barrier of the first warpgroup.
static constexpr int64_t kFirstBarrier = 1;

WarpgroupStore::WarpgroupStore(MatmulPlanAttr plan, Type type, Value bytes,
                               int64_t from, Value thread, Value map)
    : plan(plan), type(type), bytes(bytes), from(from), thread(thread),
      map(map) {}

/// Bytes of a row of a box: as many as can be swizzled and divide a row of the
/// tile. 0 where there are none.
int64_t WarpgroupStore::boxBytes(MatmulPlanAttr plan, Type type) {
  const int64_t row = plan.getTileN() * (type.getIntOrFloatBitWidth() / 8);
  for (int64_t size : {128, 64, 32})
    if (row % size == 0)
      return size;
  return 0;
}

bool WarpgroupStore::isPossible(MatmulPlanAttr plan, Type type,
                                int64_t columns) {
  if (!type.isIntOrFloat() || ShapedType::isDynamic(columns))
    return false;
  const bool isKnown = type.isF16() || type.isBF16() || type.isF32() ||
                       type.isInteger(32) || type.getIntOrFloatBitWidth() == 8;
  return isKnown &&
         columns * (type.getIntOrFloatBitWidth() / 8) % kChunkBytes == 0 &&
         boxBytes(plan, type) != 0;
}

Value WarpgroupStore::makeMap(ImplicitLocOpBuilder &b, MatmulPlanAttr plan,
                              Value memref, ArrayRef<Value> sizes) {
  Type type = getElementTypeOrSelf(memref);
  const int64_t row = boxBytes(plan, type);
  SmallVector<int64_t> box = {row / (type.getIntOrFloatBitWidth() / 8),
                              kGroupRows};
  box.resize(sizes.size(), 1);
  return TensorMapOp::create(b, memref, sizes, box, row, /*tf32=*/false,
                             /*lower=*/{}, /*upper=*/{}, /*steps=*/{});
}

Value WarpgroupStore::group(ImplicitLocOpBuilder &b) {
  return Indices(b).div(thread, MatmulPlanAttr::kWarpgroup);
}

/// Where a box begins.
Value WarpgroupStore::slotAt(ImplicitLocOpBuilder &b, int64_t box) {
  Indices i(b);
  const int64_t slot = box % countSlots() * (kGroupResultBytes / 2);
  return i.add(i.mul(group(b), kGroupResultBytes), from + slot);
}

/// Where chunk `chunk` xor `more` of a row of a box is.
Value WarpgroupStore::byteAt(ImplicitLocOpBuilder &b, Value row, int64_t chunk,
                             Value more, Value slot) {
  constexpr int64_t kPeriod = 128;
  const int64_t rowBytes = boxBytes(plan, type);
  Indices i(b);
  // Of rows that lie in one period of banks the chunks change places alike.
  Value swizzle = i.rem(i.div(row, kPeriod / rowBytes), rowBytes / kChunkBytes);
  Value place = i.exclusiveOr(i.exclusiveOr(swizzle, more), i.constant(chunk));
  return i.add(slot, i.add(i.mul(row, rowBytes), i.mul(place, kChunkBytes)));
}

/// Two numbers of 16 bits.
Value WarpgroupStore::packWord(ImplicitLocOpBuilder &b, ValueRange pair) {
  Value both = LLVM::PoisonOp::create(b, VectorType::get({2}, type));
  for (auto [j, value] : llvm::enumerate(pair))
    both = LLVM::InsertElementOp::create(b, both, value, word(b, j));
  return LLVM::BitcastOp::create(b, b.getI32Type(), both);
}

/// Numbers of 16 bits, 16 columns at a time: stmatrix takes rows of 16 bytes,
/// whose places the lanes give, from the registers of the whole warp.
void WarpgroupStore::storeMatrices(ImplicitLocOpBuilder &b, int64_t box,
                                   FindPair findPair) {
  Indices i(b);
  Value lane = i.rem(thread, 32);
  Value row = i.add(i.mul(i.rem(i.div(thread, 32), 4), 16), i.rem(lane, 16));
  Value slot = slotAt(b, box);
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  const int64_t pieces = boxCols() / kPieceCols;
  for (int64_t piece = 0; piece < pieces; piece += 2) {
    SmallVector<Value> words;
    for (int64_t next = 0; next < 2; ++next)
      for (int64_t half = 0; half < 2; ++half)
        words.push_back(
            packWord(b, findPair(half, box * pieces + piece + next)));
    Value at = byteAt(b, row, piece, i.div(lane, 16), slot);
    NVVM::StMatrixOp::create(b, addressOf(b, bytes, at), words,
                             NVVM::MMALayout::row, shape,
                             NVVM::LdStMatrixEltType::B16);
  }
}

/// Numbers of other sizes, each lane its own.
void WarpgroupStore::storePairs(ImplicitLocOpBuilder &b, int64_t box,
                                FindPair findPair) {
  Indices i(b);
  Value lane = i.rem(thread, 32);
  Value row0 = i.add(i.mul(i.rem(i.div(thread, 32), 4), 16), i.div(lane, 4));
  Value col = i.mul(i.rem(lane, 4), 2); // in a piece
  Value slot = slotAt(b, box);
  const int64_t pieceBytes = kPieceCols * elementBytes();
  // A piece is some chunks, or a part of one.
  Value inPiece = i.mul(col, elementBytes());
  Value more = i.div(inPiece, kChunkBytes);
  const int64_t pieces = boxCols() / kPieceCols;
  auto pairType =
      VectorType::get({2}, elementBytes() == 1 ? b.getI8Type() : Type(type));
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t half = 0; half < 2; ++half) {
      Value both = LLVM::PoisonOp::create(b, pairType);
      for (auto [j, value] :
           llvm::enumerate(findPair(half, box * pieces + piece))) {
        if (value.getType() != pairType.getElementType())
          value = arith::BitcastOp::create(b, pairType.getElementType(), value);
        both = LLVM::InsertElementOp::create(b, both, value, word(b, j));
      }
      const int64_t first = piece * pieceBytes;
      Value at =
          byteAt(b, i.add(row0, half * 8), first / kChunkBytes, more, slot);
      at = i.add(at, i.add(i.rem(inPiece, kChunkBytes), first % kChunkBytes));
      LLVM::StoreOp::create(b, both, addressOf(b, bytes, at),
                            2 * elementBytes());
    }
}

void WarpgroupStore::joinGroup(ImplicitLocOpBuilder &b) {
  Value barrier = word(b, kFirstBarrier);
  if (plan.countGroups() > 1)
    barrier = arith::AddIOp::create(b, barrier, asWord(b, group(b)));
  NVVM::BarrierOp::create(b, TypeRange(), barrier,
                          word(b, MatmulPlanAttr::kWarpgroup),
                          NVVM::BarrierReductionAttr(), Value());
}

/// What the thread does that starts copies, the warpgroup's first.
void WarpgroupStore::ifFirst(ImplicitLocOpBuilder &b,
                             function_ref<void()> emit) {
  auto first = scf::IfOp::create(b, isFirstOfGroup(b, thread),
                                 /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(first.thenYield());
  emit();
}

/// Waits until at most so many copies are under way, or have yet to read.
void WarpgroupStore::waitForCopies(ImplicitLocOpBuilder &b, int64_t most,
                                   bool onlyRead) {
  ifFirst(b, [&] {
    NVVM::CpAsyncBulkWaitGroupOp::create(
        b, b.getI32IntegerAttr(static_cast<int32_t>(most)),
        onlyRead ? b.getUnitAttr() : UnitAttr());
  });
}

void WarpgroupStore::emit(ImplicitLocOpBuilder &b, FindPair findPair,
                          function_ref<SmallVector<Value>(int64_t col)> place) {
  for (int64_t box = 0; box < countBoxes(); ++box) {
    // What is written here now has been read.
    waitForCopies(b, countSlots() - 1, /*onlyRead=*/true);
    joinGroup(b);
    if (elementBytes() == 2)
      storeMatrices(b, box, findPair);
    else
      storePairs(b, box, findPair);
    NVVM::FenceProxyOp::create(
        b, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
    joinGroup(b);
    ifFirst(b, [&] {
      SmallVector<Value> coordinates;
      for (Value coordinate : place(box * boxCols()))
        coordinates.push_back(asWord(b, coordinate));
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          b, map, addressOf(b, bytes, slotAt(b, box)), coordinates,
          /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
          /*predicate=*/Value());
      NVVM::CpAsyncBulkCommitGroupOp::create(b);
    });
  }
}

void WarpgroupStore::finish(ImplicitLocOpBuilder &b) {
  waitForCopies(b, 0, /*onlyRead=*/false);
}
