//===- MmaTile.cpp - Products of tiles by tensor cores --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has a part of the block's tile, in pieces of 16x8 sums, which mma.sync
// adds products of 32 bytes along K to. Operands come from shared memory by
// ldmatrix, which gives a thread elements of f32 as well, but cannot transpose
// them: those of a right-hand side that follows itself along N are loaded one
// by one. What is split into two bf16 is loaded as f32, of which a thread has
// elements t, t+4, t+8 and t+12 of 16 along K where instructions want 2t, 2t+1,
// 2t+8 and 2t+9; in which order both sides have them is of no account. A thread
// has sums (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) of a piece, where g is
// its lane div 4 and t its lane mod 4.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/SplitFloats.h"
#include "Matmul/BlockTile.h"
#include "Matmul/MmaPiece.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kRows = kMmaRows, kCols = kMmaCols;
static constexpr int64_t kStepBytes = kMmaStepBytes;
/// Bytes of what ldmatrix reads for a lane.
static constexpr int64_t kPieceBytes = 16;
static constexpr int64_t kSumsOfPiece = kMmaSums;

namespace {

class MmaTile : public BlockTile {
public:
  MmaTile(const ProductTypes &types, MatmulPlanAttr plan, Value thread)
      : types(types), plan(plan), thread(thread),
        piecesM(plan.getPartM() / kRows), piecesN(plan.getPartN() / kCols) {}

  TileLayout lhsLayout() const override {
    return {TileLayout::Swizzled, plan.getTileM(), plan.getTileK(),
            types.lhsBytes()};
  }
  TileLayout rhsLayout() const override {
    if (types.transposed)
      return {TileLayout::Swizzled, plan.getTileN(), plan.getTileK(),
              types.rhsBytes()};
    return {loadsElements() ? TileLayout::SwizzledByTwo : TileLayout::Swizzled,
            plan.getTileK(), plan.getTileN(), types.rhsBytes()};
  }

  SmallVector<Value> zeros(ImplicitLocOpBuilder &b) const override {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(types.sum));
    return SmallVector<Value>(piecesM * piecesN * kSumsOfPiece, zero);
  }

  SmallVector<Value> multiply(ImplicitLocOpBuilder &b, Value lhs,
                              Value lhsOffset, Value rhs, Value rhsOffset,
                              ValueRange sums) const override {
    SmallVector<Value> next(sums);
    const int64_t depth = plan.getTileK() * types.lhsBytes() / kStepBytes;
    if (types.areSplit) {
      for (int64_t step = 0; step < depth; step += 2)
        multiplySplit(b, lhs, lhsOffset, rhs, rhsOffset, step, next);
      return next;
    }
    for (int64_t step = 0; step < depth; ++step) {
      SmallVector<SmallVector<Value>> a, c;
      for (int64_t m = 0; m < piecesM; ++m)
        a.push_back(loadLhs(b, lhs, lhsOffset, m, step));
      for (int64_t n = 0; n < piecesN; n += 2) {
        SmallVector<Value> two = loadRhs(b, rhs, rhsOffset, n, step);
        c.push_back({two[0], two[1]});
        c.push_back({two[2], two[3]});
      }
      for (int64_t m = 0; m < piecesM; ++m)
        for (int64_t n = 0; n < piecesN; ++n)
          multiplyPiece(b, types, a[m], c[n],
                        MutableArrayRef(next).slice(
                            (m * piecesN + n) * kSumsOfPiece, kSumsOfPiece));
    }
    return next;
  }

  void store(ImplicitLocOpBuilder &b, ValueRange sums,
             Value tile) const override {
    Indices i(b);
    Value row0 = i.add(warpRow(b), i.div(lane(b), 4));
    Value col0 = i.add(warpCol(b), i.mul(i.rem(lane(b), 4), 2));
    for (int64_t m = 0; m < piecesM; ++m)
      for (int64_t n = 0; n < piecesN; ++n)
        for (int64_t part = 0; part < kSumsOfPiece; ++part) {
          Value row = i.add(row0, m * kRows + part / 2 * 8);
          Value col = i.add(col0, n * kCols + part % 2);
          memref::StoreOp::create(b,
                                  sums[(m * piecesN + n) * kSumsOfPiece + part],
                                  tile, ValueRange{row, col});
        }
  }

private:
  bool isTF32() const { return types.areRounded(); }
  bool loadsElements() const { return types.lhs.isF32() && !types.transposed; }
  Value lane(ImplicitLocOpBuilder &b) const {
    return Indices(b).rem(thread, 32);
  }
  int64_t warpCols() const { return plan.getTileN() / plan.getPartN(); }
  Value warpRow(ImplicitLocOpBuilder &b) const {
    Indices i(b);
    return i.mul(i.div(i.div(thread, 32), warpCols()), plan.getPartM());
  }
  Value warpCol(ImplicitLocOpBuilder &b) const {
    Indices i(b);
    return i.mul(i.rem(i.div(thread, 32), warpCols()), plan.getPartN());
  }

  /// High or low parts of a piece.
  struct SplitPiece {
    SmallVector<Value> high, low;
    void add(ImplicitLocOpBuilder &b, Value first, Value second) {
      auto asFloat = [&](Value word) -> Value {
        return LLVM::BitcastOp::create(b, b.getF32Type(), word);
      };
      SplitPair parts = splitPair(b, asFloat(first), asFloat(second));
      high.push_back(parts.high);
      low.push_back(parts.low);
    }
  };

