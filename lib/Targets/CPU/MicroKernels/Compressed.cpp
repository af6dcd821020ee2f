//===- Compressed.cpp - Products with f32 of 21 or 24 bits ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of columns come after the sums. One side is made smaller so that no
// product leaves the range of f32 (CompressedWeights.h): the left-hand side of
// few rows, else the numbers read, which takes fewer multiplications then and
// lets broadcasts come straight from memory.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "MicroKernels/CompressedWeights.h"
#include "MicroKernels/MicroKernel.h"
#include "MicroKernels/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// The two sides of products: a number of the left-hand side, and what is done
/// to a vector of the right-hand side. One of them makes them smaller.
struct Sides {
  llvm::function_ref<Value(Value k, int64_t row)> left;
  llvm::function_ref<Value(Value numbers)> right;
};

class Compressed : public MicroKernel {
public:
  bool isSupported(TargetAttr) const override { return true; }

  SmallVector<Value> emit(ImplicitLocOpBuilder &b, const PackedTile &tile,
                          SmallVector<Value> accs) const override;

protected:
  Compressed(StringRef name, PackedElement element, int shift)
      : MicroKernel(name, element), shift(shift) {}

  /// The sums of products with 2^shift times the integers, on top of `sums`.
  virtual SmallVector<Value> emitSums(ImplicitLocOpBuilder &b,
                                      const PackedTile &tile, Sides sides,
                                      SmallVector<Value> sums) const = 0;

  static CompressedPanel getPanel(const PackedTile &tile, Value number) {
    return CompressedPanel::get(tile.rhs, number, tile.packing.getPanel(),
                                tile.target.getLanes());
  }

private:
  const int shift;
};

class W24 : public Compressed {
public:
  W24() : Compressed("w24", PackedElement::W24, kW24Shift) {}

  Value emitRhs(ImplicitLocOpBuilder &b, const PackedTile &tile, Value panel,
                Value k) const override {
    return emitW24Numbers(b, getPanel(tile, panel), k);
  }

protected:
  SmallVector<Value> emitSums(ImplicitLocOpBuilder &b, const PackedTile &tile,
                              Sides sides,
                              SmallVector<Value> sums) const override;
};

class W21 : public Compressed {
public:
  W21() : Compressed("w21", PackedElement::W21, kW21Shift) {}

protected:
  SmallVector<Value> emitSums(ImplicitLocOpBuilder &b, const PackedTile &tile,
                              Sides sides,
                              SmallVector<Value> sums) const override;
};

} // namespace

SmallVector<Value> Compressed::emit(ImplicitLocOpBuilder &b,
                                    const PackedTile &tile,
                                    SmallVector<Value> accs) const {
  IndexMath math(b);
  auto type = cast<VectorType>(accs.front().getType());
  SmallVector<Value> scale;
  for (int64_t p = 0; p < tile.panels; ++p)
    scale.push_back(emitCompressedScales(b, tile.scales,
                                         math.add(tile.panel, p),
                                         /*column=*/0, tile.width, shift));
  const float smaller = std::ldexp(1.0f, -kRangeShift);
  const int64_t registers =
      tile.panels * llvm::divideCeil(tile.width, tile.target.getLanes());
  const bool isLeftSmaller = tile.rows < registers;
  auto left = [&](Value k, int64_t row) -> Value {
    Value number = tile.lhs(k, row, 1);
    return isLeftSmaller
               ? arith::MulFOp::create(
                     b, number, emitFloatSplat(b, number.getType(), smaller))
               : number;
  };
  auto right = [&](Value numbers) -> Value {
    return isLeftSmaller
               ? numbers
               : arith::MulFOp::create(
                     b, numbers, emitFloatSplat(b, numbers.getType(), smaller));
  };
  SmallVector<Value> sums(accs.size(), emitFloatSplat(b, type, 0));
  sums = emitSums(b, tile, {left, right}, std::move(sums));
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = vector::FMAOp::create(b, sum, scale[i % tile.panels], accs[i]);
  return sums;
}

