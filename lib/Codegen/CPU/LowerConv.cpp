//===- LowerConv.cpp - Convolutions as register tiles ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"
#include "IndexMath.h"
#include "MicroKernel.h"
#include "WinogradConv.h"

#include "sardonyx/Codegen/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

namespace sardonyx {
#define GEN_PASS_DEF_LOWERCONVPASS
#include "sardonyx/Codegen/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

ConvEmitter::ConvEmitter(sdx::ConvOp op, KernelBody &body, unsigned vectorBits,
                         int64_t l2Bytes)
    : op(op), body(body), l2Bytes(l2Bytes),
      evaluator(body, op->getResult(0), 1, 2),
      shape(TileShape::get(vectorBits, sdx::kPanelWidth)),
      lanes(std::max<int64_t>(1, vectorBits / 32)),
      spatial(op.getNumSpatialDims()), group(op.getGroup()) {
  shape.rows = std::gcd(shape.rows, op.getBlockRows());
}

LogicalResult ConvEmitter::verify() {
  if (!KernelBody::hasBuffer(op.getInput()) ||
      !KernelBody::hasBuffer(op.getWeights()))
    return op.emitOpError("has an operand that is computed in its own kernel");
  if (group <= 0)
    return op.emitOpError("has no groups");
  auto all = [](ArrayRef<int64_t> values, int64_t value) {
    return llvm::all_of(values, [&](int64_t v) { return v == value; });
  };
  if (op->hasAttr(kWinogradAttr) &&
      (spatial != 2 || group != 1 || !all(op.getKernelShape(), 3) ||
       !all(op.getStrides(), 1) || !all(op.getDilations(), 1)))
    return op.emitOpError("is no plain 3x3 convolution, so its weights cannot "
                          "be transformed");
  return evaluator.verify(op.getInit());
}

/// Whether an output position and the input that one tap reads for it are
/// always the same distance apart in memory, edges aside.
bool ConvEmitter::isShift() {
  if (phases)
    return true;
  for (int64_t d = 0; d < spatial; ++d) {
    if (stride(d) != 1)
      return false;
    // The size in equals the size out, or does not matter.
    int64_t pads = pad(d) + op.getPadsEnd()[d];
    if (d > 0 && pads != dilation(d) * (kernel(d) - 1))
      return false;
  }
  return true;
}

Value sardonyx::cpu::emitLanes(ImplicitLocOpBuilder &b, int64_t width,
                               int64_t step) {
  SmallVector<int32_t> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(i * step);
  return arith::ConstantOp::create(b, b.getI32VectorAttr(values));
}

Value sardonyx::cpu::emitSplat32(ImplicitLocOpBuilder &b, Value index,
                                 int64_t width) {
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, b.getI32Type()), narrow);
}

void ConvEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  input = body.getBuffer(op.getInput());
  weights = body.getBuffer(op.getWeights());
  evaluator.prepare(b, op.getInit());
  flatInput = emitCollapse(b, input, 2);
  flatWeights = emitCollapse(b, weights, 0);
  outPositions = math.constant(1);
  for (int64_t d = 0; d < spatial; ++d) {
    inSizes.push_back(math.dim(input, 2 + d));
    outPositions = math.mul(outPositions, outSize(d));
  }
  groupChannels = math.div(math.dim(input, 1), group);
  groupFilters = math.div(evaluator.getSize(1), group);
  depth = math.dim(weights, 2);
  std::optional<int64_t> channels = IndexMath::known(groupChannels);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (op->hasAttr(kWinogradAttr))
    return emitWinograd(b);
  if (channels && *channels == 1 && filters && *filters <= 2)
    return emitDepthwise(b);
  if (canSplitPhases())
    emitPhases(b);
  allInputs = emitCollapse(b, phases ? phases : input, 0);
  if (hasChannelLanes())
    emitChannelLanes(b);
  else
    emitPanels(b);
  if (phases)
    memref::DeallocOp::create(b, phases);
}

