//===- TileProducts.cpp - Products with tiles in registers ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loops/TileProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// With fewer rows nothing is read often enough.
static constexpr int64_t kFewestRows = 4;
/// Tiles below each other that are one task.
static constexpr int64_t kTilesOfTask = 32;

namespace {

/// Rows, and vectors of columns.
struct Tile {
  int64_t rows, vectors;
};

/// The loops of a product by role; there may be no batch.
struct Roles {
  int64_t batch = -1, m = -1, n = -1, k = -1;
};

class TiledProduct {
public:
  TiledProduct(OpBuilder &b, linalg::LinalgOp op) : b(b), op(op) {}

  bool matches();
  void emit(TargetAttr target);

private:
  using Tiles = SmallVector<Value>;

  bool matchesBody();
  void chooseTile(unsigned vectorBits);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value minus(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value getSize(int64_t d) {
    return getValueOrCreateConstantIndexOp(b, loc, sizes[d]);
  }
  /// The place in `operand` of an element.
  SmallVector<Value> getPlace(unsigned operand, Value batch, Value m, Value n,
                              Value k);
  bool isContiguous(unsigned operand) const;
  Value load(Value memref, ValueRange place, unsigned vector);
  void store(Value value, Value memref, SmallVector<Value> place,
             unsigned vector);
  Value column(unsigned vector) {
    return add(firstColumn, index(vector * lanes));
  }
  void setMasks();
  void packPanel(Value batch);
  void emitRows(Value batch, Value from, int64_t count);
  void emitTask(Value batch, Value panel, Value firstRow);
  scf::ForOp makeLoop(Value from, Value to, int64_t step, ValueRange state) {
    auto loop = scf::ForOp::create(b, loc, from, to, index(step), state);
    b.setInsertionPointToStart(loop.getBody());
    return loop;
  }

  OpBuilder &b;
  linalg::LinalgOp op;
  Location loc = op.getLoc();
  Roles roles;
  SmallVector<AffineMap> maps;
  SmallVector<OpFoldResult> sizes;
  VectorType type;
  int64_t lanes = 1;
  Tile tile{1, 1};
  /// The panel: its first column, masks of its vectors (empty: it is whole) and
  /// its copy (null: there is none).
  Value firstColumn, panel;
  SmallVector<Value> masks;
};

} // namespace

bool TiledProduct::matchesBody() {
  Block *body = op.getBlock();
  if (body->getNumArguments() != 3 || body->getOperations().size() != 3)
    return false;
  Operation &product = body->front(), *sum = product.getNextNode();
  if (!isa<arith::MulFOp, arith::MulIOp>(product) ||
      !isa<arith::AddFOp, arith::AddIOp>(sum) ||
      body->getTerminator()->getOperand(0) != sum->getResult(0))
    return false;
  auto has = [](Operation *of, Value x, Value y) {
    return (of->getOperand(0) == x && of->getOperand(1) == y) ||
           (of->getOperand(0) == y && of->getOperand(1) == x);
  };
  return has(&product, body->getArgument(0), body->getArgument(1)) &&
         has(sum, body->getArgument(2), product.getResult(0));
}

bool TiledProduct::isContiguous(unsigned operand) const {
  auto type = dyn_cast<MemRefType>(op->getOperand(operand).getType());
  auto last = dyn_cast<AffineDimExpr>(maps[operand].getResults().back());
  return last && static_cast<int64_t>(last.getPosition()) == roles.n &&
         (!type || type.areTrailingDimsContiguous(1));
}

bool TiledProduct::matches() {
  if (op->getNumOperands() != 3 || op->getNumRegions() != 1 ||
      op.getNumLoops() > 4 || op.getNumReductionLoops() != 1 || !matchesBody())
    return false;
  maps = op.getIndexingMapsArray();
  for (AffineMap map : maps)
    if (!map.isProjectedPermutation() || map.getNumResults() == 0)
      return false;
  auto iterators = op.getIteratorTypesArray();
  for (unsigned d = 0; d < op.getNumLoops(); ++d) {
    const bool ofLhs = maps[0].isFunctionOfDim(d),
               ofRhs = maps[1].isFunctionOfDim(d);
    int64_t &role = iterators[d] != utils::IteratorType::parallel ? roles.k
                    : ofLhs && ofRhs                              ? roles.batch
                    : ofLhs                                       ? roles.m
                                                                  : roles.n;
    if (role >= 0 || (!ofLhs && !ofRhs))
      return false;
    role = d;
  }
  if (roles.m < 0 || roles.n < 0 || !maps[0].isFunctionOfDim(roles.k) ||
      !maps[1].isFunctionOfDim(roles.k) || !isContiguous(2))
    return false;
  Type element = getElementTypeOrSelf(op->getOperand(2).getType());
  for (Value operand : op->getOperands())
    if (getElementTypeOrSelf(operand.getType()) != element)
      return false;
  if (!element.isF64() && !element.isF32() && !element.isInteger(32) &&
      !element.isInteger(64))
    return false;
  const int64_t rows = op.getStaticLoopRanges()[roles.m];
  return ShapedType::isDynamic(rows) || rows >= kFewestRows;
}

/// Of the tiles that registers have room for, the one that leaves least over.
/// Rows that are left are as long as two of a tile.
void TiledProduct::chooseTile(unsigned vectorBits) {
  SmallVector<Tile> tiles = {{4, 2}};
  if (vectorBits >= 512)
    tiles = {{8, 3}, {6, 4}, {12, 2}};
  else if (vectorBits >= 256)
    tiles = {{4, 3}, {6, 2}};
  const int64_t m = op.getStaticLoopRanges()[roles.m],
                n = op.getStaticLoopRanges()[roles.n];
  tile = tiles.front();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Tile candidate : tiles) {
    if (ShapedType::isDynamic(m) || ShapedType::isDynamic(n))
      return;
    const int64_t work =
        llvm::alignTo(n, candidate.vectors * lanes) *
        (m / candidate.rows * candidate.rows + 2 * (m % candidate.rows));
    if (work < least) {
      least = work;
      tile = candidate;
    }
  }
}

