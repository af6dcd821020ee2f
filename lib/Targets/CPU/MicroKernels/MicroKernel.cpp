//===- MicroKernel.cpp - The table of micro-kernels -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/MicroKernel.h"
#include "Common/IndexMath.h"
#include "MicroKernels/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace sardonyx::cpu {
#define MICRO_KERNEL(Name) const MicroKernel &get##Name();
#include "MicroKernels/MicroKernels.def"
} // namespace sardonyx::cpu

ArrayRef<const MicroKernel *> cpu::getMicroKernels() {
  static const MicroKernel *const table[] = {
#define MICRO_KERNEL(Name) &get##Name(),
#include "MicroKernels/MicroKernels.def"
  };
  return table;
}

const MicroKernel *cpu::findMicroKernel(StringRef name) {
  for (const MicroKernel *kernel : getMicroKernels())
    if (kernel->getName() == name)
      return kernel;
  return nullptr;
}

const MicroKernel *cpu::selectMicroKernel(PackedElement element,
                                          TargetAttr target,
                                          MicroKernel::Unit unit) {
  for (const MicroKernel *kernel : getMicroKernels())
    if (kernel->getUnit() == unit && kernel->takes(element) &&
        kernel->isSupported(target))
      return kernel;
  return nullptr;
}

SmallVector<PackedElement>
MicroKernel::withQuantized(ArrayRef<PackedElement> others) {
  SmallVector<PackedElement> elements(others);
  elements.append({PackedElement::U2, PackedElement::U4, PackedElement::U8,
                   PackedElement::F4, PackedElement::F8E4M3,
                   PackedElement::F8E5M2});
  return elements;
}

Value MicroKernel::emitRhs(ImplicitLocOpBuilder &b, const PackedTile &tile,
                           Value panel, Value group) const {
  IndexMath math(b);
  const int64_t size = tile.packing.getDepthGroup();
  SmallVector<Value> indices;
  if (tile.batch)
    indices.push_back(tile.batch);
  indices.append({panel, group, math.mul(tile.column, size)});
  Value vector = emitLoad(b, tile.rhs, indices, tile.width * size);
  if (size == 1)
    return vector;
  return vector::BitCastOp::create(
      b, VectorType::get({tile.width}, b.getI32Type()), vector);
}

Value MicroKernel::emitStep(ImplicitLocOpBuilder &b, TargetAttr, Value lhs,
                            Value rhs, Value accumulator) const {
  return emitFusedMultiplyAdd(b, lhs, rhs, accumulator);
}

SmallVector<Value> MicroKernel::emit(ImplicitLocOpBuilder &b,
                                     const PackedTile &tile,
                                     SmallVector<Value> accs) const {
  IndexMath math(b);
  const int64_t size = tile.packing.getDepthGroup();
  Value first = tile.firstGroup ? tile.firstGroup : math.constant(0);
  auto right = [&](Value group, int64_t p) {
    return emitRhs(b, tile, math.add(tile.panel, p), math.add(group, first));
  };
  auto left = [&](int64_t count) {
    return [&, count](Value group, int64_t row) {
      return tile.lhs(math.add(group, first), row, count);
    };
  };
  auto step = [&](ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                  Value accumulator) {
    return emitStep(b, tile.target, lhs, rhs, accumulator);
  };
  if (size == 1)
    return emitContractionLoop(b, tile.groups, tile.rows, tile.panels, accs,
                               left(1), right, tile.prefetches, step);
  // Steps that take many instructions anyway are not worth several in a row,
  // and those of a last group that is not full are too many by one.
  Value depth = tile.depth ? math.constant(*tile.depth) : tile.size;
  Value full = math.sub(math.div(depth, size), first);
  const int64_t rest = tile.depth.value_or(0) % size;
  ArrayRef<Prefetch> prefetches = tile.prefetches;
  if (!isShort() || rest || !tile.depth)
    prefetches = {};
  if (IndexMath::known(full) != 0)
    accs = emitContractionLoop(b, full, tile.rows, tile.panels, accs,
                               left(size), right, prefetches, step);
  if (rest)
    emitContractionStep(b, full, tile.rows, tile.panels, accs, left(rest),
                        right, step);
  if (tile.depth)
    return accs;
  // The last group, if it is not full.
  first = math.add(first, full);
  return emitContractionLoop(b, math.sub(tile.groups, first), tile.rows,
                             tile.panels, accs, left(PackedTile::kThoseThere),
                             right, {}, step);
}
