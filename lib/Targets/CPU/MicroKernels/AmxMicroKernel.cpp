//===- AmxMicroKernel.cpp - Products by tile registers --------------------===//
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

#include "MicroKernels/AmxMicroKernel.h"
#include "Common/IndexMath.h"
#include "MicroKernels/MicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
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

/// Sums in memory: `rowTiles` tiles one below the other, `columnTiles` beside
/// each other.
struct TileGrid {
  int64_t rowTiles;
  TileOperand memory;
  int64_t columnTiles = kColumnTiles;
};

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

  /// The tiles of a grid, row by row.
  SmallVector<Value> loadGrid(const TileGrid &grid) {
    SmallVector<Value> loaded;
    forEachTile(grid, [&](Value address) {
      loaded.push_back(load(address, grid.memory.stride));
    });
    return loaded;
  }
  SmallVector<Value> zeroGrid(const TileGrid &grid) {
    SmallVector<Value> zeros;
    for (int64_t i = 0; i < grid.rowTiles * grid.columnTiles; ++i)
      zeros.push_back(zero());
    return zeros;
  }
  void storeGrid(const TileGrid &grid, ValueRange values) {
    forEachTile(grid, [&](Value address) {
      store(address, grid.memory.stride, values.front());
      values = values.drop_front();
    });
  }

private:
  void forEachTile(const TileGrid &grid, function_ref<void(Value)> visit) {
    Value below = times(grid.memory.stride, kTileRows);
    Value address = grid.memory.address;
    for (int64_t r = 0; r < grid.rowTiles; ++r) {
      for (int64_t c = 0; c < grid.columnTiles; ++c)
        visit(plus(address, c * kTileBytes));
      address = plus(address, below);
    }
  }
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
                                    TileOperand dest,
                                    std::optional<TileOperand> start,
                                    function_ref<void(Value)> meanwhile,
                                    std::optional<TileLines> lines) {
  IndexMath math(b);
  TileEmitter tiles(b, type);
  TileGrid grid{rowTiles, dest};
  Value lhsTile = tiles.times(lhs.stride, kTileRows);
  Value rhsStep = tiles.times(rhs.stride, kTileRows);
  auto loop = scf::ForOp::create(b, math.constant(0), steps, math.constant(1),
                                 start ? tiles.loadGrid({rowTiles, *start})
                                       : tiles.zeroGrid(grid));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value step = asI64(b, loop.getInductionVar());
    Value left = tiles.plus(lhs.address, tiles.times(step, kTileBytes));
    if (lines) {
      Value line = asI64(b, math.div(loop.getInductionVar(), lines->steps));
      Value jump = tiles.plus(lines->stride, -lines->steps * kTileBytes);
      left = tiles.plus(left, Value(arith::MulIOp::create(b, line, jump)));
    }
    Value right =
        tiles.plus(rhs.address, Value(arith::MulIOp::create(b, step, rhsStep)));
    SmallVector<Value> rows, columns, next;
    for (int64_t r = 0; r < rowTiles; ++r) {
      rows.push_back(tiles.load(left, lhs.stride));
      left = tiles.plus(left, lhsTile);
    }
    if (meanwhile)
      meanwhile(loop.getInductionVar());
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
  tiles.storeGrid(grid, loop.getResults());
}

