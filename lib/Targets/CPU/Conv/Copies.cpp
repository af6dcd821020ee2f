//===- Copies.cpp - Elements of windows and lines in scratch memory ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/Copies.h"
#include "Common/IndexMath.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Calls `emit(at, width)` for pieces, vectors of a power of two of elements of
/// `memref`, that cover `size` elements; the last may overlap the one before.
static void forEachPiece(ImplicitLocOpBuilder &b, Value memref, int64_t size,
                         function_ref<void(Value, int64_t)> emit) {
  IndexMath math(b);
  constexpr int64_t kCopyBits = 512;
  int64_t width =
      kCopyBits / cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
  while (width > size)
    width /= 2;
  const int64_t whole = llvm::alignDown(size, width);
  // More in a row only make the code longer.
  constexpr int64_t kMostPieces = 12;
  if (whole > kMostPieces * width)
    emitFor(b, math.constant(0), math.constant(whole), width,
            [&](Value at) { emit(at, width); });
  else
    for (int64_t at = 0; at < whole; at += width)
      emit(math.constant(at), width);
  // As few as possible: one that ends with the last byte.
  if (int64_t rest = size - whole) {
    const int64_t last = llvm::PowerOf2Ceil(rest);
    emit(math.constant(size - last), last);
  }
}

void cpu::emitCopy(ImplicitLocOpBuilder &b, Value from, Value at, Value to,
                   Value row, Value column, int64_t size) {
  IndexMath math(b);
  forEachPiece(b, to, size, [&](Value offset, int64_t width) {
    Value piece = emitLoad(b, from, {math.add(at, offset)}, width);
    emitStore(b, piece, to, {row, math.add(column, offset)});
  });
}

void cpu::emitFill(ImplicitLocOpBuilder &b, int64_t value, Value to, Value row,
                   Value column, int64_t size) {
  IndexMath math(b);
  forEachPiece(b, to, size, [&](Value offset, int64_t width) {
    Type element = cast<MemRefType>(to.getType()).getElementType();
    auto type = VectorType::get({width}, element);
    // Floats are zero.
    Value piece = isa<FloatType>(element)
                      ? arith::ConstantOp::create(b, b.getZeroAttr(type))
                      : emitSplat(b, type, value);
    emitStore(b, piece, to, {row, math.add(column, offset)});
  });
}
