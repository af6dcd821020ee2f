//===- EpiloguePrefetch.cpp - Fetching what tiles read and write ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Kernel/Epilogue.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

SmallVector<TileEvaluator::FarBuffer>
TileEvaluator::findFarBuffers(int64_t cacheBytes) {
  SmallVector<FarBuffer> result;
  SmallVector<Value> outputs;
  for (const KernelBody::Output &output : body.getOutputs())
    outputs.push_back(output.memref);
  ArrayRef<int64_t> shape =
      cast<MemRefType>(collapsed[getOutputKey(outputs.front())].getType())
          .getShape();
  // What an open size, of a batch or a sequence, is taken for.
  constexpr int64_t kOpenSize = 256;
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= ShapedType::isDynamic(size) ? kOpenSize : size;
  for (auto [key, flat] : collapsed) {
    auto type = cast<MemRefType>(flat.getType());
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    if (type.getShape() == shape && elements * bytes > cacheBytes)
      result.push_back({flat, llvm::is_contained(outputs, key.first), bytes});
  }
  return result;
}

void TileEvaluator::prefetchOutputs(ImplicitLocOpBuilder &b, const Tile &tile,
                                    int64_t rows, int64_t cacheBytes) {
  IndexMath math(b);
  for (const FarBuffer &buffer : findFarBuffers(cacheBytes)) {
    int64_t line = Prefetch::kLineBytes / buffer.elementBytes;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < tile.width; i += line) {
        SmallVector<Value> indices(tile.index);
        indices[rowDim] = math.add(indices[rowDim], r);
        indices.push_back(math.add(tile.position, i));
        memref::PrefetchOp::create(b, buffer.collapsed, indices,
                                   buffer.isWritten, /*localityHint=*/3,
                                   /*isDataCache=*/true);
      }
  }
}

void TileEvaluator::prefetchShare(ImplicitLocOpBuilder &b, ArrayRef<Tile> tiles,
                                  int64_t rows, Value number, int64_t shares,
                                  int64_t cacheBytes) {
  IndexMath math(b);
  int64_t share = llvm::divideCeil(rows, shares);
  Value first = math.mul(number, share);
  for (int64_t r = 0; r < share; ++r) {
    Value row = math.min(math.add(first, r), math.constant(rows - 1));
    for (Tile tile : tiles) {
      tile.index[rowDim] = math.add(tile.index[rowDim], row);
      prefetchOutputs(b, tile, /*rows=*/1, cacheBytes);
    }
  }
}

SmallVector<Prefetch>
TileEvaluator::prefetchNextOutputs(ImplicitLocOpBuilder &b, const Tile &tile,
                                   int64_t rows, int64_t cacheBytes,
                                   int64_t depth) {
  IndexMath math(b);
  SmallVector<Prefetch> result;
  if (rowDim + 1 != vectorDim)
    return result;
  for (const FarBuffer &buffer : findFarBuffers(cacheBytes)) {
    auto type = cast<MemRefType>(buffer.collapsed.getType());
    if (buffer.elementBytes != sizeof(float) ||
        ShapedType::isDynamic(type.getShape().back()))
      continue;
    Value row = math.constant(0);
    for (int64_t d = 0; d < vectorDim; ++d)
      row =
          math.add(math.mul(row, math.dim(buffer.collapsed, d)), tile.index[d]);
    int64_t stride = type.getShape().back();
    int64_t lines = llvm::divideCeil(tile.width, Prefetch::kLine);
    Value from = math.add(math.mul(math.add(row, rows), stride), tile.position);
    Prefetch prefetch =
        Prefetch::share(b,
                        {emitCollapse(b, buffer.collapsed, 0), from, stride,
                         rows, /*loops=*/1, depth, lines},
                        math.constant(0));
    prefetch.isWrite = buffer.isWritten;
    if (prefetch.memory)
      result.push_back(prefetch);
  }
  return result;
}
