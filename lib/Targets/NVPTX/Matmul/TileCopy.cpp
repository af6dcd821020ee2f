//===- TileCopy.cpp - Tiles of matrices in shared memory ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/TileCopy.h"

#include "Kernel/Block.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

Value TileLayout::place(ImplicitLocOpBuilder &b, Value row, Value col) const {
  Indices i(b);
  switch (kind) {
  case Swizzled:
  case SwizzledByTwo: {
    const int64_t piece = 16 / elementBytes;
    Value mask = kind == Swizzled ? i.rem(row, 8) : i.mul(i.rem(row, 4), 2);
    Value number = i.exclusiveOr(i.div(col, piece), mask);
    return i.add(i.mul(row, cols),
                 i.add(i.mul(number, piece), i.rem(col, piece)));
  }
  case Padded:
    return i.add(i.mul(row, cols + kGap), col);
  case Transposed:
    return i.add(i.mul(col, rows + kGap), row);
  case Spaced:
    return i.add(i.mul(row, cols + 16 / elementBytes), col);
  }
  return {};
}

TileSource TileSource::matrix(Value memref, Value batch, Value numRows,
                              Value numCols) {
  TileSource source;
  source.memref = memref;
  // Rows are aligned where they are a multiple of 16 bytes: buffers are.
  auto type = cast<MemRefType>(memref.getType());
  std::optional<int64_t> size = getConstantIntValue(numCols);
  source.width = size ? 16 / ((type.getElementTypeBitWidth() + 7) / 8) : 1;
  while (source.width > 1 && *size % source.width)
    source.width /= 2;
  source.find = [=](ImplicitLocOpBuilder &b, Value row, Value col) -> Element {
    Indices i(b);
    Value inside = i.both(i.less(row, numRows), i.less(col, numCols));
    Value flat = row;
    if (batch)
      flat = i.add(i.mul(batch, numRows), row);
    return {i.add(i.mul(flat, numCols), col), inside};
  };
  return source;
}

TileCopy::TileCopy(TileSource source, TileLayout layout, Value thread,
                   int64_t threads)
    : source(source), layout(layout), thread(thread), threads(threads),
      width(layout.kind == TileLayout::Transposed ? 1 : source.width) {
  if (!isAsync())
    width = 1;
}

void TileCopy::emit(ImplicitLocOpBuilder &b, Value row, Value col, Value shared,
                    Value offset) const {
  Indices i(b);
  const int64_t piecesOfRow = layout.cols / width;
  const int64_t pieces = layout.rows * piecesOfRow;
  for (int64_t first = 0; first < pieces; first += threads) {
    Value piece = i.add(thread, first);
    OpBuilder::InsertionGuard guard(b);
    if (first + threads > pieces) {
      Value exists = i.less(piece, i.constant(pieces));
      auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPoint(some.thenYield());
    }
    Value r = i.div(piece, piecesOfRow);
    Value c = i.mul(i.rem(piece, piecesOfRow), width);
    copyPiece(b, row, col, r, c, shared, offset);
  }
}

void TileCopy::copyPiece(ImplicitLocOpBuilder &b, Value row, Value col, Value r,
                         Value c, Value shared, Value offset) const {
  Indices i(b);
  Value to = i.add(offset, layout.place(b, r, c));
  auto [index, exists] = source.find(b, i.add(row, r), i.add(col, c));
  if (isAsync()) {
    const int32_t bytes = width * layout.elementBytes;
    Value all = arith::ConstantIntOp::create(b, bytes, 32);
    Value none = arith::ConstantIntOp::create(b, 0, 32);
    Value size = b.createOrFold<arith::SelectOp>(exists, all, none);
    // Nothing is read of what does not exist, but it has an address.
    index = b.createOrFold<arith::SelectOp>(exists, index, i.constant(0));
    auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                             : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(b, addressOf(b, shared, to),
                            addressOf(b, source.memref, index), bytes, cache,
                            size);
    return;
  }
  auto type = cast<MemRefType>(source.memref.getType()).getElementType();
  auto load = scf::IfOp::create(b, type, exists, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(load.thenBlock());
    scf::YieldOp::create(b, loadAt(b, source.memref, index));
    b.setInsertionPointToStart(load.elseBlock());
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    scf::YieldOp::create(b, zero);
  }
  memref::StoreOp::create(b, load.getResult(0), shared, to);
}
