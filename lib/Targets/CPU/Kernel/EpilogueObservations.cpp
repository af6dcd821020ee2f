//===- EpilogueObservations.cpp - Values of tiles that are seen -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Kernel/Epilogue.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The buffers of what this task has seen: numbers of the tile's rows are put
/// behind those of tiles before, and the runtime sees many at a time. Makes
/// room for a tile.
SmallVector<TileEvaluator::ObservedBuffer>
TileEvaluator::prepareObserved(ImplicitLocOpBuilder &b, int64_t numbers) {
  SmallVector<ObservedBuffer> buffers;
  if (body.getObservations().empty())
    return buffers;
  // What a task begins another one does not go on with.
  Operation *task = b.getInsertionBlock()->getParentOp();
  while (!isa<scf::ParallelOp, scf::ForallOp, func::FuncOp>(task))
    task = task->getParentOp();
  constexpr int64_t kNumbers = 1024;
  const int64_t size = std::max(kNumbers, 2 * numbers);
  IndexMath math(b);
  for (auto [i, given] : llvm::enumerate(body.getObservations())) {
    sdx::ObserveOp op = given;
    ObservedBuffer &buffer = observed[{task, i, size}];
    if (!buffer.numbers) {
      Block &block = task->getRegion(0).front();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&block);
      buffer.numbers = memref::AllocaOp::create(
          b, MemRefType::get({1, size},
                             getElementTypeOrSelf(op.getValue().getType())));
      buffer.count =
          memref::AllocaOp::create(b, MemRefType::get({}, b.getIndexType()));
      memref::StoreOp::create(b, math.constant(0), buffer.count, ValueRange());
      Operation *end = block.getTerminator(), *last = end->getPrevNode();
      b.setInsertionPoint(end);
      emitObservation(b, op, buffer);
      for (Operation *next = last->getNextNode(); next != end;
           next = next->getNextNode())
        buffer.atEnd.push_back(next);
    }
    Value count = memref::LoadOp::create(b, buffer.count, ValueRange());
    emitIf(b, math.less(math.constant(size - numbers), count),
           [&] { emitObservation(b, op, buffer); });
    buffers.push_back(buffer);
    buffers.back().first =
        memref::LoadOp::create(b, buffer.count, ValueRange());
  }
  return buffers;
}

/// Has the runtime see what is in a buffer, which is empty then.
void TileEvaluator::emitObservation(ImplicitLocOpBuilder &b, sdx::ObserveOp op,
                                    const ObservedBuffer &buffer) {
  IndexMath math(b);
  Value count = memref::LoadOp::create(b, buffer.count, ValueRange());
  sdx::ObserveOp::create(b, buffer.numbers, ValueRange{math.constant(1), count},
                         op.getSite(), op.getKinds(), IntegerAttr());
  memref::StoreOp::create(b, math.constant(0), buffer.count, ValueRange());
}

/// The lanes of a tile that exist.
Value TileEvaluator::countLanes(ImplicitLocOpBuilder &b, const Tile &tile) {
  if (!tile.mask)
    return IndexMath(b).constant(tile.width);
  auto type = VectorType::get({tile.width}, b.getI32Type());
  Value lanes = arith::ExtUIOp::create(b, type, tile.mask);
  lanes = vector::ReductionOp::create(b, vector::CombiningKind::ADD, lanes);
  return arith::IndexCastOp::create(b, b.getIndexType(), lanes);
}
