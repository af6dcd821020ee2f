//===- ConvEmitter.h - Loops of a convolution kernel ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONVEMITTER_H
#define SARDONYX_LIB_TARGETS_CPU_CONVEMITTER_H

#include "Kernel/Epilogue.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"
#include "Plan/ConvPlan.h"

#include "dialects/CPU/CPU.h"
#include "dialects/CPU/Winograd.h"

namespace sardonyx::cpu {

/// The buffers and the sizes of a convolution.
struct ConvOperands {
  mlir::Value input, weights;
  /// The input with its spatial dimensions collapsed.
  mlir::Value flatInput;
  /// The planes that taps read (PolyphaseInputs.cpp); null where they read the
  /// input itself.
  mlir::Value phases;
  /// What panels are packed from, and the packed weights, as one dimension.
  mlir::Value allInputs, flatWeights;
  llvm::SmallVector<mlir::Value> inSizes;
  mlir::Value outPositions, groupChannels, groupFilters, depth;
};

/// The kernel around a convolution, by a plan that fits.
class ConvKernel {
public:
  ConvKernel(const ConvFacts &facts, ConvPlanAttr plan, KernelBody &body)
      : facts(facts), plan(plan), body(body),
        evaluator(body, facts.getOp()->getResult(0), 1, 2) {}

  llvm::LogicalResult verify();
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  const ConvFacts &facts;
  const ConvPlanAttr plan;
  KernelBody &body;
  TileEvaluator evaluator;
};

/// Emits the loops of a convolution.
class ConvEmitter {
public:
  ConvEmitter(const ConvFacts &facts, ConvPlanAttr plan,
              TileEvaluator &evaluator, const ConvOperands &operands);

  /// Makes the planes of a plan with polyphase inputs.
  mlir::Value emitPolyphase(mlir::ImplicitLocOpBuilder &b);
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  /// What one iteration of the parallel loop computes: some channels of one
  /// panel of output positions. A panel is one or several columns, vectors of
  /// `width` positions.
  struct Chunk {
    mlir::Value image, group, position;
    mlir::Value firstTile, endTile;
    int64_t width;
    /// For each column the positions that exist; null: all.
    llvm::SmallVector<mlir::Value, 4> masks;
    /// How its inputs come to its tiles.
    ConvPacking packing = ConvPacking::Before;
    /// Whether it has the last positions, too few for a whole panel, after many
    /// whole ones: nothing is fetched for others.
    bool isTail = false;
    mlir::Value scratch;

    int64_t getColumns() const { return masks.size(); }
    int64_t getPositions() const { return getColumns() * width; }
  };

  /// A position of the kernel, and which inputs it reads for a panel.
  struct Tap {
    /// For each column the lanes inside of the input; null: all.
    llvm::SmallVector<mlir::Value, 4> masks;
    /// How far they lie from the start of their channel, or of plane `phase` of
    /// it: one index where taps are shifts, a vector of indices otherwise.
    llvm::SmallVector<mlir::Value, 4> offsets;
    mlir::Value phase;
    mlir::Value number;
  };
  /// Vectors of indices, one for each spatial dimension.
  using Coordinates = llvm::SmallVector<mlir::Value, 3>;

  int64_t kernel(int64_t d) { return op.getKernelShape()[d]; }
  int64_t stride(int64_t d) { return op.getStrides()[d]; }
  int64_t dilation(int64_t d) { return op.getDilations()[d]; }
  int64_t pad(int64_t d) { return op.getPadsBegin()[d]; }
  bool isPadded(int64_t d) { return pad(d) || op.getPadsEnd()[d]; }
  mlir::Value outSize(int64_t d) { return evaluator.getSize(2 + d); }
  /// Activations of more bytes are worth fetching ahead: weights and other
  /// tensors have pushed much of them out of the L2 cache.
  int64_t farBytes() { return target.getL2Bytes() / 8; }
  /// Whether a tensor of known size has more.
  bool isFar(mlir::ShapedType type) {
    return type.hasStaticShape() &&
           type.getNumElements() * int64_t(sizeof(float)) > farBytes();
  }
  llvm::SmallVector<int64_t> listColumnPhases();
  int64_t countRowPhases();
  int64_t countPhases();
  std::pair<mlir::Value, mlir::Value> findPhase(mlir::ImplicitLocOpBuilder &b,
                                                mlir::Value k, int64_t d);