  /// The products of two steps of f32, which are one of bf16.
  void multiplySplit(ImplicitLocOpBuilder &b, Value lhs, Value lhsOffset,
                     Value rhs, Value rhsOffset, int64_t step,
                     SmallVector<Value> &sums) const {
    ProductTypes parts = types;
    parts.lhs = parts.rhs = b.getBF16Type();
    SmallVector<SplitPiece> a(piecesM);
    for (int64_t m = 0; m < piecesM; ++m)
      for (int64_t half = 0; half < 2; ++half) {
        SmallVector<Value> words = loadLhs(b, lhs, lhsOffset, m, step + half);
        a[m].add(b, words[0], words[2]);
        a[m].add(b, words[1], words[3]);
      }
    for (int64_t n = 0; n < piecesN; n += 2) {
      SplitPiece c[2];
      for (int64_t half = 0; half < 2; ++half) {
        SmallVector<Value> words = loadRhs(b, rhs, rhsOffset, n, step + half);
        c[0].add(b, words[0], words[1]);
        c[1].add(b, words[2], words[3]);
      }
      for (int64_t next = 0; next < 2; ++next)
        for (int64_t m = 0; m < piecesM; ++m) {
          auto piece = MutableArrayRef(sums).slice(
              (m * piecesN + n + next) * kSumsOfPiece, kSumsOfPiece);
          // Small ones first.
          multiplyPiece(b, parts, a[m].low, c[next].high, piece);
          multiplyPiece(b, parts, a[m].high, c[next].low, piece);
          multiplyPiece(b, parts, a[m].high, c[next].high, piece);
        }
    }
  }

  /// Rows 0-7 and 8-15 of a piece's first 16 bytes along K, then of the next.
  SmallVector<Value> loadLhs(ImplicitLocOpBuilder &b, Value buffer,
                             Value offset, int64_t m, int64_t step) const {
    Indices i(b);
    const int64_t piece = kPieceBytes / types.lhsBytes();
    Value row = i.add(i.add(warpRow(b), i.rem(lane(b), 16)), m * kRows);
    Value col = i.mul(i.add(i.div(lane(b), 16), 2 * step), piece);
    Value at = i.add(offset, lhsLayout().place(b, row, col));
    return roundTF32(
        b, loadMatrices(b, addressOf(b, buffer, at), /*transpose=*/false));
  }

  /// The two registers of piece `n`, then those of the next.
  SmallVector<Value> loadRhs(ImplicitLocOpBuilder &b, Value buffer,
                             Value offset, int64_t n, int64_t step) const {
    Indices i(b);
    const int64_t piece = kPieceBytes / types.rhsBytes();
    if (loadsElements())
      return loadElements(b, buffer, offset, n, step);
    Value row, col;
    if (types.transposed) {
      Value inside = i.add(i.rem(lane(b), 8), i.mul(i.div(lane(b), 16), 8));
      row = i.add(i.add(warpCol(b), inside), n * kCols);
      col = i.mul(i.add(i.rem(i.div(lane(b), 8), 2), 2 * step), piece);
    } else {
      row = i.add(i.rem(lane(b), 16), step * 16);
      col =
          i.add(i.add(warpCol(b), i.mul(i.div(lane(b), 16), piece)), n * kCols);
    }
    Value at = i.add(offset, rhsLayout().place(b, row, col));
    return roundTF32(
        b, loadMatrices(b, addressOf(b, buffer, at), !types.transposed));
  }

  /// The same, of words: rows t and t+4 of eight along K, column g.
  SmallVector<Value> loadElements(ImplicitLocOpBuilder &b, Value buffer,
                                  Value offset, int64_t n, int64_t step) const {
    Indices i(b);
    Value row0 = i.add(i.rem(lane(b), 4), step * 8);
    Value col0 = i.add(i.add(warpCol(b), i.div(lane(b), 4)), n * kCols);
    SmallVector<Value> words;
    for (int64_t next = 0; next < 4; ++next) {
      Value row = i.add(row0, next % 2 * 4);
      Value col = i.add(col0, next / 2 * kCols);
      Value at = i.add(offset, rhsLayout().place(b, row, col));
      words.push_back(
          LLVM::BitcastOp::create(b, b.getI32Type(), loadAt(b, buffer, at)));
    }
    return roundTF32(b, std::move(words));
  }

  /// Words of f32 rounded to the nearest of 11 bits, where the tensor cores
  /// would drop the others.
  SmallVector<Value> roundTF32(ImplicitLocOpBuilder &b,
                               SmallVector<Value> words) const {
    if (isTF32())
      for (Value &word : words)
        word = NVVM::ConvertFloatToTF32Op::create(
            b, b.getI32Type(), LLVM::BitcastOp::create(b, b.getF32Type(), word),
            NVVM::FPRoundingMode::RNA);
    return words;
  }

  ProductTypes types;
  MatmulPlanAttr plan;
  Value thread;
  int64_t piecesM, piecesN;
};

} // namespace

std::unique_ptr<BlockTile> nv::createMmaTile(const ProductTypes &types,
                                             MatmulPlanAttr plan,
                                             Value thread) {
  return std::make_unique<MmaTile>(types, plan, thread);
}
