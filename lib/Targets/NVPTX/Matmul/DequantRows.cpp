//===- DequantRows.cpp - A few rows times packed weights ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/DequantRows.h"

#include "Kernel/Block.h"
#include "Kernel/Warpgroup.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kWarp = 32;
/// Each element of a row that a warp reads meets so many weights: of as many
/// columns, or of fewer where there are several products.
static constexpr int64_t kWeights = 4;
/// Steps along K whose weights are asked for before the rows are there.
static constexpr int64_t kPrefetched = 4;
/// Of the L2 cache.
static constexpr int64_t kLineBytes = 128;
/// Bytes of shared memory for rows.
static constexpr int64_t kChunkBytes = 48 * 1024;
/// Neighbours that a thread copies, or multiplies by, at a time.
static constexpr int64_t kWidth = 4;
static constexpr int64_t kSumBytes = 4;
/// As many weights as a piece can have: 2 bits each.
static constexpr int64_t kMostValues = 64;

DequantRows::DequantRows(ArrayRef<sdx::DequantMatmulOp> products,
                         KernelBody &body, int64_t rows, TargetAttr target)
    : products(products), op(products.front()), body(body), points(body),
      prologue(op.getLhs(), body), rows(rows), depth(op.getDepth()),
      columns(op.getColumns()),
      warpColumns(std::max<int64_t>(
          kWeights / static_cast<int64_t>(products.size()), 1)) {
  for (sdx::DequantMatmulOp product : products) {
    points.declare(product.getResult());
    weights.emplace_back(product, body, kMostValues);
  }
  isPaired = op.getLhs().getType().getElementType().isF16() &&
             weights.front().hasPairs();
  choosePlan(target);
  if (products.size() != 1 || !HeadEpilogue::isNeeded(op.getResult()))
    return;
  heads.emplace(op.getResult(), body);
  points.readElsewhere();
  points.declare(op.getResult(),
                 [this](ImplicitLocOpBuilder &b, ValueRange index) -> Value {
                   Value r = b.createOrFold<arith::SubIOp>(index[0], row0);
                   Value c = getBlockColumns().number(b, col0, index[1]);
                   return memref::LoadOp::create(b, sums, placeOf(b, 0, r, c));
                 });
}

int64_t DequantRows::rowsOfBlock(int64_t known) {
  const int64_t rows = known == 3 ? 4 : std::min(known, kPackedRowsOfBlock);
  return std::max<int64_t>(rows, 1);
}

bool DequantRows::isPossible() {
  const int64_t rank = op.getInit().getType().getRank();
  return (!prologue.isNeeded() || prologue.isPossible()) &&
         llvm::all_of(products,
                      [&](sdx::DequantMatmulOp product) {
                        return points.canEvaluate(product.getInit());
                      }) &&
         (!heads ||
          (heads->isPossible() && getBlockColumns().fits(warpColumns))) &&
         llvm::all_of(body.getOutputs(), [&](const KernelBody::Output &out) {
           return (heads ||
                   cast<MemRefType>(out.memref.getType()).getRank() == rank) &&
                  points.canEvaluate(out.tensor);
         });
}

/// Warps share columns until each multiprocessor has a block.
void DequantRows::choosePlan(TargetAttr target) {
  const int64_t wanted = target.countMultiprocessors();
  auto chunkBytes = [&] { return rows * rowPitch() * elementBytes(); };
  while (parts < kWarps && piecesOfRow() > stepPieces() &&
         llvm::divideCeil(columns, warpColumns * kWarps / parts) < wanted) {
    parts *= 2;
    if (chunkBytes() > kChunkBytes) {
      parts /= 2;
      break;
    }
  }
  steps = llvm::divideCeil(piecesOfRow(), stepPieces());
  const int64_t most = kChunkBytes / chunkBytes();
  chunkSteps = std::clamp<int64_t>(most, 1, std::max<int64_t>(steps, 1));
}