SmallVector<Value> TiledProduct::getPlace(unsigned operand, Value batch,
                                          Value m, Value n, Value k) {
  SmallVector<Value> place;
  for (AffineExpr expr : maps[operand].getResults()) {
    const int64_t d = cast<AffineDimExpr>(expr).getPosition();
    place.push_back(d == roles.batch ? batch
                    : d == roles.m   ? m
                    : d == roles.n   ? n
                                     : k);
  }
  return place;
}

Value TiledProduct::load(Value memref, ValueRange place, unsigned vector) {
  if (masks.empty())
    return vector::LoadOp::create(b, loc, type, memref, place);
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, loc, type, memref, place,
                                      masks[vector], none);
}

void TiledProduct::store(Value value, Value memref, SmallVector<Value> place,
                         unsigned vector) {
  if (masks.empty())
    vector::StoreOp::create(b, loc, value, memref, place);
  else
    vector::MaskedStoreOp::create(b, loc, memref, place, masks[vector], value);
}

/// Masks of what is left of the columns, where panels may reach past them.
void TiledProduct::setMasks() {
  const int64_t n = op.getStaticLoopRanges()[roles.n];
  masks.clear();
  if (!ShapedType::isDynamic(n) && n % (tile.vectors * lanes) == 0)
    return;
  auto maskType = VectorType::get(lanes, b.getI1Type());
  for (int64_t v = 0; v < tile.vectors; ++v)
    masks.push_back(vector::CreateMaskOp::create(
        b, loc, maskType, minus(getSize(roles.n), column(v))));
}

/// Copies the columns of the panel next to each other.
void TiledProduct::packPanel(Value batch) {
  const int64_t depth = op.getStaticLoopRanges()[roles.k];
  const int64_t width = tile.vectors * lanes;
  SmallVector<Value> open;
  if (ShapedType::isDynamic(depth))
    open.push_back(getSize(roles.k));
  panel = memref::AllocOp::create(
      b, loc, MemRefType::get({depth, width}, type.getElementType()), open,
      b.getI64IntegerAttr(64));
  Value rhs = op->getOperand(1), zero = index(0);
  OpBuilder::InsertionGuard guard(b);
  if (isContiguous(1)) {
    auto loop = makeLoop(zero, getSize(roles.k), 1, {});
    Value k = loop.getInductionVar();
    for (int64_t v = 0; v < tile.vectors; ++v)
      vector::StoreOp::create(
          b, loc, load(rhs, getPlace(1, batch, {}, column(v), k), v), panel,
          ValueRange{k, index(v * lanes)});
    return;
  }
  Value left = arith::MinSIOp::create(
      b, loc, minus(getSize(roles.n), firstColumn), index(width));
  Value column = makeLoop(zero, left, 1, {}).getInductionVar();
  Value n = add(firstColumn, column);
  Value k = makeLoop(zero, getSize(roles.k), 1, {}).getInductionVar();
  Value element =
      memref::LoadOp::create(b, loc, rhs, getPlace(1, batch, {}, n, k));
  memref::StoreOp::create(b, loc, element, panel, ValueRange{k, column});
}

