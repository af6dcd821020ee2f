//===- LowerTranspose.cpp - Transposes by tiles in shared memory ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where another dimension becomes the fastest, a block reads a tile of these
// two in the order of the operand and writes it in that of the result, so that
// both are rows; between it lies in shared memory, with a gap after each row,
// so that columns are in different banks, too. Where rows stay rows, or one of
// the two dimensions has a few elements only, a thread has neighbours of the
// result.
//
//===----------------------------------------------------------------------===//

#include "Common/KernelBody.h"
#include "Kernel/Block.h"

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERTRANSPOSE
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// A dimension of fewer elements is not worth a tile.
static constexpr int64_t kFewest = 8;
/// Bytes that a thread moves at a time: by rows, and of a tile.
static constexpr int64_t kRowBytes = 16, kTileBytes = 4;

namespace {

class TransposeKernel {
public:
  TransposeKernel(linalg::TransposeOp op, Value source, Value target)
      : source(source), target(target), order(op.getPermutation()),
        rank(order.size()) {
    auto type = cast<MemRefType>(target.getType());
    bytes = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
    element = type.getElementType();
    for (int64_t dim = 0; dim < rank; ++dim)
      if (order[dim] == rank - 1)
        across = dim;
  }

  void emit(ImplicitLocOpBuilder &b) {
    for (int64_t dim = 0; dim < rank; ++dim)
      sizes.push_back(sizeOf(b, target, dim));
    auto isFew = [&](int64_t dim) {
      std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
      return size && *size < kFewest;
    };
    OpBuilder::InsertionGuard guard(b);
    if (across == rank - 1 || isFew(across) || isFew(rank - 1))
      emitElements(b);
    else
      emitTiles(b);
  }

private:
  SmallVector<Value> sourceIndex(ArrayRef<Value> index) const {
    SmallVector<Value> from(rank);
    for (int64_t dim = 0; dim < rank; ++dim)
      from[order[dim]] = index[dim];
    return from;
  }

  /// So many neighbours, at most, of rows of that size lie in `limit` bytes and
  /// are there together.
  int64_t widthOf(Value size, int64_t limit) const {
    std::optional<int64_t> known = getConstantIntValue(size);
    int64_t width = std::max<int64_t>(1, limit / bytes);
    while (width > 1 && (!known || *known % width))
      width /= 2;
    return width;
  }

