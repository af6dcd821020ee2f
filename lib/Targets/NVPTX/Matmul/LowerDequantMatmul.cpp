//===- LowerDequantMatmul.cpp - Products by packed weights ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Matmul/DequantRows.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERDEQUANTMATMUL
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// Bytes that are written to shared memory at a time.
static constexpr int64_t kBytes = 16;

namespace {

/// A product of many rows by weights of a few bits.
class ManyRows : public ProductKernel {
protected:
  ManyRows(sdx::DequantMatmulOp op, MatmulPlanAttr plan, KernelBody &body)
      : ProductKernel(cast<sdx::DenseOpInterface>(op.getOperation()),
                      getProductTypes(op), plan, body),
        dequant(op) {}

  bool hasOperands() override {
    return KernelBody::hasBuffer(dequant.getLhs());
  }

  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    Indices i(b);
    lhs = body.getBuffer(dequant.getLhs());
    sizes = {i.constant(1), sizeOf(b, lhs, 0), i.constant(dequant.getColumns()),
             i.constant(dequant.getDepth())};
    return sizes;
  }

  sdx::DequantMatmulOp dequant;
  Value lhs;
  Sizes sizes;
};

/// The weights become numbers of the other side's type on their way to the
/// tiles in shared memory.
class DequantTiles : public ManyRows {
public:
  DequantTiles(sdx::DequantMatmulOp op, MatmulPlanAttr plan, KernelBody &body,
               const PackedWeights &weights)
      : ManyRows(op, plan, body), weights(weights) {}

  /// Only where `condition` holds.
  void onlyIf(Value condition) { isWanted = condition; }

private:
  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    return TileSource::matrix(lhs, Value(), sizes.m, sizes.k);
  }

  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    return {};
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    return {m, n};
  }

  bool computesRhs() const override { return true; }

  int64_t piecesOfTileRow() const {
    return plan.getTileK() / weights.countValues();
  }
  int64_t piecesOfTile() const { return plan.getTileN() * piecesOfTileRow(); }
  int64_t turns() const {
    return llvm::divideCeil(piecesOfTile(), plan.countThreads());
  }

  /// The pieces of the tile that the thread has, one after the other.
  SmallVector<Value> readRhs(ImplicitLocOpBuilder &b, Value row,
                             Value col) override {
    Indices i(b);
    SmallVector<Value> read;
    for (int64_t turn = 0; turn < turns(); ++turn) {
      Value number = i.add(thread, turn * plan.countThreads());
      Value n = i.add(row, i.div(number, piecesOfTileRow()));
      Value piece = i.add(i.div(col, weights.countValues()),
                          i.rem(number, piecesOfTileRow()));
      Value isColumn = i.less(n, sizes.n);
      n = b.createOrFold<arith::SelectOp>(isColumn, n, i.constant(0));
      Value exists =
          i.both(isColumn, i.less(piece, i.constant(weights.piecesOfRow())));
      llvm::append_range(read, weights.load(b, n, piece, exists));
    }
    return read;
  }

  void writeRhs(ImplicitLocOpBuilder &b, ValueRange read, Value col,
                Value shared, Value offset) override {
    Indices i(b);
    const int64_t size = weights.types(b).size();
    for (int64_t turn = 0; turn < turns(); ++turn) {
      Value number = i.add(thread, turn * plan.countThreads());
      OpBuilder::InsertionGuard guard(b);
      if ((turn + 1) * plan.countThreads() > piecesOfTile()) {
        Value exists = i.less(number, i.constant(piecesOfTile()));
        auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
        b.setInsertionPoint(some.thenYield());
      }
      Value r = i.div(number, piecesOfTileRow());
      Value c = i.mul(i.rem(number, piecesOfTileRow()), weights.countValues());
      writePiece(b, read.slice(turn * size, size), col, r, c, shared, offset);
    }
  }

  /// Writes a piece to (r, c) of a tile that begins at `col` of K.
  void writePiece(ImplicitLocOpBuilder &b, ValueRange piece, Value col, Value r,
                  Value c, Value shared, Value offset) {
    Indices i(b);
    const TileLayout layout = tile->rhsLayout();
    const int64_t together =
        layout.kind == TileLayout::Transposed
            ? 1
            : std::min(weights.countValues(), kBytes / layout.elementBytes);
    for (int64_t at = 0; at < weights.countValues(); at += together) {
      SmallVector<Value> values;
      for (int64_t j = 0; j < together; ++j)
        values.push_back(evaluate(b, piece, at + j, i.add(col, c)));
      Value to = i.add(offset, layout.place(b, r, i.add(c, at)));
      storeTogether(b, values, shared, to);
    }
  }

  /// Weight number `at` of a piece that begins at `k`; 0 beyond K.
  Value evaluate(ImplicitLocOpBuilder &b, ValueRange piece, int64_t at,
                 Value k) {
    Indices i(b);
    Value factor = arith::ConstantOp::create(
        b,
        b.getF32FloatAttr(1.0 / double(int64_t(1) << weights.exponentOf(at))));
    Value scale = arith::MulFOp::create(b, weights.scaleOf(piece), factor);
    Value value = arith::MulFOp::create(b, scale, weights.unpack(b, piece, at));
    if (!types.rhs.isF32())
      value = arith::TruncFOp::create(b, types.rhs, value);
    if (dequant.getDepth() % weights.countValues() == 0)
      return value;
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(types.rhs));
    return arith::SelectOp::create(b, i.less(i.add(k, at), sizes.k), value,
                                   zero);
  }

  void storeTogether(ImplicitLocOpBuilder &b, ArrayRef<Value> values,
                     Value shared, Value to) {
    if (values.size() == 1) {
      memref::StoreOp::create(b, values[0], shared, to);
      return;
    }
    const int64_t count = values.size();
    auto type = VectorType::get({count}, types.rhs);
    Value together = LLVM::PoisonOp::create(b, type);
    for (auto [j, value] : llvm::enumerate(values))
      together = LLVM::InsertElementOp::create(
          b, together, value,
          LLVM::ConstantOp::create(b, b.getI32Type(), int64_t(j)));
    LLVM::StoreOp::create(b, together, addressOf(b, shared, to),
                          static_cast<unsigned>(count * types.rhsBytes()));
  }

  const PackedWeights &weights;
};