void sardonyx::cpu::emitBf16x3Product(
    ImplicitLocOpBuilder &b, int64_t rowTiles, Value steps, bool startsFromZero,
    SplitRows lhs, SplitPanel rhs, TileOperand dest,
    function_ref<void(Value, int64_t)> meanwhile) {
  // Which parts are multiplied: from one to the next only one side changes. Of
  // a number that one part is exactly only that counts.
  using Product = std::pair<int64_t, int64_t>;
  constexpr Product kOfThree[] = {{2, 0}, {1, 0}, {0, 0},
                                  {0, 2}, {0, 1}, {1, 1}};
  constexpr Product kOfTwo[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}};
  auto countParts = [](Value memref) {
    return cast<MemRefType>(memref.getType()).getDimSize(2);
  };
  const int64_t parts = countParts(lhs.memref);
  const int64_t columnParts = countParts(rhs.memref);
  ArrayRef<Product> products(kOfThree);
  if (columnParts == 1)
    products = ArrayRef(kOfThree).slice(kBf16x3Terms - parts, parts);
  else if (parts == 2)
    products = kOfTwo;
  IndexMath math(b);
  TileEmitter tiles(b, b.getBF16Type());
  Value zero = math.constant(0);
  TileOperand left = getTileOperand(
      b, lhs.memref, {lhs.block, lhs.step ? lhs.step : zero, zero, zero, zero});
  TileOperand right = getTileOperand(
      b, rhs.memref,
      {rhs.slot, rhs.step ? rhs.step : zero, zero, zero, zero, zero});
  auto loadTiles = [&](Value address, int64_t part, int64_t count,
                       Value stride) {
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < count; ++i)
      loaded.push_back(tiles.load(
          tiles.plus(address, (2 * part + i) * kTileRows * kTileBytes),
          stride));
    return loaded;
  };
  TileGrid grid{rowTiles, dest, rhs.tiles};
  auto loop = scf::ForOp::create(b, zero, steps, math.constant(1),
                                 startsFromZero ? tiles.zeroGrid(grid)
                                                : tiles.loadGrid(grid));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    constexpr int64_t kBf16x3Bytes = 2 * kTileRows * kTileBytes;
    auto advance = [&](Value address, int64_t parts) {
      Value distance = tiles.times(asI64(b, step), parts * kBf16x3Bytes);
      return tiles.plus(address, distance);
    };
    Value leftStep = advance(left.address, parts);
    Value rightStep = advance(right.address, columnParts);
    SmallVector<Value> sums(loop.getRegionIterArgs()), rows, columns;
    int64_t ofRows = -1, ofColumns = -1;
    for (auto [number, product] : llvm::enumerate(products)) {
      auto [l, r] = product;
      meanwhile(step, number);
      if (ofRows != l)
        rows = loadTiles(leftStep, ofRows = l, rowTiles, left.stride);
      if (ofColumns != r)
        columns = loadTiles(rightStep, ofColumns = r, rhs.tiles, right.stride);
      for (auto [i, sum] : llvm::enumerate(sums))
        sum = tiles.multiply(rows[i / rhs.tiles], columns[i % rhs.tiles], sum);
    }
    scf::YieldOp::create(b, sums);
  }
  tiles.storeGrid(grid, loop.getResults());
}

namespace {

/// A row of the table that loops around a tile of registers ask for what they
/// emit: emitTileProduct() or emitBf16x3Product(). Its vectors are those of
/// what it leaves over.
class Amx : public MicroKernel {
public:
  Amx(StringRef name, ArrayRef<PackedElement> elements, Unit unit,
      bool (*isOn)(TargetAttr target), SplitForm form = {})
      : MicroKernel(name, elements, unit, form), isOn(isOn) {}

  bool isSupported(TargetAttr target) const override { return isOn(target); }

private:
  bool (*const isOn)(TargetAttr target);
};

} // namespace

namespace sardonyx::cpu {

const MicroKernel &getAmxInt8() {
  static const Amx kernel(
      "amx_int8", PackedElement::I8, MicroKernel::Unit::Tiles,
      [](TargetAttr target) { return target.getInt8() == Int8Product::Amx; });
  return kernel;
}

const MicroKernel &getAmxBf16() {
  static const Amx kernel(
      "amx_bf16", PackedElement::BF16, MicroKernel::Unit::Tiles,
      [](TargetAttr target) { return target.getBf16() == Bf16Product::Amx; });
  return kernel;
}

static bool splitsFloats(TargetAttr target) {
  return target.getF32() == F32Product::AmxBf16x6 &&
         target.getVectorBits() >= 512;
}

const MicroKernel &getAmxBf16x6() {
  static const Amx kernel("amx_bf16x6",
                          MicroKernel::withQuantized(PackedElement::F32),
                          MicroKernel::Unit::SplitTiles, splitsFloats);
  return kernel;
}

const MicroKernel &getAmxBf16x3() {
  static const Amx kernel(
      "amx_bf16x3", MicroKernel::withQuantized(), MicroKernel::Unit::SplitTiles,
      splitsFloats, {/*rowParts=*/3, /*columnParts=*/1, /*scalesSums=*/true});
  return kernel;
}

const MicroKernel &getAmxBf16x1() {
  static const Amx kernel("amx_bf16x1", MicroKernel::withQuantized(),
                          MicroKernel::Unit::SplitTiles,
                          [](TargetAttr target) {
                            return target.getBf16() == Bf16Product::Amx &&
                                   target.getVectorBits() >= 512;
                          },
                          {/*rowParts=*/1, /*columnParts=*/1});
  return kernel;
}

} // namespace sardonyx::cpu
