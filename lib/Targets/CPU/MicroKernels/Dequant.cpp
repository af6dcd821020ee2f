//===- Dequant.cpp - Products with weights of a few bits ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where weights come from memory, what counts is their bytes: they stay packed,
// and are numbers only in registers. Four values of k of a panel are a load;
// each is numbers by a shift and a conversion, or by a table in a register.
// Scales multiply the sums of a block.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "MicroKernels/DequantNumbers.h"
#include "MicroKernels/MicroKernel.h"
#include "MicroKernels/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

class Dequant : public MicroKernel {
public:
  Dequant() : MicroKernel("dequant", withQuantized()) {}

  bool isSupported(TargetAttr) const override { return true; }

  SmallVector<Value> emit(ImplicitLocOpBuilder &b, const PackedTile &tile,
                          SmallVector<Value> accs) const override;
};

/// The same by products of bytes: rows are rounded before.
class DequantVnni : public MicroKernel {
public:
  DequantVnni()
      : MicroKernel("dequant_vnni",
                    {PackedElement::U2, PackedElement::U4, PackedElement::U8}) {
  }

  bool isSupported(TargetAttr target) const override {
    return target.getInt8() >= Int8Product::Vnni;
  }
  bool roundsRows() const override { return true; }

  SmallVector<Value> emit(ImplicitLocOpBuilder &b, const PackedTile &tile,
                          SmallVector<Value> accs) const override;
};

} // namespace

/// The sums of products of `size` values of k from `first` on, which share
/// zero points.
static SmallVector<Value> emitSums(ImplicitLocOpBuilder &b,
                                   const PackedTile &tile, Value block,
                                   int64_t size, SmallVector<Value> sums) {
  IndexMath math(b);
  SmallVector<DequantNumbers> panels;
  for (int64_t p = 0; p < tile.panels; ++p)
    panels.emplace_back(b, tile, math.add(tile.panel, p), block);
  Value first = math.mul(block, tile.block);
  auto emitStep = [&](Value k, Value place, MutableArrayRef<Value> sums,
                      ArrayRef<Value> words) {
    auto left = [&](Value, int64_t r) { return tile.lhs(k, r, 1); };
    auto right = [&](Value, int64_t p) {
      return panels[p].emit(words[p], place);
    };
    emitContractionStep(b, k, tile.rows, tile.panels, sums, left, right,
                        emitFusedMultiplyAdd);
  };
  auto load = [&](Value group) {
    SmallVector<Value> words;
    for (DequantNumbers &panel : panels)
      words.push_back(panel.load(group));
    return words;
  };
  auto emitLoop = [&](int64_t count, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, math.constant(0), math.constant(count),
                                   math.constant(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    sums.assign(loop.getRegionIterArgs().begin(),
                loop.getRegionIterArgs().end());
    body(loop.getInductionVar());
    scf::YieldOp::create(b, sums);
    sums = loop.getResults();
  };
  // A block that begins within a group takes a value at a time.
  if (tile.block % kQuantizedGroup && IndexMath::known(block) != 0) {
    emitLoop(size, [&](Value i) {
      Value k = math.add(first, i);
      emitStep(k, math.rem(k, math.constant(kQuantizedGroup)), sums,
               load(math.div(k, kQuantizedGroup)));
    });
    return sums;
  }
  Value firstGroup = math.div(first, kQuantizedGroup);
  auto emitGroup = [&](Value group, int64_t count) {
    SmallVector<Value> words = load(math.add(firstGroup, group));
    Value k = math.add(first, math.mul(group, kQuantizedGroup));
    for (int64_t j = 0; j < count; ++j)
      emitStep(math.add(k, j), math.constant(j), sums, words);
  };
  const int64_t groups = size / kQuantizedGroup, rest = size % kQuantizedGroup;
  if (groups)
    emitLoop(groups, [&](Value group) { emitGroup(group, kQuantizedGroup); });
  if (rest)
    emitGroup(math.constant(groups), rest);
  return sums;
}

SmallVector<Value> Dequant::emit(ImplicitLocOpBuilder &b,
                                 const PackedTile &tile,
                                 SmallVector<Value> accs) const {
  Value zero = emitFloatSplat(b, accs.front().getType(), 0);
  return emitDequantBlocks(b, tile, accs, [&](Value block, int64_t size) {
    return emitSums(b, tile, block, size,
                    SmallVector<Value>(accs.size(), zero));
  });
}

/// The sums of the products of a block: integers of four values of k at a time,
/// then less the zero points, times the scales of the rows.
static SmallVector<Value> emitSumsOfBytes(ImplicitLocOpBuilder &b,
                                          const PackedTile &tile, Value block,
                                          int64_t size) {
  IndexMath math(b);
  const MicroKernel &vnni = *findMicroKernel("vnni");
  SmallVector<DequantNumbers> panels;
  for (int64_t p = 0; p < tile.panels; ++p)
    panels.emplace_back(b, tile, math.add(tile.panel, p), block);
  Value first = math.mul(block, tile.block / kQuantizedGroup);
  auto left = [&](Value group, int64_t r) {
    return tile.lhs(math.add(first, group), r, kQuantizedGroup);
  };
  auto right = [&](Value group, int64_t p) {
    return panels[p].emitBytes(panels[p].load(math.add(first, group)));
  };
  auto multiplyAdd = [&](ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value sum) {
    // Weights are unsigned.
    return vnni.emitStep(b, tile.target, rhs, lhs, sum);
  };
  Value none = emitSplat(b, VectorType::get({tile.width}, b.getI32Type()), 0);
  SmallVector<Value> sums = emitContractionLoop(
      b, math.constant(llvm::divideCeil(size, kQuantizedGroup)), tile.rows,
      tile.panels, SmallVector<Value>(tile.rows * tile.panels, none), left,
      right, /*prefetches=*/{}, multiplyAdd);
  auto floats = VectorType::get({tile.width}, b.getF32Type());
  for (int64_t r = 0; r < tile.rows; ++r) {
    auto scale = [&](int64_t which) -> Value {
      return vector::BroadcastOp::create(b, floats,
                                         tile.lhsScale(block, r, which));
    };
    Value factor = scale(0), minus = scale(1);
    for (int64_t p = 0; p < tile.panels; ++p) {
      Value &sum = sums[r * tile.panels + p];
      Value offset = arith::MulFOp::create(b, panels[p].getZeroPoints(), minus);
      sum = vector::FMAOp::create(b, arith::SIToFPOp::create(b, floats, sum),
                                  factor, offset);
    }
  }
  return sums;
}

SmallVector<Value> DequantVnni::emit(ImplicitLocOpBuilder &b,
                                     const PackedTile &tile,
                                     SmallVector<Value> accs) const {
  return emitDequantBlocks(b, tile, accs, [&](Value block, int64_t size) {
    return emitSumsOfBytes(b, tile, block, size);
  });
}

namespace sardonyx::cpu {

const MicroKernel &getDequantVnni() {
  static const DequantVnni kernel;
  return kernel;
}

const MicroKernel &getDequant() {
  static const Dequant kernel;
  return kernel;
}

} // namespace sardonyx::cpu
