//===- MmaFragment.cpp - Scores where tensor cores put them ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/MmaFragment.h"

#include "Kernel/Block.h"
#include "Matmul/MmaPiece.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

Value nv::warpRow(ImplicitLocOpBuilder &b, Value thread) {
  Indices i(b);
  return i.mul(i.div(thread, 32), kMmaRows);
}

SmallVector<Value> nv::mmaRows(ImplicitLocOpBuilder &b, Value thread) {
  Indices i(b);
  Value first = i.add(warpRow(b, thread), i.div(i.rem(thread, 32), 4));
  return {first, i.add(first, 8)};
}

SmallVector<Value> nv::mmaPairs(ImplicitLocOpBuilder &b, Value thread,
                                int64_t size) {
  Indices i(b);
  Value first = i.mul(i.rem(thread, 4), 2);
  SmallVector<Value> numbers;
  for (int64_t piece = 0; piece < size; piece += kMmaCols)
    for (int64_t j = 0; j < 2; ++j)
      numbers.push_back(i.add(first, piece + j));
  return numbers;
}

SmallVector<Value> nv::byRows(ValueRange pieces) {
  SmallVector<Value> rows;
  for (int64_t row = 0; row < 2; ++row)
    for (size_t piece = 0; piece < pieces.size(); piece += kMmaSums)
      for (int64_t j = 0; j < 2; ++j)
        rows.push_back(pieces[piece + 2 * row + j]);
  return rows;
}

SmallVector<Value> nv::byPieces(ValueRange rows) {
  SmallVector<Value> pieces;
  const size_t half = rows.size() / 2;
  for (size_t piece = 0; piece < half; piece += 2)
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t j = 0; j < 2; ++j)
        pieces.push_back(rows[row * half + piece + j]);
  return pieces;
}

SmallVector<Value> nv::packPieces(ImplicitLocOpBuilder &b, ValueRange pieces,
                                  Type type) {
  SmallVector<Value> packed;
  for (size_t j = 0; j < pieces.size(); j += 2) {
    Value two =
        vector::FromElementsOp::create(b, VectorType::get({2}, b.getF32Type()),
                                       ValueRange{pieces[j], pieces[j + 1]});
    Value rounded = arith::TruncFOp::create(b, VectorType::get({2}, type), two);
    packed.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), rounded));
  }
  return packed;
}