/// The sums of `count` rows from `from` on.
void TiledProduct::emitRows(Value batch, Value from, int64_t count) {
  Value lhs = op->getOperand(0), rhs = op->getOperand(1),
        out = op->getOperand(2);
  auto getRow = [&](int64_t row) { return add(from, index(row)); };
  Tiles sums;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t v = 0; v < tile.vectors; ++v)
      sums.push_back(
          load(out, getPlace(2, batch, getRow(row), column(v), {}), v));
  {
    OpBuilder::InsertionGuard guard(b);
    auto loop = makeLoop(index(0), getSize(roles.k), 1, sums);
    Value k = loop.getInductionVar();
    Tiles columns, next;
    for (int64_t v = 0; v < tile.vectors; ++v)
      columns.push_back(
          panel ? vector::LoadOp::create(b, loc, type, panel,
                                         ValueRange{k, index(v * lanes)})
                      .getResult()
                : load(rhs, getPlace(1, batch, {}, column(v), k), v));
    for (int64_t row = 0; row < count; ++row) {
      Value element = memref::LoadOp::create(
          b, loc, lhs, getPlace(0, batch, getRow(row), {}, k));
      element = vector::BroadcastOp::create(b, loc, type, element);
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value sum = loop.getRegionIterArg(row * tile.vectors + v);
        next.push_back(
            isa<FloatType>(type.getElementType())
                ? vector::FMAOp::create(b, loc, element, columns[v], sum)
                      .getResult()
                : add(arith::MulIOp::create(b, loc, element, columns[v]), sum));
      }
    }
    scf::YieldOp::create(b, loc, next);
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  }
  for (int64_t row = 0; row < count; ++row)
    for (int64_t v = 0; v < tile.vectors; ++v)
      store(sums[row * tile.vectors + v], out,
            getPlace(2, batch, getRow(row), column(v), {}), v);
}

void TiledProduct::emitTask(Value batch, Value column, Value firstRow) {
  firstColumn = column;
  setMasks();
  const int64_t m = op.getStaticLoopRanges()[roles.m];
  panel = {};
  if (!isContiguous(1) || ShapedType::isDynamic(m) || m >= 2 * tile.rows)
    packPanel(batch);
  Value last = arith::MinSIOp::create(
      b, loc, add(firstRow, index(kTilesOfTask * tile.rows)), getSize(roles.m));
  Value whole =
      minus(last, arith::RemUIOp::create(b, loc, minus(last, firstRow),
                                         index(tile.rows)));
  for (auto [from, to, rows] : {std::tuple(firstRow, whole, tile.rows),
                                std::tuple(whole, last, int64_t(1))}) {
    OpBuilder::InsertionGuard guard(b);
    Value row = makeLoop(from, to, rows, {}).getInductionVar();
    emitRows(batch, row, rows);
  }
  if (panel)
    memref::DeallocOp::create(b, loc, panel);
}

void TiledProduct::emit(TargetAttr target) {
  Type element = getElementTypeOrSelf(op->getOperand(2).getType());
  lanes = target.getVectorBits() / element.getIntOrFloatBitWidth();
  type = VectorType::get(lanes, element);
  chooseTile(target.getVectorBits());
  for (Range range : op.createLoopRanges(b, loc))
    sizes.push_back(range.size);
  SmallVector<Value> from(2, index(0)),
      to = {getSize(roles.n), getSize(roles.m)},
      steps = {index(tile.vectors * lanes), index(kTilesOfTask * tile.rows)};
  if (roles.batch >= 0) {
    from.push_back(index(0));
    to.push_back(getSize(roles.batch));
    steps.push_back(index(1));
  }
  auto tasks = scf::ParallelOp::create(b, loc, from, to, steps);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(tasks.getBody());
  SmallVector<Value> at(tasks.getInductionVars());
  emitTask(roles.batch >= 0 ? at[2] : Value(), at[0], at[1]);
}

bool cpu::isTiledProduct(linalg::LinalgOp op) {
  OpBuilder b(op);
  return TiledProduct(b, op).matches();
}

LogicalResult cpu::emitTiledProduct(RewriterBase &rewriter, linalg::LinalgOp op,
                                    TargetAttr target) {
  TiledProduct product(rewriter, op);
  if (!op.hasPureBufferSemantics() || !product.matches())
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  product.emit(target);
  rewriter.eraseOp(op);
  return success();
}