void DequantRows::emit(ImplicitLocOpBuilder &b, Value isWanted) {
  Indices i(b);
  if (prologue.isNeeded()) {
    numRows = i.constant(op.getLhs().getType().getDimSize(0));
  } else {
    lhs = body.getBuffer(op.getLhs());
    numRows = sizeOf(b, lhs, 0);
  }
  const int64_t blockCols = llvm::divideCeil(columns, getBlockColumns().count);
  Value blocks = i.mul(i.ceilDiv(numRows, rows), blockCols);
  if (isWanted)
    blocks = b.createOrFold<arith::SelectOp>(isWanted, blocks, i.constant(0));
  const int64_t others = heads ? heads->countBlocks(kThreads) : 0;
  OpBuilder::InsertionGuard guard(b);
  scf::ParallelOp loop =
      startBlocks(b, i.add(blocks, others), kThreads, "rows");
  // The more pieces are on their way to registers the better.
  loop->setAttr(kBlocksAttr, b.getI64IntegerAttr(2));
  Value block = loop.getInductionVars()[0];
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  if (others != 0) {
    auto which = scf::IfOp::create(b, i.less(block, blocks),
                                   /*withElseRegion=*/true);
    b.setInsertionPoint(which.elseYield());
    heads->emitOthers(b, points, b.createOrFold<arith::SubIOp>(block, blocks),
                      thread, kThreads);
    b.setInsertionPoint(which.thenYield());
  }
  row0 = i.mul(i.div(block, blockCols), rows);
  col0 = getBlockColumns().first(b, i.rem(block, blockCols));
  emitBlock(b, block);
}

void DequantRows::emitBlock(ImplicitLocOpBuilder &b, Value block) {
  Indices i(b);
  lane = i.rem(thread, kWarp);
  Value warp = i.div(thread, kWarp);
  part = i.rem(warp, parts);
  warpCol =
      getBlockColumns().column(b, col0, i.mul(i.div(warp, parts), warpColumns));
  const int64_t chunkBytes = rows * rowPitch() * elementBytes();
  const int64_t sumsOfWarp = countSums();
  prefetchWeights(b);
  if (prologue.isNeeded())
    lhs = prologue.emit(b, thread);
  Value shared =
      allocateShared(b, std::max(chunkBytes, kWarps * sumsOfWarp * kSumBytes));
  Type f32 = b.getF32Type();
  chunkOfRows = viewShared(b, shared, 0, {rows * rowPitch()},
                           isPaired ? b.getF16Type() : f32);
  // Pairs of f16 are read as words.
  if (isPaired)
    pairsOfRows =
        viewShared(b, shared, 0, {rows * rowPitch() / 2}, b.getI32Type());
  sums = viewShared(b, shared, 0, {kWarps, sumsOfWarp}, f32);
  State state = emitChunks(b);
  gpu::BarrierOp::create(b);
  storeSums(b, ArrayRef(state).take_front(sumsOfWarp));
  gpu::BarrierOp::create(b);
  emitResults(b);
}

