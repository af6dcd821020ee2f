//===- Block.cpp - What the threads of a block do together ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"

#include "dialects/NV/NV.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

Value Indices::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value Indices::add(Value x, Value y) {
  if (isConstantIntValue(x, 0))
    return y;
  if (isConstantIntValue(y, 0))
    return x;
  return b.createOrFold<arith::AddIOp>(x, y);
}

Value Indices::mul(Value x, Value y) {
  if (isConstantIntValue(x, 1))
    return y;
  if (isConstantIntValue(y, 1))
    return x;
  return b.createOrFold<arith::MulIOp>(x, y);
}

Value Indices::div(Value x, Value y) {
  return isConstantIntValue(y, 1) ? x : b.createOrFold<arith::DivUIOp>(x, y);
}

Value Indices::rem(Value x, Value y) {
  return isConstantIntValue(y, 1) ? constant(0)
                                  : b.createOrFold<arith::RemUIOp>(x, y);
}

Value Indices::exclusiveOr(Value x, Value y) {
  return b.createOrFold<arith::XOrIOp>(x, y);
}

Value Indices::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y);
}

Value Indices::both(Value x, Value y) {
  return b.createOrFold<arith::AndIOp>(x, y);
}

/// Whether all positions in a grid of `sizes` are numbers of 32 bits, and some
/// beyond.
static bool isShort(ArrayRef<Value> sizes) {
  int64_t count = 1;
  for (Value size : sizes) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known || *known >= INT32_MAX)
      return false;
    count *= *known;
    if (count >= INT32_MAX / 2)
      return false;
  }
  return true;
}

SmallVector<Value> Indices::unflatten(Value flat, ArrayRef<Value> sizes) {
  SmallVector<Value> index(sizes.size());
  if (sizes.size() < 2) {
    if (!index.empty())
      index[0] = flat;
    return index;
  }
  // Divisions of 32 bits are a fraction of those of 64.
  const bool shorten = isShort(sizes) && !getConstantIntValue(flat);
  Type i32 = b.getI32Type();
  if (shorten)
    flat = arith::IndexCastOp::create(b, i32, flat);
  auto back = [&](Value value) -> Value {
    return shorten ? arith::IndexCastUIOp::create(b, b.getIndexType(), value)
                         .getResult()
                   : value;
  };
  for (int64_t dim = int64_t(sizes.size()) - 1; dim > 0; --dim) {
    if (isConstantIntValue(sizes[dim], 1)) {
      index[dim] = constant(0);
      continue;
    }
    Value size = sizes[dim];
    if (shorten)
      size = arith::ConstantIntOp::create(b, i32,
                                          *getConstantIntValue(sizes[dim]));
    index[dim] = back(b.createOrFold<arith::RemUIOp>(flat, size));
    flat = b.createOrFold<arith::DivUIOp>(flat, size);
  }
  index[0] = back(flat);
  return index;
}

Value nv::hoistValue(OpBuilder *b, Value value, Region &region) {
  if (value.getParentRegion()->isProperAncestor(&region))
    return value;
  Operation *op = value.getDefiningOp();
  if (!op || !isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return {};
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value hoisted = hoistValue(b, operand, region);
    if (!hoisted)
      return {};
    mapping.map(operand, hoisted);
  }
  if (!b)
    return value;
  return b->clone(*op, mapping)
      ->getResult(cast<OpResult>(value).getResultNumber());
}

bool nv::mayHaveBlocks(func::FuncOp func) {
  return func->hasAttr(sdx::kKernelAttr) && !func.isDeclaration() &&
         !isa_and_nonnull<LoopsAttr>(func->getAttr(kPlanAttr));
}

scf::ParallelOp nv::startBlocks(ImplicitLocOpBuilder &b, Value blocks,
                                int64_t threads, StringRef step) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto loop = scf::ParallelOp::create(b, zero, blocks, one);
  loop->setAttr(kThreadsAttr, b.getI64IntegerAttr(threads));
  loop->setAttr(kStepAttr, b.getStringAttr(step));
  b.setInsertionPointToStart(loop.getBody());
  return loop;
}

static Attribute workgroupSpace(MLIRContext *context) {
  return gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Workgroup);
}

Value nv::allocateShared(ImplicitLocOpBuilder &b, int64_t bytes) {
  auto type =
      MemRefType::get({bytes}, b.getI8Type(), MemRefLayoutAttrInterface(),
                      workgroupSpace(b.getContext()));
  return SharedMemoryOp::create(b, type);
}

Value nv::viewShared(ImplicitLocOpBuilder &b, Value bytes, int64_t byteOffset,
                     ArrayRef<int64_t> shape, Type type) {
  auto view = MemRefType::get(shape, type, MemRefLayoutAttrInterface(),
                              workgroupSpace(b.getContext()));
  Value offset = arith::ConstantIndexOp::create(b, byteOffset);
  return memref::ViewOp::create(b, view, bytes, offset, ValueRange());
}

Value nv::addressOf(ImplicitLocOpBuilder &b, Value memref, Value index) {
  auto type = cast<MemRefType>(memref.getType());
  bool isShared = type.getMemorySpace() == workgroupSpace(b.getContext());
  unsigned space = static_cast<unsigned>(
      isShared ? NVVM::NVVMMemorySpace::Shared : NVVM::NVVMMemorySpace::Global);
  Indices i(b);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value at = i.add(base, i.mul(index, (type.getElementTypeBitWidth() + 7) / 8));
  Value word = arith::IndexCastOp::create(b, b.getI64Type(), at);
  return LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), space), word);
}

Value nv::loadAt(ImplicitLocOpBuilder &b, Value memref, Value index) {
  auto type = cast<MemRefType>(memref.getType()).getElementType();
  return LLVM::LoadOp::create(b, type, addressOf(b, memref, index));
}

void nv::joinCluster(ImplicitLocOpBuilder &b, bool isAligned) {
  UnitAttr aligned = isAligned ? b.getUnitAttr() : UnitAttr();
  NVVM::ClusterArriveOp::create(b, aligned);
  NVVM::ClusterWaitOp::create(b, aligned);
}

Value nv::loadFromCluster(ImplicitLocOpBuilder &b, Value memref, Value index,
                          Value rank) {
  auto type = cast<MemRefType>(memref.getType()).getElementType();
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  Value number = arith::IndexCastOp::create(b, b.getI32Type(), rank);
  Value address =
      NVVM::MapaOp::create(b, pointer, addressOf(b, memref, index), number);
  return LLVM::LoadOp::create(b, type, address);
}

bool nv::canPrefetch(Operation *op) {
  // LLVM knows the instruction from there on.
  constexpr int64_t kPtxVersion = 80;
  TargetAttr target = getTargetOrDefault(op);
  return target.hasEarlyStarts() && target.getPtxVersion() >= kPtxVersion;
}

void nv::prefetch(ImplicitLocOpBuilder &b, Value memref, Value index) {
  NVVM::PrefetchOp::create(b,
                           NVVM::PrefetchCacheLevelAttr::get(
                               b.getContext(), NVVM::PrefetchCacheLevel::L2),
                           /*evictPriority=*/nullptr,
                           addressOf(b, memref, index),
                           /*predicate=*/Value());
}

Value nv::sizeOf(ImplicitLocOpBuilder &b, Value memref, int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return arith::ConstantIndexOp::create(b, type.getDimSize(dim));
  return memref::DimOp::create(b, memref, dim);
}