/// The sum of a finished product and the op's init on a tile of one row.
Value ConvEmitter::emitOntoInit(ImplicitLocOpBuilder &b, const Tile &tile,
                                Value value) {
  auto fill = skipCasts(op.getInit()).getDefiningOp<linalg::FillOp>();
  if (fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
    return value;
  Value init = evaluator.emitInit(b, op.getInit(), tile, 1).front();
  return arith::AddFOp::create(b, init, value);
}

//===----------------------------------------------------------------------===//
// By panels of output positions
//===----------------------------------------------------------------------===//

/// Tiles of output channels that a chunk computes: all of them, so that a
/// panel is packed once, unless panels are too few to occupy the threads.
int64_t ConvEmitter::tilesPerChunk() {
  constexpr int64_t kEnoughChunks = 16, kFewestChannels = 128;
  std::optional<int64_t> positions = IndexMath::known(outPositions);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (!filters)
    return 16;
  int64_t tiles = llvm::divideCeil(*filters, shape.rows);
  if (!positions)
    return std::max<int64_t>(1, tiles);
  int64_t images = IndexMath::known(evaluator.getSize(0)).value_or(1);
  int64_t chunks = std::max<int64_t>(
      1, images * group * llvm::divideCeil(*positions, shape.width));
  int64_t split = llvm::divideCeil(kEnoughChunks, chunks);
  return std::clamp<int64_t>(llvm::divideCeil(tiles, split),
                             std::min(tiles, kFewestChannels / shape.rows),
                             std::max<int64_t>(1, tiles));
}

/// Whether the first tile of a panel reads its inputs from where they lie and
/// packs them for the others, so that they come while it multiplies. It does
/// where values of k are channels.
bool ConvEmitter::packsInFirstTile() {
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (countTaps() != 1 || !filters)
    return false;
  // Each chunk must begin with a whole tile.
  int64_t tiles = llvm::divideCeil(*filters, shape.rows);
  int64_t lastChunk = (tiles - 1) / tilesPerChunk() * tilesPerChunk();
  return lastChunk < *filters / shape.rows;
}

void ConvEmitter::emitPanels(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  int64_t tiles = tilesPerChunk();
  Value allTiles = math.ceilDiv(groupFilters, shape.rows);
  SmallVector<Value> sizes = {evaluator.getSize(0), math.constant(group),
                              math.ceilDiv(outPositions, shape.width),
                              math.ceilDiv(allTiles, tiles)};
  emitParallel(b, sizes, [&](ValueRange ivs) {
    Chunk chunk;
    chunk.image = ivs[0];
    chunk.group = ivs[1];
    chunk.position = math.mul(ivs[2], shape.width);
    chunk.firstTile = math.mul(ivs[3], tiles);
    chunk.endTile = math.min(math.add(chunk.firstTile, tiles), allTiles);
    chunk.scratch = emitScratch(b, shape.width);
    // A last panel of half the positions or less gets tiles of half the width.
    std::optional<int64_t> positions = IndexMath::known(outPositions);
    int64_t tail = positions ? *positions % shape.width : 0;
    auto panel = [&](int64_t width, bool masked) {
      chunk.width = width;
      if (masked)
        chunk.mask =
            emitTailMask(b, math.sub(outPositions, chunk.position), width);
      if (!packsInFirstTile())
        emitPack(b, chunk);
      emitChannels(b, chunk);
    };
    if (!tail || 2 * tail > shape.width)
      panel(shape.width, !positions || tail);
    else
      emitIf(
          b, math.less(chunk.position, math.constant(*positions - tail)),
          [&] { panel(shape.width, /*masked=*/false); },
          [&] { panel(shape.width / 2, 2 * tail != shape.width); });
    memref::DeallocOp::create(b, chunk.scratch);
  });
}

/// Memory for one packed panel.
Value ConvEmitter::emitScratch(ImplicitLocOpBuilder &b, int64_t width) {
  std::optional<int64_t> rows = IndexMath::known(depth);
  auto type = MemRefType::get({rows.value_or(ShapedType::kDynamic), width},
                              b.getF32Type());
  SmallVector<Value> dynamic;
  if (!rows)
    dynamic.push_back(depth);
  return memref::AllocOp::create(b, type, dynamic, b.getI64IntegerAttr(64));
}

/// Fills the scratch with the inputs of a panel, one row for each k.
void ConvEmitter::emitPack(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  IndexMath math(b);
  int64_t taps = countTaps();
  emitTaps(b, chunk, [&](const Tap &tap) {
    emitFor(b, math.constant(0), groupChannels, 1, [&](Value channel) {
      emitStore(
          b, emitInputs(b, chunk, tap, channel), chunk.scratch,
          {math.add(math.mul(channel, taps), tap.number), math.constant(0)});
    });
  });
}

int64_t ConvEmitter::countTaps() {
  int64_t taps = 1;
  for (int64_t d = 0; d < spatial; ++d)
    taps *= kernel(d);
  return taps;
}

/// Calls `visit` in the loops over the kernel, or once for a single tap.
void ConvEmitter::emitTaps(ImplicitLocOpBuilder &b, const Chunk &chunk,
                           function_ref<void(const Tap &)> visit) {
  IndexMath math(b);
  int64_t width = chunk.width;
  SmallVector<Value> base(spatial);
  bool shift = isShift();
  bool needsCoordinates = !shift;
  for (int64_t d = 0; d < spatial; ++d)
    needsCoordinates |= isPadded(d);
  if (needsCoordinates) {
    // The coordinates of each lane's output position, scaled to the input.
    Value rest = arith::AddIOp::create(b, emitSplat32(b, chunk.position, width),
                                       emitLanes(b, width, 1));
    for (int64_t d = spatial - 1; d >= 0; --d) {
      Value coordinate = rest;
      if (d > 0) {
        Value size = emitSplat32(b, outSize(d), width);
        Value quotient = arith::DivUIOp::create(b, rest, size);
        coordinate = arith::SubIOp::create(
            b, rest, arith::MulIOp::create(b, quotient, size));
        rest = quotient;
      }
      if (stride(d) != 1)
        coordinate = arith::MulIOp::create(
            b, coordinate, emitSplat32(b, math.constant(stride(d)), width));
      if (pad(d))
        coordinate = arith::SubIOp::create(
            b, coordinate, emitSplat32(b, math.constant(pad(d)), width));
      base[d] = coordinate;
    }
  }
  Value mask = chunk.mask;
  if (!mask && !(shift && !needsCoordinates))
    mask = arith::ConstantOp::create(
        b,
        DenseElementsAttr::get(VectorType::get({width}, b.getI1Type()), true));
  Tap first;
  first.mask = mask;
  first.offset = shift ? chunk.position : Value();
  first.phase = first.number = math.constant(0);
  emitTapLoop(b, chunk, base, first, 0, visit);
}

/// The loop over dimension `d` of the kernel, and those within it.
void ConvEmitter::emitTapLoop(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              ArrayRef<Value> base, const Tap &tap, int64_t d,
                              function_ref<void(const Tap &)> visit) {
  IndexMath math(b);
  if (d == spatial)
    return visit(tap);
  int64_t width = chunk.width;
  bool shift = isShift();
  auto step = [&](Value k) {
    Tap next = tap;
    Value distance = math.mul(k, dilation(d));
    Value coordinate = base[d];
    if (coordinate)
      coordinate =
          arith::AddIOp::create(b, coordinate, emitSplat32(b, distance, width));
    if (isPadded(d)) {
      // Unsigned, so that positions before the start are out as well.
      Value inside =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, coordinate,
                                emitSplat32(b, inSizes[d], width));
      next.mask = arith::AndIOp::create(b, tap.mask, inside);
    }
    if (phases) {
      auto [jump, parity] = findPhase(b, distance, d);
      for (int64_t e = d + 1; e < spatial; ++e)
        jump = math.mul(jump, outSize(e));
      next.offset = math.add(tap.offset, jump);
      next.phase = math.add(math.mul(tap.phase, 2), parity);
    } else if (shift) {
      Value jump = math.sub(distance, math.constant(pad(d)));
      for (int64_t e = d + 1; e < spatial; ++e)
        jump = math.mul(jump, inSizes[e]);
      next.offset = math.add(tap.offset, jump);
    } else if (tap.offset) {
      next.offset = arith::AddIOp::create(
          b,
          arith::MulIOp::create(b, tap.offset,
                                emitSplat32(b, inSizes[d], width)),
          coordinate);
    } else {
      next.offset = coordinate;
    }
    next.number = math.add(math.mul(tap.number, kernel(d)), k);
    emitTapLoop(b, chunk, base, next, d + 1, visit);
  };
  if (kernel(d) == 1)
    return step(math.constant(0));
  emitFor(b, math.constant(0), math.constant(kernel(d)), 1, step);
}