/// Asks for the weights of the first steps, a lane for each line of the cache.
void DequantRows::prefetchWeights(ImplicitLocOpBuilder &b) {
  if (!canPrefetch(op))
    return;
  Indices i(b);
  const int64_t together =
      std::max<int64_t>(kLineBytes / weights.front().bytesOfPiece(), 1);
  auto one = scf::IfOp::create(b, i.less(i.rem(lane, together), i.constant(1)),
                               /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(one.thenYield());
  for (int64_t step = 0; step < std::min(steps, kPrefetched); ++step) {
    Value piece = i.add(i.add(i.mul(part, kWarp), lane), step * stepPieces());
    piece = arith::MinSIOp::create(b, piece, i.constant(piecesOfRow() - 1));
    for (const PackedWeights &ofProduct : weights)
      for (int64_t c = 0; c < warpColumns; ++c) {
        Value column = arith::MinSIOp::create(b, i.add(warpCol, c),
                                              i.constant(columns - 1));
        ofProduct.prefetchPiece(b, column, piece);
      }
  }
}

/// What the thread multiplies in a step, of each of its columns.
DequantRows::State DequantRows::loadPieces(ImplicitLocOpBuilder &b,
                                           Value step) {
  Indices i(b);
  Value piece =
      i.add(i.add(i.mul(step, stepPieces()), i.mul(part, kWarp)), lane);
  Value exists = i.less(piece, i.constant(piecesOfRow()));
  State loaded;
  for (const PackedWeights &ofProduct : weights)
    for (int64_t c = 0; c < warpColumns; ++c) {
      // Sums of columns that there aren't are not stored.
      Value column =
          arith::MinSIOp::create(b, i.add(warpCol, c), i.constant(columns - 1));
      llvm::append_range(loaded, ofProduct.load(b, column, piece, exists));
    }
  return loaded;
}

/// An element of the rows as it lies in shared memory.
Value DequantRows::loadLhs(ImplicitLocOpBuilder &b, Value row, Value k) {
  Value element = memref::LoadOp::create(b, lhs, ValueRange{row, k});
  return isPaired ? element : convertToF32(b, element);
}

/// Copies a chunk of the block's rows to shared memory: as f32 times what makes
/// up for the weights' places in words, or as f16 in pairs. What lies outside
/// of them is 0.
void DequantRows::copyRows(ImplicitLocOpBuilder &b, Value chunk) {
  Indices i(b);
  const int64_t values = countValues();
  const int64_t columnsOfChunk = chunkSteps * stepPieces() * values;
  Value first = i.mul(chunk, columnsOfChunk);
  auto loop = scf::ForOp::create(b, i.mul(thread, kWidth),
                                 i.constant(rows * columnsOfChunk),
                                 i.constant(kThreads * kWidth));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  Value r = i.div(at, columnsOfChunk), c = i.rem(at, columnsOfChunk);
  Value row = i.add(row0, r), k = i.add(first, c);
  auto placeOf = [&](Value column) {
    Value inPiece = i.rem(column, values);
    if (isPaired)
      inPiece = weights.front().placeInPairs(b, inPiece);
    return i.add(i.mul(r, rowPitch()),
                 i.add(i.mul(i.div(column, values), pitch()), inPiece));
  };
  // Neighbours are there together where K is a multiple of their number.
  const int64_t together = depth % kWidth == 0 ? kWidth : 1;
  Type type = isPaired ? Type(b.getF16Type()) : Type(b.getF32Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> copied;
  for (int64_t j = 0; j < kWidth; j += together) {
    Value inside =
        i.both(i.less(row, numRows), i.less(i.add(k, j), i.constant(depth)));
    auto some = scf::IfOp::create(b, SmallVector<Type>(together, type), inside,
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(some.elseBlock());
    scf::YieldOp::create(b, SmallVector<Value>(together, zero));
    b.setInsertionPointToStart(some.thenBlock());
    SmallVector<Value> loaded;
    for (int64_t n = 0; n < together; ++n)
      loaded.push_back(loadLhs(b, row, i.add(k, j + n)));
    for (auto [n, value] : llvm::enumerate(loaded))
      if (!isPaired)
        value = arith::MulFOp::create(
            b, value, weights.front().inverseFactor(b, i.add(c, j + n)));
    scf::YieldOp::create(b, loaded);
    llvm::append_range(copied, some.getResults());
  }
  for (auto [j, value] : llvm::enumerate(copied))
    memref::StoreOp::create(b, value, chunkOfRows,
                            isPaired ? placeOf(i.add(c, j))
                                     : i.add(placeOf(c), j));
}

DequantRows::State DequantRows::emitChunks(ImplicitLocOpBuilder &b) {
  Indices i(b);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  State state(countSums(), zero);
  llvm::append_range(state, loadPieces(b, i.constant(0)));
  const int64_t chunks = llvm::divideCeil(steps, chunkSteps);
  if (chunks == 1)
    return emitChunk(b, i.constant(0), state);
  auto loop = scf::ForOp::create(b, i.constant(0), i.constant(chunks),
                                 i.constant(1), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  gpu::BarrierOp::create(b);
  State next = emitChunk(b, loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return State(loop.getResults());
}

DequantRows::State DequantRows::emitChunk(ImplicitLocOpBuilder &b, Value chunk,
                                          ValueRange state) {
  Indices i(b);
  copyRows(b, chunk);
  gpu::BarrierOp::create(b);
  Value first = i.mul(chunk, chunkSteps);
  auto loop = scf::ForOp::create(b, i.constant(0), i.constant(chunkSteps),
                                 i.constant(1), state);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  // Steps beyond the last one have no pieces.
  State next = loadPieces(b, i.add(i.add(first, step), 1));
  State added = multiply(b, step, loop.getRegionIterArgs());
  llvm::append_range(added, next);
  scf::YieldOp::create(b, added);
  return State(loop.getResults());
}

/// The sums with a step's products.
DequantRows::State DequantRows::multiply(ImplicitLocOpBuilder &b,
                                         Value stepOfChunk, ValueRange state) {
  Indices i(b);
  const int64_t perPiece = weights.front().types(b).size();
  // Of column `c` of all products' together.
  auto pieceOf = [&](int64_t c) {
    return state.slice(countSums() + c * perPiece, perPiece);
  };
  Value piece =
      i.add(i.add(i.mul(stepOfChunk, stepPieces()), i.mul(part, kWarp)), lane);
  Value from = i.mul(piece, pitch());
  State products = isPaired ? multiplyPairs(b, from, pieceOf)
                            : multiplyAll(b, from, pieceOf);
  State added;
  for (auto [n, product] : llvm::enumerate(products))
    added.push_back(math::FmaOp::create(
        b, weights.front().scaleOf(pieceOf(n % columnsOfProducts())), product,
        state[n]));
  return added;
}

/// The sums [rows, columns of all products] of a piece's products, without its
/// scale, of elements that begin at `from`.
DequantRows::State DequantRows::multiplyAll(ImplicitLocOpBuilder &b, Value from,
                                            PieceOf pieceOf) {
  Indices i(b);
  const int64_t all = columnsOfProducts();
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  State sumOf(countSums(), zero);
  for (int64_t at = 0; at < countValues(); at += kWidth) {
    SmallVector<Value> elements; // [rows, kWidth]
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < kWidth; ++j)
        elements.push_back(memref::LoadOp::create(
            b, chunkOfRows, i.add(from, r * rowPitch() + at + j)));
    for (int64_t j = 0; j < kWidth; ++j)
      for (int64_t c = 0; c < all; ++c) {
        Value weight = weights[c / warpColumns].unpack(b, pieceOf(c), at + j);
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = sumOf[r * all + c];
          sum = math::FmaOp::create(b, weight, elements[r * kWidth + j], sum);
        }
      }
  }
  return sumOf;
}

/// The same of pairs: added up in f16, a sum for each half of a word.
DequantRows::State DequantRows::multiplyPairs(ImplicitLocOpBuilder &b,
                                              Value from, PieceOf pieceOf) {
  Indices i(b);
  const int64_t all = columnsOfProducts();
  auto two = VectorType::get({2}, b.getF16Type());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(two));
  State sumOf(countSums(), zero);
  from = i.div(from, 2);
  for (int64_t pair = 0; pair < countValues() / 2; ++pair) {
    State elements;
    for (int64_t r = 0; r < rows; ++r)
      elements.push_back(LLVM::BitcastOp::create(
          b, two,
          memref::LoadOp::create(b, pairsOfRows,
                                 i.add(from, r * rowPitch() / 2 + pair))));
    for (int64_t c = 0; c < all; ++c) {
      Value weight = weights[c / warpColumns].unpackPair(b, pieceOf(c), pair);
      for (int64_t r = 0; r < rows; ++r) {
        Value &sum = sumOf[r * all + c];
        sum = math::FmaOp::create(b, weight, elements[r], sum);
      }
    }
  }
  const int64_t exponent = weights.front().pairExponent();
  Value factor = arith::ConstantOp::create(
      b, b.getF32FloatAttr(static_cast<float>(int64_t(1) << exponent)));
  for (Value &sum : sumOf) {
    Value wide =
        arith::ExtFOp::create(b, VectorType::get({2}, b.getF32Type()), sum);
    Value low = LLVM::ExtractElementOp::create(b, wide, word(b, 0));
    Value high = LLVM::ExtractElementOp::create(b, wide, word(b, 1));
    sum = arith::MulFOp::create(b, arith::AddFOp::create(b, low, high), factor);
  }
  return sumOf;
}

/// Adds up what the lanes of a warp have; its first one writes it.
void DequantRows::storeSums(ImplicitLocOpBuilder &b, ValueRange ofLane) {
  Indices i(b);
  SmallVector<Value> total(ofLane);
  for (Value &sum : total)
    for (int32_t distance = kWarp / 2; distance > 0; distance /= 2)
      sum = arith::AddFOp::create(
          b, sum,
          gpu::ShuffleOp::create(b, sum, distance, kWarp, gpu::ShuffleMode::XOR)
              .getShuffleResult());
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, i.constant(0));
  auto one = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(one.thenYield());
  Value warp = i.div(thread, kWarp);
  for (auto [n, sum] : llvm::enumerate(total))
    memref::StoreOp::create(b, sum, sums, ValueRange{warp, i.constant(n)});
}

/// Where the first part of the sum of row `r` and column `c` of the block is,
/// of the product number `which`.
SmallVector<Value> DequantRows::placeOf(ImplicitLocOpBuilder &b, int64_t which,
                                        Value r, Value c) {
  Indices i(b);
  Value number = i.add(i.mul(r, columnsOfProducts()), i.rem(c, warpColumns));
  return {i.mul(i.div(c, warpColumns), parts),
          i.add(number, which * warpColumns)};
}

/// A thread has one element of the result: it adds up the parts of K, and
/// computes what follows.
void DequantRows::emitResults(ImplicitLocOpBuilder &b) {
  Indices i(b);
  const int64_t columnsOfBlock = getBlockColumns().count;
  Value r = i.div(thread, columnsOfBlock), c = i.rem(thread, columnsOfBlock);
  Value m = i.add(row0, r), n = getBlockColumns().column(b, col0, c);
  Value exists =
      i.both(i.less(thread, i.constant(rows * columnsOfBlock)),
             i.both(i.less(m, numRows), i.less(n, i.constant(columns))));
  OpBuilder::InsertionGuard guard(b);
  auto start = [&] {
    auto some = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    return some;
  };
  scf::IfOp some = start();
  SmallVector<SmallVector<Value>> indices = {{m, n}};
  SmallVector<PointEvaluator::Point> known(1);
  for (auto [which, product] : llvm::enumerate(products)) {
    SmallVector<Value> place = placeOf(b, which, r, c);
    Value total;
    for (int64_t p = 0; p < parts; ++p) {
      Value sum = memref::LoadOp::create(
          b, sums, ValueRange{i.add(place[0], p), place[1]});
      total = total ? arith::AddFOp::create(b, total, sum).getResult() : sum;
    }
    Value init = product.getInit();
    if (!isZeroFilled(init))
      total = arith::AddFOp::create(
          b, total, points.evaluate(b, init, indices[0], known[0]));
    known[0].add(product.getResult(), indices[0], total);
    if (heads)
      memref::StoreOp::create(b, total, sums, place);
  }
  if (!heads)
    return points.store(b, body.getOutputs(), indices, known);
  // Elements hang on several columns: sums are where all threads find them.
  b.setInsertionPointAfter(some);
  gpu::BarrierOp::create(b);
  start();
  heads->emit(b, points, i.add(i.mul(m, columns), n));
}
