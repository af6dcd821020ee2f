//===- VectorOps.cpp - Operations on vectors and on memory ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/VectorOps.h"
#include "Common/IndexMath.h"
#include "MicroKernels/ContractionLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value sardonyx::cpu::emitSplat(ImplicitLocOpBuilder &b, Type type,
                               int64_t value) {
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               vector, b.getIntegerAttr(vector.getElementType(), value)));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

Value sardonyx::cpu::emitFloatSplat(ImplicitLocOpBuilder &b, Type type,
                                    float value) {
  FloatAttr number = b.getF32FloatAttr(value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, number));
  return arith::ConstantOp::create(b, number);
}

Value sardonyx::cpu::emitLarger(ImplicitLocOpBuilder &b, Value largest,
                                Value value) {
  Value bits = arith::BitcastOp::create(b, largest.getType(), value);
  Value magnitude = arith::AndIOp::create(
      b, bits, emitSplat(b, largest.getType(), 0x7fffffff));
  return arith::MaxUIOp::create(b, largest, magnitude);
}

Value sardonyx::cpu::emitSplat32(ImplicitLocOpBuilder &b, Value index,
                                 int64_t width) {
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, b.getI32Type()), narrow);
}

Value sardonyx::cpu::emitInside(ImplicitLocOpBuilder &b, Value start,
                                int64_t width, Value size, int64_t step) {
  return arith::CmpIOp::create(
      b, arith::CmpIPredicate::ult,
      arith::AddIOp::create(b, emitSplat32(b, start, width),
                            emitLanes(b, width, step)),
      emitSplat32(b, size, width));
}

Value sardonyx::cpu::emitRowMask(ImplicitLocOpBuilder &b, Value mask,
                                 Value index, Value size) {
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, size);
  return arith::AndIOp::create(
      b, mask, vector::BroadcastOp::create(b, mask.getType(), inside));
}

void sardonyx::cpu::emitFetch(ImplicitLocOpBuilder &b, Value memref,
                              ValueRange indices, int64_t locality) {
  memref::PrefetchOp::create(b, memref, indices, /*isWrite=*/false, locality,
                             /*isDataCache=*/true);
}

Value sardonyx::cpu::emitPadding(ImplicitLocOpBuilder &b, VectorType type) {
  Type element = type.getElementType();
  TypedAttr off = element.isIntOrIndex()
                      ? TypedAttr(b.getIntegerAttr(element, 1))
                      : TypedAttr(b.getFloatAttr(element, 0.0));
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, off));
}

Value sardonyx::cpu::emitLoad(ImplicitLocOpBuilder &b, Value memref,
                              ValueRange indices, int64_t width, Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({width}, element);
  if (!mask)
    return vector::LoadOp::create(b, type, memref, indices);
  return vector::MaskedLoadOp::create(b, type, memref, indices, mask,
                                      emitPadding(b, type));
}

void sardonyx::cpu::emitStore(ImplicitLocOpBuilder &b, Value vector,
                              Value memref, ValueRange indices, Value mask) {
  if (mask)
    vector::MaskedStoreOp::create(b, memref, indices, mask, vector);
  else
    vector::StoreOp::create(b, vector, memref, indices);
}

Value sardonyx::cpu::emitTailMask(ImplicitLocOpBuilder &b, Value count,
                                  int64_t width) {
  auto type = VectorType::get({width}, b.getI1Type());
  std::optional<int64_t> known = IndexMath::known(count);
  if (!known)
    return vector::CreateMaskOp::create(b, type, ValueRange{count});
  if (*known >= width)
    return nullptr;
  // A constant stays one where a parallel loop uses it.
  SmallVector<bool> lanes(width);
  std::fill_n(lanes.begin(), std::max<int64_t>(*known, 0), true);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, lanes));
}

Value sardonyx::cpu::emitBuffer(ImplicitLocOpBuilder &b, MemRefType type,
                                ValueRange sizes) {
  return memref::AllocOp::create(b, type, sizes,
                                 b.getI64IntegerAttr(Prefetch::kLineBytes));
}

Value sardonyx::cpu::emitLoadGroupBefore(ImplicitLocOpBuilder &b, Value memref,
                                         ArrayRef<Value> indices, Value end) {
  IndexMath math(b);
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({32 / element.getIntOrFloatBitWidth()}, element);
  Value values = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(element));
  for (int64_t j = 0; j < type.getNumElements(); ++j) {
    SmallVector<Value> at(indices);
    Value place = math.add(at.back(), j), isThere = math.less(place, end);
    at.back() = arith::SelectOp::create(b, isThere, place, indices.back());
    Value value = arith::SelectOp::create(
        b, isThere, memref::LoadOp::create(b, memref, at), zero);
    values = vector::InsertOp::create(b, value, values, j);
  }
  Value lane = vector::BitCastOp::create(
      b, VectorType::get({1}, b.getI32Type()), values);
  return vector::ExtractOp::create(b, lane, 0);
}

Value sardonyx::cpu::emitLoadGroup(ImplicitLocOpBuilder &b, Value memref,
                                   ArrayRef<Value> indices, int64_t count) {
  IndexMath math(b);
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({32 / element.getIntOrFloatBitWidth()}, element);
  Value values;
  if (count == type.getNumElements()) {
    values = vector::LoadOp::create(b, type, memref, indices);
  } else {
    values = arith::ConstantOp::create(b, b.getZeroAttr(type));
    for (int64_t j = 0; j < count; ++j) {
      SmallVector<Value> at(indices);
      at.back() = math.add(at.back(), j);
      Value value = memref::LoadOp::create(b, memref, at);
      values = vector::InsertOp::create(b, value, values, j);
    }
  }
  Value lane = vector::BitCastOp::create(
      b, VectorType::get({1}, b.getI32Type()), values);
  return vector::ExtractOp::create(b, lane, 0);
}