/// Both sides are floats of eight bits, which warpgroups multiply as they are.
class ByteFloatTiles : public ManyRows {
public:
  ByteFloatTiles(sdx::DequantMatmulOp op, MatmulPlanAttr plan, KernelBody &body)
      : ManyRows(op, plan, body) {}

private:
  MappedSource mapLhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    return MappedSource::matrix(b, lhs, {sizes.k, sizes.m}, {boxCols, boxRows},
                                /*rounds=*/false);
  }

  MappedSource mapRhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    return MappedSource::matrix(b, body.getBuffer(dequant.getWeights()),
                                {sizes.k, sizes.n}, {boxCols, boxRows},
                                /*rounds=*/false);
  }

  // Warpgroups copy by the maps.
  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    return {};
  }
  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    return {};
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    return {m, n};
  }

  Value scaleSum(ImplicitLocOpBuilder &b, Value sum, Value n) override {
    Value scale = memref::LoadOp::create(b, body.getBuffer(dequant.getScales()),
                                         ValueRange{n, Indices(b).constant(0)});
    return arith::MulFOp::create(b, sum, convertToF32(b, scale));
  }
};

struct LowerDequantMatmulPass
    : sardonyx::impl::NVLowerDequantMatmulBase<LowerDequantMatmulPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    TargetAttr target = getTargetOrDefault(func);
    auto products = findProducts<sdx::DequantMatmulOp>(func);
    if (products.empty() || !llvm::all_of(products, [](auto op) {
          return hasTiles(op) && hasOperands(op);
        }))
      return;
    sdx::DequantMatmulOp root = products.front();
    // Of few rows the kernel may compute more than the product.
    if (products.size() > 1 || !KernelBody::hasBuffer(root.getLhs()) ||
        HeadEpilogue::isNeeded(root.getResult()))
      return lowerFewRows(func, products, target);
    std::optional<MatmulPlanAttr> plan = getPlan(func, root);
    if (!plan)
      return;
    KernelBody body(func);
    if (getProductTypes(root).areByteFloats()) {
      ByteFloatTiles tiles(root, *plan, body);
      if (tiles.isPossible() &&
          failed(body.replaceWith([&](auto &b) { tiles.emit(b); })))
        signalPassFailure();
      return;
    }
    PackedWeights weights(root, body, plan->getTileK());
    DequantTiles tiles(root, *plan, body, weights);
    if (tiles.isPossible() && failed(body.replaceWith([&](auto &b) {
          emit(b, root, body, target, tiles);
        })))
      signalPassFailure();
  }

private:
  void lowerFewRows(func::FuncOp func, ArrayRef<sdx::DequantMatmulOp> products,
                    TargetAttr target) {
    const int64_t rows =
        sdx::DequantMatmulOp(products.front()).getLhs().getType().getDimSize(0);
    if (ShapedType::isDynamic(rows) || rows > kFewPackedRows)
      return;
    KernelBody body(func);
    DequantRows kernel(products, body, DequantRows::rowsOfBlock(rows), target);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b, Value()); })))
      signalPassFailure();
  }

  static bool hasOperands(sdx::DequantMatmulOp op) {
    return KernelBody::hasBuffer(op.getWeights()) &&
           KernelBody::hasBuffer(op.getScales()) &&
           (!op.getZeroPoints() || KernelBody::hasBuffer(op.getZeroPoints()));
  }

  /// Which form it is follows from the number of rows, which may be known when
  /// the kernel is started only: the others have no blocks then.
  static void emit(ImplicitLocOpBuilder &b, sdx::DequantMatmulOp op,
                   KernelBody &body, TargetAttr target, DequantTiles &tiles) {
    const int64_t known = op.getLhs().getType().getDimSize(0);
    if (!ShapedType::isDynamic(known)) {
      if (known > kFewPackedRows)
        return tiles.emit(b);
      return DequantRows(op, body, DequantRows::rowsOfBlock(known), target)
          .emit(b, Value());
    }
    Indices i(b);
    Value rows = sizeOf(b, body.getBuffer(op.getLhs()), 0);
    Value isOne = i.less(rows, i.constant(2));
    Value isFew = i.less(rows, i.constant(kFewPackedRows + 1));
    Value isSome =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, isFew, isOne);
    DequantRows(op, body, 1, target).emit(b, isOne);
    DequantRows(op, body, kPackedRowsOfBlock, target).emit(b, isSome);
    tiles.onlyIf(i.less(i.constant(kFewPackedRows), rows));
    tiles.emit(b);
  }
};

} // namespace