/// What one tap of a channel of the group reads for a panel.
Value ConvEmitter::emitInputs(ImplicitLocOpBuilder &b, const Chunk &chunk,
                              const Tap &tap, Value channel) {
  IndexMath math(b);
  SmallVector<Value> indices = {
      chunk.image, math.add(math.mul(chunk.group, groupChannels), channel)};
  if (phases) {
    indices.append({tap.phase, tap.offset});
    return emitLoad(b, phases, indices, chunk.width, tap.mask);
  }
  if (isShift()) {
    indices.push_back(tap.offset);
    return emitLoad(b, flatInput, indices, chunk.width, tap.mask);
  }
  indices.push_back(math.constant(0));
  auto type = VectorType::get({chunk.width}, b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return vector::GatherOp::create(b, type, flatInput, indices, tap.offset,
                                  tap.mask, zero);
}

void ConvEmitter::emitChannels(ImplicitLocOpBuilder &b, const Chunk &chunk) {
  IndexMath math(b);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (!filters)
    return emitFor(b, chunk.firstTile, chunk.endTile, 1, [&](Value tile) {
      emitTile(b, chunk, tile, shape.rows, /*limited=*/true);
    });
  int64_t full = *filters / shape.rows, tail = *filters % shape.rows;
  Value next = chunk.firstTile;
  if (packsInFirstTile()) {
    emitTaps(b, chunk, [&](const Tap &tap) {
      emitTile(b, chunk, next, shape.rows, /*limited=*/false, &tap);
    });
    next = math.add(next, 1);
  }
  if (full > 0)
    emitFor(b, next, math.min(chunk.endTile, math.constant(full)), 1,
            [&](Value tile) {
              emitTile(b, chunk, tile, shape.rows, /*limited=*/false);
            });
  if (tail > 0)
    emitIf(b, math.less(math.constant(full), chunk.endTile), [&] {
      emitTile(b, chunk, math.constant(full), tail, /*limited=*/false);
    });
}

/// Loop number `loop` of `loops` over `steps` values of k, which together fetch
/// `elements` of the weights, beginning with `from`.
Prefetch ConvEmitter::prefetchWeights(ImplicitLocOpBuilder &b, Value from,
                                      int64_t elements, Value loop,
                                      int64_t loops, int64_t steps) {
  if (!Prefetch::pays(weights))
    return {};
  return Prefetch::share(b,
                         {flatWeights, from, Prefetch::kLine,
                          elements / Prefetch::kLine, loops, steps},
                         loop);
}

/// What tile number `tile`, a loop over `steps` values of k, fetches of the
/// inputs of the next panel: some channels.
Prefetch ConvEmitter::prefetchInputs(ImplicitLocOpBuilder &b,
                                     const Chunk &chunk, Value tile,
                                     int64_t steps) {
  IndexMath math(b);
  auto type = cast<MemRefType>(allInputs.getType());
  std::optional<int64_t> channels = IndexMath::known(groupChannels);
  std::optional<int64_t> filters = IndexMath::known(groupFilters);
  if (!isShift() || !channels || !filters || !type.hasStaticShape() ||
      type.getNumElements() * int64_t(sizeof(float)) <= farBytes())
    return {};
  int64_t images = IndexMath::known(evaluator.getSize(0)).value_or(0);
  int64_t rows = *channels * (phases ? 4 : 1);
  int64_t stride = type.getNumElements() / (images * group * rows);
  int64_t tiles = std::min<int64_t>(tilesPerChunk(),
                                    llvm::divideCeil(*filters, shape.rows));
  Value image = math.add(math.mul(chunk.image, group), chunk.group);
  Value from = math.add(math.mul(image, rows * stride),
                        math.add(chunk.position, chunk.width));
  return Prefetch::share(b,
                         {allInputs, from, stride, rows, tiles, steps,
                          chunk.width / Prefetch::kLine},
                         math.sub(tile, chunk.firstTile));
}

void ConvEmitter::emitTile(ImplicitLocOpBuilder &b, const Chunk &chunk,
                           Value tileIndex, int64_t rows, bool limited,
                           const Tap *tap) {
  IndexMath math(b);
  int64_t tilesPerBlock = op.getBlockRows() / shape.rows;
  Value block = math.div(tileIndex, tilesPerBlock);
  Value rowInBlock =
      math.mul(math.sub(tileIndex, math.mul(block, tilesPerBlock)), shape.rows);
  Value firstFilter = math.mul(chunk.group, groupFilters);
  Tile tile;
  tile.index = {chunk.image,
                math.add(firstFilter, math.mul(tileIndex, shape.rows))};
  tile.position = chunk.position;
  tile.width = chunk.width;
  tile.mask = chunk.mask;
  if (limited)
    tile.rowLimit = math.add(firstFilter, groupFilters);
  SmallVector<Prefetch> next, ahead;
  if (std::optional<int64_t> known = IndexMath::known(depth);
      known && rows == shape.rows) {
    int64_t blockSize = *known * op.getBlockRows();
    Value blocks = math.add(math.mul(chunk.group, math.dim(weights, 1)), block);
    next.push_back(prefetchWeights(b, math.mul(math.add(blocks, 1), blockSize),
                                   blockSize, math.div(rowInBlock, shape.rows),
                                   tilesPerBlock, *known));
    next.push_back(prefetchInputs(b, chunk, tileIndex, *known));
    ahead = evaluator.prefetchNextOutputs(b, tile, rows, farBytes(), *known);
    llvm::append_range(next, ahead);
  }
  // Nobody has asked for what the first tile writes.
  if (ahead.empty() || tap)
    evaluator.prefetchOutputs(b, tile, rows, l2Bytes / 2);
  SmallVector<Value> accs = evaluator.emitInit(b, op.getInit(), tile, rows);
  accs = emitContractionLoop(
      b, depth, rows, 1, accs,
      [&](Value k, int64_t r) -> Value {
        return memref::LoadOp::create(
            b, weights,
            ValueRange{chunk.group, block, k, math.add(rowInBlock, r)});
      },
      [&](Value k, int64_t) -> Value {
        SmallVector<Value> row = {k, math.constant(0)};
        if (!tap)
          return emitLoad(b, chunk.scratch, row, chunk.width);
        Value inputs = emitInputs(b, chunk, *tap, k);
        emitStore(b, inputs, chunk.scratch, row);
        return inputs;
      },
      next);
  evaluator.emitStores(b, tile, accs);
}

namespace {

struct LowerConvPass : sardonyx::impl::LowerConvPassBase<LowerConvPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
      return;
    auto roots = llvm::to_vector(func.getOps<sdx::ConvOp>());
    if (roots.empty())
      return;
    sdx::ConvOp root = roots.front();
    if (!root.hasPureTensorSemantics())
      return;
    if (roots.size() > 1) {
      roots[1].emitOpError("is the second contraction of its kernel");
      return signalPassFailure();
    }
    KernelBody body(func);
    ConvEmitter emitter(root, body, vectorBits, l2KiB * 1024);
    if (failed(emitter.verify()) || failed(body.replaceDims()))
      return signalPassFailure();
    ImplicitLocOpBuilder b(root.getLoc(),
                           func.getBody().front().getTerminator());
    emitter.emit(b);
    body.eraseTensors();
  }
};

} // namespace