Value sardonyx::cpu::emitCollapse(ImplicitLocOpBuilder &b, Value memref,
                                  int64_t first) {
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  if (rank - first <= 1)
    return memref;
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < first; ++d)
    groups.push_back({d});
  groups.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(first, rank)));
  return memref::CollapseShapeOp::create(b, memref, groups);
}

Value sardonyx::cpu::emitLanes(ImplicitLocOpBuilder &b, int64_t width,
                               int64_t step) {
  SmallVector<int32_t> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(i * step);
  return arith::ConstantOp::create(b, b.getI32VectorAttr(values));
}

Value sardonyx::cpu::emitPick(ImplicitLocOpBuilder &b, Value x, Value y,
                              int64_t first, int64_t step, int64_t count) {
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < count; ++i)
    lanes.push_back(first + i * step);
  return vector::ShuffleOp::create(b, x, y, lanes);
}

Value sardonyx::cpu::emitConcatenation(ImplicitLocOpBuilder &b,
                                       SmallVector<Value> parts) {
  while (parts.size() > 1) {
    int64_t length = cast<VectorType>(parts[0].getType()).getNumElements();
    SmallVector<Value> pairs;
    for (size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(emitPick(b, parts[i], parts[i + 1], 0, 1, 2 * length));
    parts = std::move(pairs);
  }
  return parts[0];
}

SmallVector<Value> sardonyx::cpu::emitTranspose(ImplicitLocOpBuilder &b,
                                                ArrayRef<Value> rows) {
  int64_t size = rows.size();
  int64_t lanes = cast<VectorType>(rows[0].getType()).getNumElements();
  SmallVector<Value> current(rows);
  // Of each block of lanes the lower half of x and y, or the upper one, `run`
  // lanes of x and of y in turn.
  auto interleave = [&](Value x, Value y, bool isUpper, int64_t block,
                        int64_t run) -> Value {
    SmallVector<int64_t> order;
    int64_t half = block / 2;
    for (int64_t at = isUpper ? half : 0; at < lanes; at += block)
      for (int64_t of = at; of < at + half; of += run)
        for (int64_t from : {of, lanes + of})
          for (int64_t i = 0; i < run; ++i)
            order.push_back(from + i);
    return vector::ShuffleOp::create(b, x, y, order);
  };
  // Squares of four in the order of x86's instructions, which interleave halves
  // of 128 bits: single numbers, then pairs.
  constexpr int64_t kBlock = 4;
  int64_t done = 1;
  if (size >= kBlock) {
    for (int64_t i = 0; i < size; i += kBlock) {
      Value *square = &current[i];
      Value low[2], high[2];
      for (int64_t j = 0; j < 2; ++j) {
        Value x = square[2 * j], y = square[2 * j + 1];
        low[j] = interleave(x, y, /*isUpper=*/false, kBlock, 1);
        high[j] = interleave(x, y, /*isUpper=*/true, kBlock, 1);
      }
      square[0] = interleave(low[0], low[1], /*isUpper=*/false, kBlock, 2);
      square[1] = interleave(low[0], low[1], /*isUpper=*/true, kBlock, 2);
      square[2] = interleave(high[0], high[1], /*isUpper=*/false, kBlock, 2);
      square[3] = interleave(high[0], high[1], /*isUpper=*/true, kBlock, 2);
    }
    done = kBlock;
  }
  // Then blocks of what is square already are swapped.
  for (int64_t half = done; half < size; half *= 2) {
    SmallVector<Value> next(size);
    for (int64_t i = 0; i < size; ++i) {
      if (i & half)
        continue;
      Value first = current[i], second = current[i + half];
      next[i] = interleave(first, second, /*isUpper=*/false, 2 * half, half);
      next[i + half] =
          interleave(first, second, /*isUpper=*/true, 2 * half, half);
    }
    current = next;
  }
  return current;
}

Value sardonyx::cpu::extractLanes(OpBuilder &b, Location loc, Value vector,
                                  int64_t first, int64_t count) {
  return vector::ExtractStridedSliceOp::create(
      b, loc, vector, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{count},
      ArrayRef<int64_t>{1});
}

Value sardonyx::cpu::emitByRegisters(OpBuilder &b, Location loc,
                                     unsigned registerBits, ValueRange operands,
                                     function_ref<Value(ValueRange)> emit) {
  Value result = operands.back();
  int64_t all = cast<VectorType>(result.getType()).getNumElements();
  int64_t lanes = std::min<int64_t>(registerBits / 32, all);
  if (lanes < 4 || !llvm::isPowerOf2_64(lanes) || all % lanes != 0)
    return {};
  if (lanes == all)
    return emit(operands);
  for (int64_t first = 0; first < all; first += lanes) {
    SmallVector<Value> parts;
    for (Value operand : operands)
      parts.push_back(extractLanes(b, loc, operand, first, lanes));
    result = vector::InsertStridedSliceOp::create(b, loc, emit(parts), result,
                                                  ArrayRef<int64_t>{first},
                                                  ArrayRef<int64_t>{1});
  }
  return result;
}
