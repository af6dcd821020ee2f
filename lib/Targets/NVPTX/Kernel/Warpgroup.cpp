//===- Warpgroup.cpp - What warpgroups meet at ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Warpgroup.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Nanoseconds that a thread sleeps at most before it looks at a barrier again.
static constexpr int64_t kPatience = 10'000'000;

Value nv::word(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

Value nv::asWord(ImplicitLocOpBuilder &b, Value index) {
  return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
}

MappedSource MappedSource::matrix(ImplicitLocOpBuilder &b, Value memref,
                                  ArrayRef<Value> sizes, ArrayRef<int64_t> box,
                                  bool rounds,
                                  std::function<Value()> findPair) {
  SmallVector<int64_t> boxSizes(box);
  boxSizes.resize(sizes.size(), 1);
  MappedSource source;
  source.map =
      TensorMapOp::create(b, memref, sizes, boxSizes, kMapRowBytes, rounds,
                          /*lower=*/{}, /*upper=*/{}, /*steps=*/{});
  source.find = [findPair](ImplicitLocOpBuilder &, Value row,
                           Value col) -> Place {
    SmallVector<Value> at = {col, row};
    if (findPair)
      at.push_back(findPair());
    return {at, {}};
  };
  return source;
}

Ring Ring::next(ImplicitLocOpBuilder &b, int64_t stages) const {
  Indices i(b);
  Value following = i.add(stage, 1);
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, following,
                                       i.constant(stages));
  Value other = arith::XOrIOp::create(b, phase, word(b, 1));
  return {arith::SelectOp::create(b, isLast, i.constant(0), following),
          arith::SelectOp::create(b, isLast, other, phase)};
}

void nv::waitFor(ImplicitLocOpBuilder &b, Value barrier, Value phase) {
  NVVM::MBarrierTryWaitParityOp::create(b, barrier, phase, word(b, kPatience));
}

void nv::arriveWhere(ImplicitLocOpBuilder &b, Value condition,
                     llvm::function_ref<Value()> barrier) {
  auto some = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(some.thenYield());
  NVVM::MBarrierArriveOp::create(b, b.getI64Type(), barrier(), Value());
}

static LLVM::LLVMPointerType clusterPointer(ImplicitLocOpBuilder &b) {
  return LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
}

void nv::arriveAtAllWhere(ImplicitLocOpBuilder &b, Value condition,
                          int64_t blocks, llvm::function_ref<Value()> barrier) {
  auto some = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(some.thenYield());
  Value own = barrier();
  for (int64_t block = 0; block < blocks; ++block) {
    Value of = NVVM::MapaOp::create(b, clusterPointer(b), own, word(b, block));
    NVVM::MBarrierArriveOp::create(b, TypeRange(), of, Value(),
                                   NVVM::MemScopeKind::CLUSTER,
                                   /*relaxed=*/false);
  }
}

Value nv::isOfFirstGroups(ImplicitLocOpBuilder &b, Value thread,
                          int64_t groups) {
  Indices i(b);
  // What the first lane of a warp says: all of it goes the same way.
  Value group = i.div(thread, kWarpgroupThreads);
  Value same = gpu::ShuffleOp::create(b, asWord(b, group), word(b, 0),
                                      word(b, 32), gpu::ShuffleMode::IDX)
                   .getShuffleResult();
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, same,
                               word(b, groups));
}

Value nv::isFirstOfGroup(ImplicitLocOpBuilder &b, Value thread) {
  Indices i(b);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                               i.rem(thread, kWarpgroupThreads), i.constant(0));
}

void nv::copyBox(ImplicitLocOpBuilder &b, const MappedSource &source, Value row,
                 Value col, Value to, Value barrier, int64_t blocks) {
  const MappedSource::Place place = source.find(b, row, col);
  SmallVector<Value> coordinates, offsets;
  for (Value coordinate : place.coordinates)
    coordinates.push_back(asWord(b, coordinate));
  for (Value offset : place.offsets)
    offsets.push_back(
        b.createOrFold<arith::IndexCastOp>(b.getI16Type(), offset));
  Value mask;
  if (blocks > 1)
    mask = arith::ConstantIntOp::create(b, (int64_t(1) << blocks) - 1, 16);
  to = LLVM::AddrSpaceCastOp::create(b, clusterPointer(b), to);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, to, source.map, coordinates, barrier, offsets, mask,
      /*l2CacheHint=*/Value(),
      offsets.empty() ? NVVM::TMALoadMode::TILE : NVVM::TMALoadMode::IM2COL,
      /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(),
      /*predicate=*/Value());
}

/// The descriptor of a tile in shared memory (PTX ISA, "Matrix descriptor
/// format"): where it begins, how far its 8x8 cores are from each other along
/// and across rows, all in units of 16 bytes, and the swizzle of 128 bytes.
Value nv::describeTile(ImplicitLocOpBuilder &b, Value bytes, Value byte,
                       std::optional<int64_t> boxRows) {
  constexpr uint64_t kUnit = 16, kSwizzle128 = uint64_t(1) << 62;
  // Of eight rows; from 64 columns to the next where these go across K.
  constexpr uint64_t kEightRows = 8 * kMapRowBytes / kUnit;
  const uint64_t columns = boxRows ? *boxRows * kMapRowBytes / kUnit : 1;
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, bytes);
  Value address = b.createOrFold<arith::IndexCastOp>(
      b.getI64Type(), Indices(b).add(base, byte));
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantIntOp::create(b, static_cast<int64_t>(value), 64);
  };
  Value start = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, address, constant(4)), constant(0x3fff));
  return arith::OrIOp::create(
      b, start, constant(columns << 16 | kEightRows << 32 | kSwizzle128));
}
