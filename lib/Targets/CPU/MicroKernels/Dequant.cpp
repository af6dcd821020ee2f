//===- Dequant.cpp - Products with weights of a few bits ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where weights come from memory, what counts is their bytes: they stay packed,
// and are numbers only in registers. A step over k loads the integers of a
// panel, spreads and scales them, and multiplies; scales and offsets stay in
// registers for a block.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "MicroKernels/MicroKernel.h"
#include "MicroKernels/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

class Dequant : public MicroKernel {
public:
  Dequant()
      : MicroKernel("dequant",
                    {PackedElement::U2, PackedElement::U4, PackedElement::U8}) {
  }

  bool isSupported(TargetAttr) const override { return true; }

  /// The integers, as f32.
  Value emitRhs(ImplicitLocOpBuilder &b, const PackedTile &tile, Value panel,
                Value depth) const override;
  SmallVector<Value> emit(ImplicitLocOpBuilder &b, const PackedTile &tile,
                          SmallVector<Value> accs) const override;

private:
  SmallVector<Value> emitBlock(ImplicitLocOpBuilder &b, const PackedTile &tile,
                               ValueRange accs, Value block,
                               int64_t size) const;
};

} // namespace

Value Dequant::emitRhs(ImplicitLocOpBuilder &b, const PackedTile &tile,
                       Value panel, Value depth) const {
  IndexMath math(b);
  const int64_t bits = tile.packing.getBits(), perByte = 8 / bits;
  // Columns of which a byte holds the first, and those after them.
  int64_t partWidth = tile.packing.getPanel() / perByte;
  int64_t width = std::min(tile.width, partWidth);
  Value part = math.div(tile.column, partWidth);
  Value first = math.sub(tile.column, math.mul(part, partWidth));
  auto type = VectorType::get({width}, b.getI32Type());
  Value bytes = emitLoad(b, tile.rhs, {panel, depth, first}, width);
  Value words = arith::ExtUIOp::create(b, type, bytes);
  SmallVector<Value> parts;
  for (int64_t j = 0; j < std::max<int64_t>(1, tile.width / width); ++j) {
    Value number = words;
    if (perByte > 1) {
      Value shift = math.mul(math.add(part, j), bits);
      Value amount = arith::IndexCastOp::create(b, b.getI32Type(), shift);
      number = arith::ShRUIOp::create(
          b, number, vector::BroadcastOp::create(b, type, amount));
      number =
          arith::AndIOp::create(b, number, emitSplat(b, type, (1 << bits) - 1));
    }
    parts.push_back(arith::SIToFPOp::create(
        b, VectorType::get({width}, b.getF32Type()), number));
  }
  return emitConcatenation(b, std::move(parts));
}

/// The accumulators after `size` values of k that share scales.
SmallVector<Value> Dequant::emitBlock(ImplicitLocOpBuilder &b,
                                      const PackedTile &tile, ValueRange accs,
                                      Value block, int64_t size) const {
  IndexMath math(b);
  const bool hasOffsets =
      cast<ShapedType>(tile.scales.getType()).getDimSize(2) == 2;
  SmallVector<Value> scale, offset;
  for (int64_t p = 0; p < tile.panels; ++p) {
    Value panel = math.add(tile.panel, p);
    auto load = [&](int64_t which) {
      return emitLoad(b, tile.scales,
                      {panel, block, math.constant(which), tile.column},
                      tile.width);
    };
    scale.push_back(load(0));
    if (hasOffsets) {
      offset.push_back(load(1));
      continue;
    }
    auto type = cast<VectorType>(scale.back().getType());
    Value middle = emitFloatSplat(
        b, type, -std::ldexp(1.0f, int(tile.packing.getBits()) - 1));
    offset.push_back(arith::MulFOp::create(b, scale.back(), middle));
  }
  Value first = math.mul(block, tile.block);
  auto right = [&](Value depth, int64_t p) -> Value {
    Value numbers =
        emitRhs(b, tile, math.add(tile.panel, p), math.add(first, depth));
    return vector::FMAOp::create(b, numbers, scale[p], offset[p]);
  };
  auto left = [&](Value depth, int64_t r) {
    return tile.lhs(math.add(first, depth), r, 1);
  };
  return emitContractionLoop(b, math.constant(size), tile.rows, tile.panels,
                             accs, left, right);
}

SmallVector<Value> Dequant::emit(ImplicitLocOpBuilder &b,
                                 const PackedTile &tile,
                                 SmallVector<Value> accs) const {
  IndexMath math(b);
  int64_t blocks = *tile.depth / tile.block, rest = *tile.depth % tile.block;
  if (blocks > 0) {
    auto loop = scf::ForOp::create(b, math.constant(0), math.constant(blocks),
                                   math.constant(1), accs);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(b, emitBlock(b, tile, loop.getRegionIterArgs(),
                                      loop.getInductionVar(), tile.block));
    accs = SmallVector<Value>(loop.getResults());
  }
  if (rest > 0)
    accs = emitBlock(b, tile, accs, math.constant(blocks), rest);
  return accs;
}

namespace sardonyx::cpu {

const MicroKernel &getDequant() {
  static const Dequant kernel;
  return kernel;
}

} // namespace sardonyx::cpu