  bool isShift() { return facts.readsShifted(bool(phases)); }
  /// Positions of a whole panel.
  int64_t panelWidth() { return columns * lanes; }
  void emitIm2col(mlir::ImplicitLocOpBuilder &b);
  void emitLastVector(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      int64_t few);
  mlir::Value emitTilesPerChunk(mlir::ImplicitLocOpBuilder &b,
                                mlir::Value otherChunks);
  mlir::Value emitScratch(mlir::ImplicitLocOpBuilder &b, int64_t width);
  void emitPack(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                mlir::Value firstChannel, mlir::Value endChannel);
  bool masksPadding(int64_t d);
  using TapVisitor = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      const Tap &tap, mlir::ValueRange values)>;
  llvm::SmallVector<mlir::Value> emitTaps(mlir::ImplicitLocOpBuilder &b,
                                          const Chunk &chunk,
                                          mlir::ValueRange init,
                                          TapVisitor visit);
  llvm::SmallVector<mlir::Value>
  emitTapLoop(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
              llvm::ArrayRef<Coordinates> base, const Tap &tap, int64_t d,
              mlir::ValueRange init, TapVisitor visit);
  mlir::Value emitInputs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                         const Tap &tap, mlir::Value channel, int64_t c);
  Coordinates emitCoordinates(mlir::ImplicitLocOpBuilder &b,
                              mlir::Value position, int64_t width);
  void emitChannels(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk);
  void emitTile(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                mlir::Value tile, int64_t rows, bool limited);
  llvm::SmallVector<mlir::Value>
  emitTileSums(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
               mlir::Value tile, const Tile &panel, int64_t rows,
               bool readsInputs, mlir::ValueRange init);

  /// The block of the weights with tile number `tile` of the filters, and where
  /// in it the tile begins.
  std::pair<mlir::Value, mlir::Value> findTile(mlir::ImplicitLocOpBuilder &b,
                                               mlir::Value tile);
  /// The accumulators [row * tiles + tile] of `rows` of tiles side by side
  /// before the loop over k, and what becomes of them after it.
  llvm::SmallVector<mlir::Value> emitInits(mlir::ImplicitLocOpBuilder &b,
                                           llvm::ArrayRef<Tile> tiles,
                                           int64_t rows);
  void emitStores(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<Tile> tiles,
                  mlir::ValueRange accs, int64_t rows);

  Prefetch prefetchWeights(mlir::ImplicitLocOpBuilder &b, mlir::Value from,
                           int64_t elements, mlir::Value loop, int64_t loops,
                           int64_t steps);

  Prefetch prefetchInputs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                          mlir::Value tile, mlir::Value loop, int64_t loops,
                          int64_t steps);

  mlir::Value emitOntoInit(mlir::ImplicitLocOpBuilder &b, const Tile &tile,
                           mlir::Value value);

  // LastPositions.cpp
  int64_t countLastPositions();
  void emitLastPositions(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                         mlir::Value left, int64_t positions);
  void emitFilterLanes(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                       mlir::Value tile, int64_t count, mlir::Value sums);
  void emitFilterRows(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value tile, int64_t count, mlir::Value left,
                      mlir::Value sums);

  void emitOutputChannels(mlir::ImplicitLocOpBuilder &b);
  void emitChannelLaneBlocks(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                             mlir::Value first, mlir::Value end);
  void emitChannelLaneSums(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                           mlir::Value block, int64_t blocks, mlir::Value sums);
  void emitChannelLaneOutputs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                              mlir::Value block, int64_t number,
                              mlir::Value sums, mlir::Value outputs);

  /// Consecutive tiles of an image, and where their inputs lie transformed.
  struct WinogradPanel {
    mlir::Value image, number;
    int64_t width;
    mlir::Value inputs;
    mlir::Value slot[2];
    /// Filters that a tile of products has, and those that go through a tap
    /// before the next.
    int64_t tileRows, groupRows;
  };
  /// A group of tiles: its first row of tiles and its first column.
  struct WinogradGroup {
    int64_t rows, columns;
    mlir::Value firstRow, firstColumn;
  };
  int64_t winogradGroupRows();
  void emitWinograd(mlir::ImplicitLocOpBuilder &b);
  WinogradGroup emitWinogradGroup(mlir::ImplicitLocOpBuilder &b,
                                  mlir::Value number);
  mlir::Value emitWinogradBuffer(mlir::ImplicitLocOpBuilder &b,
                                 mlir::Value images, mlir::Value panels,
                                 int64_t width);
  /// Transforms the inputs of a panel, for channels [from, to).
  void emitWinogradInput(mlir::ImplicitLocOpBuilder &b,
                         const WinogradPanel &panel, mlir::Value from,
                         mlir::Value to);
  /// Whether the weights of Winograd's products are in blocks of a panel's
  /// width, for the lanes of vectors.
  bool hasFilterLanes() { return op.getFilters().getInLanes(); }
  /// A product: which of them, and with which tap of the filters.
  struct WinogradProduct {
    mlir::Value number, tap;
  };
  WinogradProduct findWinogradProduct(mlir::ImplicitLocOpBuilder &b,
                                      mlir::Value n);
  void emitWinogradTiles(mlir::ImplicitLocOpBuilder &b,
                         const WinogradPanel &panel, mlir::Value group,
                         mlir::Value products);
  void emitWinogradTile(mlir::ImplicitLocOpBuilder &b,
                        const WinogradPanel &panel,
                        const WinogradProduct &product,
                        mlir::Value firstOfGroup, mlir::Value inGroup,
                        mlir::Value products);
  void emitWinogradLaneTiles(mlir::ImplicitLocOpBuilder &b,
                             const WinogradPanel &panel, mlir::Value block,
                             mlir::Value products);
  struct WinogradLanes;
  llvm::SmallVector<mlir::Value>
  emitWinogradLaneSums(mlir::ImplicitLocOpBuilder &b,
                       const WinogradPanel &panel, const WinogradLanes &at);
  void emitWinogradProducts(mlir::ImplicitLocOpBuilder &b,
                            const WinogradPanel &panel, mlir::Value block);
  /// The outputs that follow from the products [number, filter, tile] of a
  /// group of filters with a panel.
  void emitWinogradOutputs(mlir::ImplicitLocOpBuilder &b,
                           const WinogradPanel &panel, mlir::Value firstFilter,
                           mlir::Value products);
  void emitWinogradRows(
      mlir::ImplicitLocOpBuilder &b, const WinogradGroup &group,
      mlir::Value image, mlir::Value filter, bool isUnrolled,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value row)>
          columns);

  /// The loops of a convolution by parts of bf16 (Bf16x3Conv.cpp).
  class Bf16x3Loops;
  void emitBf16x3(mlir::ImplicitLocOpBuilder &b);

  struct Lines;
  /// Some filters, and a row of the output, whose first tap reads line number
  /// `line` of a channel.
  struct LineTile {
    mlir::Value image, number, outputRow, line;
    int64_t filters;
  };
  Lines planRowBuffer(mlir::ImplicitLocOpBuilder &b);
  void emitRowBuffer(mlir::ImplicitLocOpBuilder &b);
  void emitLine(mlir::ImplicitLocOpBuilder &b, const Lines &lines,
                mlir::ValueRange channel, mlir::Value source, mlir::Value line);
  void emitLineTiles(mlir::ImplicitLocOpBuilder &b, const Lines &lines,
                     const LineTile &at);
  void emitLineTile(mlir::ImplicitLocOpBuilder &b, const Lines &lines,
                    const LineTile &at, mlir::Value vector, int64_t count,
                    bool isCut);

  /// The loops of a convolution of single channels (DepthwiseConv.cpp).
  class DepthwiseLoops;
  void emitDepthwise(mlir::ImplicitLocOpBuilder &b);

  const ConvFacts &facts;
  const ConvPlanAttr plan;
  cpu::ConvOp op;
  const cpu::TargetAttr target;
  TileEvaluator &evaluator;
  const TileShape shape;
  const int64_t lanes, registers;
  const int64_t spatial, group;
  /// Null: the sums are direct.
  const cpu::Winograd *const winograd;
  /// See ConvOperands.
  const mlir::Value input, weights, flatInput, phases, allInputs, flatWeights;
  const llvm::SmallVector<mlir::Value> inSizes;
  const mlir::Value outPositions, groupChannels, groupFilters, depth;
  /// Vectors side by side in a tile of a panel.
  const int64_t columns;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONVEMITTER_H