  /// Threads in the order of the result.
  void emitElements(ImplicitLocOpBuilder &b) {
    Indices i(b);
    const int64_t width =
        across == rank - 1 ? widthOf(sizes.back(), kRowBytes) : 1;
    SmallVector<Value> grid(sizes);
    grid.back() = i.div(grid.back(), width);
    Value count = i.constant(1);
    for (Value size : grid)
      count = i.mul(count, size);
    scf::ParallelOp loop =
        startBlocks(b, i.ceilDiv(count, kThreads), kThreads, "transpose");
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(loop.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    SmallVector<Value> first = i.unflatten(number, grid);
    first.back() = i.mul(first.back(), width);
    moveNeighbours(b, first, rank - 1, width,
                   [&](ArrayRef<Value> index, int64_t) -> Value {
                     return memref::LoadOp::create(b, source,
                                                   sourceIndex(index));
                   });
  }

  /// Stores `width` elements along `dim` that are all loaded before.
  void
  moveNeighbours(ImplicitLocOpBuilder &b, ArrayRef<Value> first, int64_t dim,
                 int64_t width,
                 function_ref<Value(ArrayRef<Value> index, int64_t j)> loadAt) {
    Indices i(b);
    SmallVector<SmallVector<Value>> indices;
    SmallVector<Value> values;
    for (int64_t j = 0; j < width; ++j) {
      SmallVector<Value> &index = indices.emplace_back(first);
      index[dim] = i.add(index[dim], j);
      values.push_back(loadAt(index, j));
    }
    for (auto [index, value] : llvm::zip_equal(indices, values))
      memref::StoreOp::create(b, value, target, index);
  }

  int64_t tileSize() const { return bytes >= kTileBytes ? 32 : 64; }
  int64_t pitch() const {
    return tileSize() + std::max<int64_t>(1, kTileBytes / bytes);
  }

  /// A block has a tile of the result's dimensions `across` and the last.
  void emitTiles(ImplicitLocOpBuilder &b) {
    Indices i(b);
    const int64_t size = tileSize();
    SmallVector<Value> grid(sizes);
    for (int64_t dim : {across, rank - 1})
      grid[dim] = i.ceilDiv(grid[dim], size);
    Value blocks = i.constant(1);
    for (Value extent : grid)
      blocks = i.mul(blocks, extent);
    scf::ParallelOp loop = startBlocks(b, blocks, kThreads, "transpose");
    thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    SmallVector<Value> first = i.unflatten(loop.getInductionVars()[0], grid);
    for (int64_t dim : {across, rank - 1})
      first[dim] = i.mul(first[dim], size);
    Value tile = viewShared(b, allocateShared(b, size * pitch() * bytes), 0,
                            {size * pitch()}, element);
    // Element (c, r) of the tile: c along the operand's rows.
    auto placeOf = [&](Value r, Value c) {
      return i.add(i.mul(r, pitch()), c);
    };
    forEachPiece(b, first, rank - 1, across,
                 [&](ArrayRef<Value> index, Value r, Value c, int64_t width) {
                   SmallVector<Value> values;
                   SmallVector<Value> at(index);
                   for (int64_t j = 0; j < width; ++j) {
                     at[across] = i.add(index[across], j);
                     values.push_back(
                         memref::LoadOp::create(b, source, sourceIndex(at)));
                   }
                   for (auto [j, value] : llvm::enumerate(values))
                     memref::StoreOp::create(b, value, tile,
                                             placeOf(r, i.add(c, j)));
                 });
    gpu::BarrierOp::create(b);
    forEachPiece(b, first, across, rank - 1,
                 [&](ArrayRef<Value> index, Value c, Value r, int64_t width) {
                   moveNeighbours(b, index, rank - 1, width,
                                  [&](ArrayRef<Value>, int64_t j) -> Value {
                                    return memref::LoadOp::create(
                                        b, tile, placeOf(i.add(r, j), c));
                                  });
                 });
  }

  /// Visits the tile from `first` on, neighbours along `fast` at a time: at
  /// index, the `slow`th row of the tile and the `fast`th of its columns.
  void forEachPiece(ImplicitLocOpBuilder &b, ArrayRef<Value> first,
                    int64_t slow, int64_t fast,
                    function_ref<void(ArrayRef<Value> index, Value row,
                                      Value col, int64_t width)>
                        emitPiece) {
    Indices i(b);
    const int64_t width = widthOf(sizes[fast], kTileBytes);
    const int64_t piecesOfRow = tileSize() / width;
    const int64_t pieces = tileSize() * piecesOfRow;
    for (int64_t turn = 0; turn < pieces; turn += kThreads) {
      Value number = i.add(thread, turn);
      Value row = i.div(number, piecesOfRow);
      Value col = i.mul(i.rem(number, piecesOfRow), width);
      SmallVector<Value> index(first);
      index[slow] = i.add(index[slow], row);
      index[fast] = i.add(index[fast], col);
      Value exists = i.both(i.less(index[slow], sizes[slow]),
                            i.less(index[fast], sizes[fast]));
      auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(some.thenYield());
      emitPiece(index, row, col, width);
    }
  }

  const Value source, target;
  const ArrayRef<int64_t> order;
  const int64_t rank;
  /// The dimension of the result that is the operand's fastest.
  int64_t across = 0;
  int64_t bytes = 0;
  Type element;
  SmallVector<Value> sizes; // of the result
  Value thread;
};

/// The only operation of a kernel that is a transpose of a buffer, or null.
linalg::TransposeOp findTranspose(func::FuncOp func, const KernelBody &body) {
  linalg::TransposeOp found;
  for (Operation &op : func.getBody().front()) {
    if (!isa<linalg::LinalgOp, sdx::DenseOpInterface, scf::ForallOp, scf::ForOp,
             scf::IfOp>(op))
      continue;
    auto transpose = dyn_cast<linalg::TransposeOp>(op);
    if (!transpose || found)
      return {};
    found = transpose;
  }
  if (!found || !found.hasPureTensorSemantics() ||
      found.getPermutation().empty() ||
      !KernelBody::hasBuffer(found.getInput()) ||
      body.getOutputs().size() != 1 ||
      body.getOutputs().front().tensor != found.getResult()[0])
    return {};
  return found;
}

struct LowerTransposePass
    : sardonyx::impl::NVLowerTransposeBase<LowerTransposePass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func))
      return;
    KernelBody body(func);
    linalg::TransposeOp op = findTranspose(func, body);
    if (op && failed(body.replaceWith([&](auto &b) {
          Value target = body.getOutputs().front().memref;
          TransposeKernel(op, body.getBuffer(op.getInput()), target).emit(b);
        })))
      signalPassFailure();
  }
};

} // namespace