/// What a loop over the rows of `panel` fetches.
static Prefetch prefetchRows(ImplicitLocOpBuilder &b, const PackedTile &tile,
                             Value panel) {
  // As far ahead as four such streams need to keep memory busy.
  constexpr int64_t kRowsAhead = 16;
  IndexMath math(b);
  const int64_t depth = *tile.depth, row = tile.packing.getRowSize();
  Prefetch result;
  result.memory = emitCollapse(b, tile.rhs, 0);
  result.start = math.add(math.mul(panel, math.constant(depth * row)),
                          math.constant(kRowsAhead * row));
  // Two rows of 96 bytes are three lines.
  bool isEven = depth % 2 == 0;
  result.period = isEven ? 2 : 1;
  result.count = isEven ? 3 : 2;
  result.stride = row * result.period / result.count;
  return result;
}

SmallVector<Value> W24::emitSums(ImplicitLocOpBuilder &b,
                                 const PackedTile &tile, Sides sides,
                                 SmallVector<Value> sums) const {
  IndexMath math(b);
  SmallVector<Prefetch> prefetches;
  for (int64_t p = 0; p < tile.panels; ++p)
    prefetches.push_back(prefetchRows(b, tile, math.add(tile.panel, p)));
  auto right = [&](Value k, int64_t p) {
    return sides.right(emitRhs(b, tile, math.add(tile.panel, p), k));
  };
  return emitContractionLoop(b, math.constant(*tile.depth), tile.rows,
                             tile.panels, sums, sides.left, right, prefetches);
}

SmallVector<Value> W21::emitSums(ImplicitLocOpBuilder &b,
                                 const PackedTile &tile, Sides sides,
                                 SmallVector<Value> sums) const {
  IndexMath math(b);
  const int64_t depth = *tile.depth;
  // One panel after the other, which takes the fewest registers.
  auto emitTriple = [&](Value triple, int64_t count,
                        MutableArrayRef<Value> sums) {
    Value first = math.mul(triple, kW21Group);
    for (int64_t p = 0; p < tile.panels; ++p) {
      SmallVector<Value> numbers = llvm::map_to_vector(
          emitW21(b, getPanel(tile, math.add(tile.panel, p)), triple),
          [&](Value numbers) { return sides.right(numbers); });
      for (int64_t i = 0; i < count; ++i)
        for (int64_t r = 0; r < tile.rows; ++r) {
          Value &sum = sums[r * tile.panels + p];
          Value number = vector::BroadcastOp::create(
              b, sum.getType(), sides.left(math.add(first, i), r));
          sum = vector::FMAOp::create(b, number, numbers[i], sum);
        }
    }
  };
  // As far ahead as such streams need to keep memory busy.
  constexpr int64_t kTriplesAhead = 10;
  constexpr int64_t kLine = Prefetch::kLineBytes / sizeof(int64_t);
  auto loop =
      scf::ForOp::create(b, math.constant(0), math.constant(depth / kW21Group),
                         math.constant(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value triple = loop.getInductionVar();
    for (int64_t p = 0; p < tile.panels; ++p)
      for (int64_t line = 0; line < tile.packing.getPanel(); line += kLine)
        emitFetch(b, tile.rhs,
                  {math.add(tile.panel, p), math.add(triple, kTriplesAhead),
                   math.constant(line)});
    SmallVector<Value> inLoop(loop.getRegionIterArgs());
    emitTriple(triple, kW21Group, inLoop);
    scf::YieldOp::create(b, inLoop);
  }
  sums = SmallVector<Value>(loop.getResults());
  if (depth % kW21Group)
    emitTriple(math.constant(depth / kW21Group), depth % kW21Group, sums);
  return sums;
}

namespace sardonyx::cpu {

const MicroKernel &getW24() {
  static const W24 kernel;
  return kernel;
}

const MicroKernel &getW21() {
  static const W21 kernel;
  return kernel;
}

} // namespace sardonyx::cpu
