//===- TileProduct.cpp - Products by tile registers -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The intrinsics themselves and not the amx dialect: its tiles cannot be
// carried by a loop through passes that lower one dialect at a time.
//
//===----------------------------------------------------------------------===//

#include "TileProduct.h"
#include "IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx::cpu;

static Value asI64(ImplicitLocOpBuilder &b, Value index) {
  return arith::IndexCastOp::create(b, b.getI64Type(), index);
}

TileOperand sardonyx::cpu::getTileOperand(ImplicitLocOpBuilder &b, Value memref,
                                          ValueRange indices) {
  IndexMath math(b);
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value position = indices.front();
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    position =
        math.add(math.mul(position, math.dim(memref, dim)), indices[dim]);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value row = math.dim(memref, type.getRank() - 1);
  return {asI64(b, math.add(base, math.mul(position, bytes))),
          asI64(b, math.mul(row, bytes))};
}

namespace {

/// Emits the intrinsics on whole tile registers.
class TileEmitter {
public:
  TileEmitter(ImplicitLocOpBuilder &b, Type type)
      : b(b), product(type.isBF16() ? "llvm.x86.tdpbf16ps.internal"
                                    : "llvm.x86.tdpbusd.internal"),
        tile(LLVM::LLVMX86AMXType::get(b.getContext())), rows(i16(kTileRows)),
        bytes(i16(kTileBytes)) {}

  Value zero() {
    return intrinsic("llvm.x86.tilezero.internal", tile, {rows, bytes});
  }
  Value load(Value address, Value stride) {
    return intrinsic("llvm.x86.tileloadd64.internal", tile,
                     {rows, bytes, pointer(address), stride});
  }
  void store(Value address, Value stride, Value value) {
    LLVM::CallIntrinsicOp::create(
        b, b.getStringAttr("llvm.x86.tilestored64.internal"),
        ValueRange{rows, bytes, pointer(address), stride, value});
  }
  Value multiply(Value lhs, Value rhs, Value sum) {
    return intrinsic(product, tile, {rows, bytes, bytes, sum, lhs, rhs});
  }
  Value plus(Value address, int64_t distance) {
    if (distance == 0)
      return address;
    return arith::AddIOp::create(b, address, i64(distance));
  }
  Value plus(Value address, Value distance) {
    return arith::AddIOp::create(b, address, distance);
  }
  Value times(Value value, int64_t factor) {
    return arith::MulIOp::create(b, value, i64(factor));
  }

private:
  Value i16(int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI16Type(),
                                    b.getI16IntegerAttr(value));
  }
  Value i64(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value pointer(Value address) {
    return LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext()), address);
  }
  Value intrinsic(StringRef name, Type type, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }

  ImplicitLocOpBuilder &b;
  StringRef product;
  Type tile;
  Value rows, bytes;
};

} // namespace

void sardonyx::cpu::emitTileProduct(ImplicitLocOpBuilder &b, Type type,
                                    int64_t rowTiles, Value steps,
                                    TileOperand lhs, TileOperand rhs,
                                    TileOperand dest) {
  constexpr int64_t kColumnTiles = 2;
  IndexMath math(b);
  TileEmitter tiles(b, type);
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rowTiles * kColumnTiles; ++i)
    sums.push_back(tiles.zero());
  Value lhsTile = tiles.times(lhs.stride, kTileRows);
  Value rhsStep = tiles.times(rhs.stride, kTileRows);
  auto loop =
      scf::ForOp::create(b, math.constant(0), steps, math.constant(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value step = asI64(b, loop.getInductionVar());
    Value left = tiles.plus(lhs.address, tiles.times(step, kTileBytes));
    Value right =
        tiles.plus(rhs.address, Value(arith::MulIOp::create(b, step, rhsStep)));
    SmallVector<Value> rows, columns, next;
    for (int64_t r = 0; r < rowTiles; ++r) {
      rows.push_back(tiles.load(left, lhs.stride));
      left = tiles.plus(left, lhsTile);
    }
    for (int64_t c = 0; c < kColumnTiles; ++c)
      columns.push_back(
          tiles.load(tiles.plus(right, c * kTileBytes), rhs.stride));
    for (int64_t r = 0; r < rowTiles; ++r)
      for (int64_t c = 0; c < kColumnTiles; ++c)
        next.push_back(
            tiles.multiply(rows[r], columns[c],
                           loop.getRegionIterArgs()[r * kColumnTiles + c]));
    scf::YieldOp::create(b, next);
  }
  Value destTile = tiles.times(dest.stride, kTileRows);
  Value address = dest.address;
  for (int64_t r = 0; r < rowTiles; ++r) {
    for (int64_t c = 0; c < kColumnTiles; ++c)
      tiles.store(tiles.plus(address, c * kTileBytes), dest.stride,
                  loop.getResult(r * kColumnTiles + c));
    address = tiles.plus(address, destTile);
  }
}
