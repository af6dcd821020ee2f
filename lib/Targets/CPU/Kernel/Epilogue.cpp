//===- Epilogue.cpp - Elementwise operations on register tiles ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Epilogue.h"
#include "Common/IndexMath.h"
#include "Kernel/Vectorize.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/NarrowBytes.h"
#include "MicroKernels/VectorOps.h"

#include "lib/Dispatch/Rounding.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

//===----------------------------------------------------------------------===//
// What can be evaluated
//===----------------------------------------------------------------------===//

/// The accumulators and values of one row of a tile.
struct TileEvaluator::RowState {
  int64_t row;
  /// Index of this row, made when first needed.
  Value index;
  /// The contraction's value; null when none exists yet.
  Value accumulator;
  /// Values of this row, and of all rows.
  SmallVector<std::tuple<Value, AffineMap, Value>> values;
  SmallVector<std::tuple<Value, AffineMap, Value>> *shared;
};

/// Bytes that saturate: the float `number` of the body of `generic`, bounded by
/// `highest` from above and by what is no byte from below, rounded, plus `zero`
/// (null: 0); of 8 `bits`, or widened to 16.
struct TileEvaluator::SaturatedBytes {
  linalg::GenericOp generic;
  Value number, highest, zero;
  bool isUnsigned;
  unsigned bits;

  static std::optional<SaturatedBytes> find(Value tensor) {
    tensor = skipCasts(tensor);
    auto generic = tensor.getDefiningOp<linalg::GenericOp>();
    if (!generic)
      return std::nullopt;
    const unsigned result = cast<OpResult>(tensor).getResultNumber();
    Value yielded = generic.getBody()->getTerminator()->getOperand(result);
    const unsigned bits = yielded.getType().getIntOrFloatBitWidth();
    Operation *extend = yielded.getDefiningOp();
    const bool isWide = isa_and_nonnull<arith::ExtUIOp, arith::ExtSIOp>(extend);
    auto truncate = (isWide ? extend->getOperand(0) : yielded)
                        .getDefiningOp<arith::TruncIOp>();
    auto type = truncate ? truncate->getAttrOfType<TypeAttr>(kSaturatingAttr)
                         : TypeAttr();
    constexpr unsigned kWideBits = 16;
    if (!type || (isWide && (bits != kWideBits ||
                             isa<arith::ExtUIOp>(extend) !=
                                 type.getValue().isUnsignedInteger())))
      return std::nullopt;
    Value integer = truncate.getIn(), zero;
    if (auto add = integer.getDefiningOp<arith::AddIOp>()) {
      integer = add.getLhs();
      zero = add.getRhs();
    }
    auto toInteger = integer.getDefiningOp<arith::FPToSIOp>();
    auto round = toInteger
                     ? toInteger.getIn().getDefiningOp<math::RoundEvenOp>()
                     : math::RoundEvenOp();
    auto upper = round ? round.getOperand().getDefiningOp<arith::SelectOp>()
                       : arith::SelectOp();
    auto lower = upper ? upper.getTrueValue().getDefiningOp<arith::SelectOp>()
                       : arith::SelectOp();
    if (!lower)
      return std::nullopt;
    return SaturatedBytes{generic,
                          lower.getTrueValue(),
                          upper.getFalseValue(),
                          zero,
                          type.getValue().isUnsignedInteger(),
                          bits};
  }
};

AffineMap TileEvaluator::identity() const {
  int64_t rank = cast<RankedTensorType>(root.getType()).getRank();
  return AffineMap::getMultiDimIdentityMap(rank, root.getContext());
}

bool TileEvaluator::usesDims(AffineMap map, int64_t from, int64_t to) const {
  return llvm::any_of(map.getResults(), [&](AffineExpr e) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    return dim && int64_t(dim.getPosition()) >= from &&
           int64_t(dim.getPosition()) < to;
  });
}

/// Whether consecutive positions of a tile are consecutive in memory.
bool TileEvaluator::isContiguous(AffineMap map) const {
  int64_t count = map.getNumDims() - vectorDim;
  int64_t lead = int64_t(map.getNumResults()) - count;
  if (lead < 0)
    return false;
  for (auto [i, e] : llvm::enumerate(map.getResults().drop_front(lead))) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    if (!dim || int64_t(dim.getPosition()) != vectorDim + int64_t(i))
      return false;
  }
  return !usesDims(AffineMap::get(map.getNumDims(), 0,
                                  map.getResults().take_front(lead),
                                  map.getContext()),
                   vectorDim, map.getNumDims());
}

/// Whether several dimensions of rows follow each other in memory, so that they
/// are one.
bool TileEvaluator::hasRowsTogether(AffineMap map) const {
  const int64_t count = vectorDim - rowDim;
  if (count == 1)
    return false;
  int64_t next = 0;
  for (AffineExpr e : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    const int64_t position = dim ? int64_t(dim.getPosition()) : -1;
    const bool isOfRow = position >= rowDim && position < vectorDim;
    if (isOfRow ? position != rowDim + next : next > 0 && next < count)
      return false;
    next += isOfRow;
  }
  return next == count;
}

/// The memory of a tensor that is read by `map`, whose last dimensions are
/// those of vectors, with these and the dimensions of rows collapsed.
Value TileEvaluator::emitView(ImplicitLocOpBuilder &b, Value buffer,
                              AffineMap map) {
  const int64_t trailing = map.getNumDims() - vectorDim;
  const int64_t lead = int64_t(map.getNumResults()) - trailing;
  if (!hasRowsTogether(map))
    return emitCollapse(b, buffer, lead);
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < lead; ++i) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(i));
    if (dim && int64_t(dim.getPosition()) > rowDim &&
        int64_t(dim.getPosition()) < vectorDim)
      groups.back().push_back(i);
    else
      groups.push_back({i});
  }
  groups.emplace_back(
      llvm::to_vector(llvm::seq<int64_t>(lead, map.getNumResults())));
  return memref::CollapseShapeOp::create(b, buffer, groups);
}

/// The indices of the dimensions of rows, and others before them.
void TileEvaluator::splitRow(ImplicitLocOpBuilder &b, Value row,
                             MutableArrayRef<Value> dims) {
  IndexMath math(b);
  for (int64_t d = vectorDim - 1; d > rowDim; --d) {
    dims[d] = math.rem(row, sizes[d]);
    row = math.div(row, sizes[d]);
  }
  dims[rowDim] = row;
}

static bool isSplatConstant(Value tensor) {
  DenseElementsAttr attr;
  return matchPattern(tensor, m_Constant(&attr)) && attr.isSplat();
}

LogicalResult TileEvaluator::verifyValue(Value tensor, AffineMap map) {
  tensor = skipCasts(tensor);
  if (llvm::any_of(map.getResults(), [](AffineExpr e) {
        auto constant = dyn_cast<AffineConstantExpr>(e);
        return !isa<AffineDimExpr>(e) &&
               !(constant && constant.getValue() == 0);
      }))
    return emitError(tensor.getLoc(),
                     "is read by an index that is neither a dimension of the "
                     "kernel's result nor 0");
  if (tensor == root) {
    if (map.isIdentity())
      return success();
    return emitError(root.getLoc(),
                     "the contraction's result is used with another index "
                     "than its own");
  }
  if (KernelBody::hasBuffer(tensor) || isSplatConstant(tensor))
    return success();
  Operation *op = tensor.getDefiningOp();
  if (isa_and_nonnull<linalg::FillOp>(op))
    return success();
  if (auto copy = dyn_cast_or_null<linalg::CopyOp>(op))
    return verifyValue(copy.getInputs().front(), map);
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic) {
    if (op)
      return op->emitOpError(
          "cannot be computed on a tile of the kernel's contraction");
    return emitError(tensor.getLoc(), "tensor of unknown origin in a kernel");
  }
  if (generic.getNumLoops() != generic.getNumParallelLoops() ||
      generic.hasIndexSemantics() || !isVectorizableBody(*generic.getBody()))
    return generic.emitOpError(
        "is not elementwise, so it cannot follow a contraction in its kernel");
  unsigned result = cast<OpResult>(tensor).getResultNumber();
  AffineMap out =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(result));
  if (!out.isIdentity())
    return generic.emitOpError("does not write its result in order");
  for (OpOperand &operand : generic->getOpOperands()) {
    if (!generic.payloadUsesValueFromOperand(&operand) ||
        !isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap composed = generic.getMatchingIndexingMap(&operand).compose(map);
    if (failed(verifyValue(operand.get(), composed)))
      return failure();
  }
  return success();
}

LogicalResult TileEvaluator::verify(Value init) {
  if (body.getOutputs().empty())
    return emitError(root.getLoc(), "kernel without a result");
  for (const KernelBody::Output &output : body.getOutputs())
    if (failed(verifyValue(output.tensor, identity())))
      return failure();
  for (sdx::ObserveOp op : body.getObservations())
    if (failed(verifyValue(op.getValue(), identity())))
      return failure();
  return init ? verifyValue(init, identity()) : success();
}

bool TileEvaluator::hasEqualRows(Value tensor, AffineMap map) const {
  tensor = skipCasts(tensor);
  Operation *op = tensor.getDefiningOp();
  if (isSplatConstant(tensor) || isa_and_nonnull<linalg::FillOp>(op))
    return true;
  if (KernelBody::hasBuffer(tensor))
    return !usesDims(map, 0, vectorDim);
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && llvm::all_of(generic->getOpOperands(), [&](OpOperand &o) {
           return !generic.payloadUsesValueFromOperand(&o) ||
                  !isa<RankedTensorType>(o.get().getType()) ||
                  hasEqualRows(o.get(),
                               generic.getMatchingIndexingMap(&o).compose(map));
         });
}

bool TileEvaluator::hasEqualRows(Value init) const {
  return hasEqualRows(init, identity());
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

void TileEvaluator::prepareValue(ImplicitLocOpBuilder &b, Value tensor,
                                 AffineMap map) {
  tensor = skipCasts(tensor);
  if (KernelBody::hasBuffer(tensor)) {
    Value buffer = body.getBuffer(tensor);
    std::pair<Value, unsigned> key(buffer, hasRowsTogether(map));
    if (isContiguous(map) && !collapsed.count(key))
      collapsed[key] = emitView(b, buffer, map);
    return;
  }
  if (auto copy = tensor.getDefiningOp<linalg::CopyOp>())
    return prepareValue(b, copy.getInputs().front(), map);
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  if (!generic || tensor == root)
    return;
  for (OpOperand &operand : generic->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        generic.payloadUsesValueFromOperand(&operand))
      prepareValue(b, operand.get(),
                   generic.getMatchingIndexingMap(&operand).compose(map));
}

void TileEvaluator::prepare(ImplicitLocOpBuilder &b, Value init) {
  IndexMath math(b);
  auto type = cast<RankedTensorType>(root.getType());
  Value first = body.getOutputs().front().memref;
  for (int64_t d = 0; d < type.getRank(); ++d)
    sizes.push_back(type.isDynamicDim(d) ? math.dim(first, d)
                                         : math.constant(type.getDimSize(d)));
  for (const KernelBody::Output &output : body.getOutputs()) {
    collapsed[getOutputKey(output.memref)] =
        emitView(b, output.memref, identity());
    prepareValue(b, output.tensor, identity());
  }
  for (sdx::ObserveOp op : body.getObservations())
    prepareValue(b, op.getValue(), identity());
  if (init)
    prepareValue(b, init, identity());
}

/// Operands that the lanes of a tile read from scattered places: one by one.
Value TileEvaluator::emitLanewise(ImplicitLocOpBuilder &b, Value memref,
                                  AffineMap map, const Tile &tile,
                                  ValueRange index) {
  IndexMath math(b);
  int64_t rank = map.getNumDims();
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({tile.width}, element);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value total = math.constant(1);
  for (int64_t d = vectorDim; d < rank; ++d)
    total = math.mul(total, sizes[d]);
  Value last = math.sub(total, math.constant(1));
  auto loop = scf::ForOp::create(b, math.constant(0), math.constant(tile.width),
                                 math.constant(1), ValueRange{zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value lane = loop.getInductionVar();
  // Lanes past the end repeat the last element.
  Value position = math.min(math.add(tile.position, lane), last);
  SmallVector<Value> dims(index);
  dims.resize(rank);
  for (int64_t d = rank - 1; d >= vectorDim; --d) {
    dims[d] = d == vectorDim ? position : math.rem(position, sizes[d]);
    if (d > vectorDim)
      position = math.div(position, sizes[d]);
  }
  SmallVector<Value> indices;
  for (AffineExpr e : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    indices.push_back(dim ? dims[dim.getPosition()] : math.constant(0));
  }
  Value scalar = memref::LoadOp::create(b, memref, indices);
  Value next = vector::InsertOp::create(b, scalar, loop.getRegionIterArg(0),
                                        OpFoldResult(lane));
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

Value TileEvaluator::emitAccess(ImplicitLocOpBuilder &b, Value tensor,
                                AffineMap map, const Tile &tile,
                                RowState &row) {
  IndexMath math(b);
  Value buffer = body.getBuffer(tensor);
  SmallVector<Value> dims(tile.index);
  dims.resize(vectorDim);
  bool contiguous = isContiguous(map);
  const bool together = contiguous && hasRowsTogether(map);
  if (usesDims(map, rowDim, vectorDim)) {
    if (together)
      dims[rowDim] = row.index;
    else
      splitRow(b, row.index, dims);
  }
  if (!contiguous && usesDims(map, vectorDim, map.getNumDims()))
    return emitLanewise(b, buffer, map, tile, dims);
  int64_t count = contiguous ? map.getNumDims() - vectorDim : 0;
  SmallVector<Value> indices;
  for (AffineExpr e : map.getResults().drop_back(count)) {
    auto dim = dyn_cast<AffineDimExpr>(e);
    if (together && dim && int64_t(dim.getPosition()) > rowDim)
      continue; // a part of the row
    indices.push_back(dim ? dims[dim.getPosition()] : math.constant(0));
  }
  if (!contiguous)
    return memref::LoadOp::create(b, buffer, indices);
  indices.push_back(tile.position);
  return emitLoad(b, collapsed[{buffer, together}], indices, tile.width,
                  tile.mask);
}

Value TileEvaluator::evaluate(ImplicitLocOpBuilder &b, Value tensor,
                              AffineMap map, const Tile &tile, RowState &row) {
  tensor = skipCasts(tensor);
  if (tensor == root)
    return row.accumulator;
  DenseElementsAttr splat;
  if (matchPattern(tensor, m_Constant(&splat)))
    return arith::ConstantOp::create(b, splat.getSplatValue<TypedAttr>());
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return fill.getInputs().front();
  if (auto copy = tensor.getDefiningOp<linalg::CopyOp>())
    return evaluate(b, copy.getInputs().front(), map, tile, row);

  auto find = [&](auto &values) -> Value {
    for (auto &[knownTensor, knownMap, value] : values)
      if (knownTensor == tensor && knownMap == map)
        return value;
    return nullptr;
  };
  if (Value known = find(row.values))
    return known;
  if (Value known = find(*row.shared))
    return known;

  if (KernelBody::hasBuffer(tensor)) {
    Value value = emitAccess(b, tensor, map, tile, row);
    // The first row is always there, so what it reads serves all rows.
    bool everyRow = row.row == 0 && !usesDims(map, rowDim, vectorDim);
    (everyRow ? *row.shared : row.values).emplace_back(tensor, map, value);
    return value;
  }

  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  SmallVector<Value> results =
      emitVectorBody(b, generic.getLoc(), *generic.getBody(), {tile.width},
                     evaluateOperands(b, generic, map, tile, row));
  for (auto [result, value] : llvm::zip(generic.getResults(), results))
    row.values.emplace_back(result, map, value);
  return results[cast<OpResult>(tensor).getResultNumber()];
}

/// What the body of `generic` gets on a row of a tile.
SmallVector<Value> TileEvaluator::evaluateOperands(ImplicitLocOpBuilder &b,
                                                   linalg::GenericOp generic,
                                                   AffineMap map,
                                                   const Tile &tile,
                                                   RowState &row) {
  SmallVector<Value> args;
  for (OpOperand &operand : generic->getOpOperands()) {
    Value value;
    if (!generic.payloadUsesValueFromOperand(&operand)) {
      Type element = getElementTypeOrSelf(operand.get().getType());
      value =
          arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(element)));
    } else if (isa<RankedTensorType>(operand.get().getType())) {
      value = evaluate(b, operand.get(),
                       generic.getMatchingIndexingMap(&operand).compose(map),
                       tile, row);
    } else {
      value = operand.get();
    }
    args.push_back(value);
  }
  return args;
}

/// The integers of a row of bytes that saturate, before they do and zero points
/// are added, and these (null: 0). What is NaN becomes the least one.
std::pair<Value, Value>
TileEvaluator::evaluateInteger(ImplicitLocOpBuilder &b,
                               const SaturatedBytes &bytes, const Tile &tile,
                               RowState &row) {
  linalg::GenericOp generic = bytes.generic;
  SmallVector<Value> wanted = {bytes.number, bytes.highest};
  if (bytes.zero)
    wanted.push_back(bytes.zero);
  SmallVector<Value> values = emitVectorValues(
      b, generic.getLoc(), *generic.getBody(), {tile.width},
      evaluateOperands(b, generic, identity(), tile, row), wanted);
  for (Value &value : values)
    value = broadcastTo(b, b.getLoc(), value, {tile.width});
  Value isHigh =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, values[1], values[0]);
  Value bounded = arith::SelectOp::create(b, isHigh, values[1], values[0]);
  Value integer =
      arith::FPToSIOp::create(b, VectorType::get({tile.width}, b.getI32Type()),
                              math::RoundEvenOp::create(b, bounded));
  return {integer, bytes.zero ? values[2] : Value()};
}

SmallVector<Value> TileEvaluator::emitInit(ImplicitLocOpBuilder &b, Value init,
                                           const Tile &tile, int64_t rows) {
  IndexMath math(b);
  SmallVector<std::tuple<Value, AffineMap, Value>> shared;
  SmallVector<Value> result;
  for (int64_t r = 0; r < rows; ++r) {
    Value index = math.add(tile.index[rowDim], r);
    if (tile.rowLimit && r)
      index = math.min(index, math.sub(tile.rowLimit, math.constant(1)));
    RowState row{r, index, nullptr, {}, &shared};
    Value value = evaluate(b, init, identity(), tile, row);
    result.push_back(broadcastTo(b, b.getLoc(), value, {tile.width}));
  }
  return result;
}

void TileEvaluator::emitRowStore(ImplicitLocOpBuilder &b, Value value,
                                 Value memref, const Tile &tile,
                                 const RowState &row) {
  SmallVector<Value> indices(tile.index);
  indices[rowDim] = row.index;
  indices.push_back(tile.position);
  emitStore(b, value, collapsed[getOutputKey(memref)], indices, tile.mask);
}

/// Stores bytes that saturate, as many rows at a time as are narrowed together.
void TileEvaluator::emitSaturatedStores(ImplicitLocOpBuilder &b,
                                        const SaturatedBytes &bytes,
                                        Value memref, const Tile &tile,
                                        MutableArrayRef<RowState> rows) {
  const size_t together = countNarrowedTogether(target, tile.width, bytes.bits);
  while (!rows.empty()) {
    MutableArrayRef<RowState> some = rows.take_front(together);
    rows = rows.drop_front(some.size());
    SmallVector<Value> integers, zeros;
    for (RowState &row : some) {
      auto [integer, zero] = evaluateInteger(b, bytes, tile, row);
      integers.push_back(integer);
      if (zero)
        zeros.push_back(zero);
    }
    SmallVector<Value> narrow = emitNarrowBytes(b, target, integers, zeros,
                                                bytes.isUnsigned, bytes.bits);
    for (auto [row, value] : llvm::zip_equal(some, narrow))
      emitRowStore(b, value, memref, tile, row);
  }
}

void TileEvaluator::emitStores(ImplicitLocOpBuilder &b, const Tile &tile,
                               ArrayRef<Value> accumulators) {
  IndexMath math(b);
  SmallVector<std::tuple<Value, AffineMap, Value>> shared;
  SmallVector<RowState> rows;
  for (auto [r, accumulator] : llvm::enumerate(accumulators))
    rows.push_back({int64_t(r),
                    math.add(tile.index[rowDim], r),
                    accumulator,
                    {},
                    &shared});
  const bool saturates = canNarrowBytes(target, tile.width);
  const SmallVector<ObservedBuffer> buffers =
      prepareObserved(b, rows.size() * tile.width);
  Value lanes = buffers.empty() ? Value() : countLanes(b, tile);
  auto store = [&](MutableArrayRef<RowState> some) {
    for (const KernelBody::Output &output : body.getOutputs()) {
      std::optional<SaturatedBytes> bytes;
      if (saturates)
        bytes = SaturatedBytes::find(output.tensor);
      if (bytes) {
        emitSaturatedStores(b, *bytes, output.memref, tile, some);
        continue;
      }
      for (RowState &row : some) {
        Value value = evaluate(b, output.tensor, identity(), tile, row);
        value = broadcastTo(b, b.getLoc(), value, {tile.width});
        emitRowStore(b, value, output.memref, tile, row);
      }
    }
    for (auto [i, buffer] : llvm::enumerate(buffers))
      for (RowState &row : some) {
        sdx::ObserveOp op = body.getObservations()[i];
        Value value = evaluate(b, op.getValue(), identity(), tile, row);
        value = broadcastTo(b, b.getLoc(), value, {tile.width});
        Value place = math.add(buffer.first, math.mul(lanes, row.row));
        emitStore(b, value, buffer.numbers, {math.constant(0), place});
      }
  };
  if (tile.rowLimit)
    for (RowState &row : rows)
      if (row.row)
        emitIf(b, math.less(row.index, tile.rowLimit), [&] { store(row); });
      else
        store(row);
  else
    store(rows);
  if (buffers.empty())
    return;
  Value count = math.constant(rows.size());
  if (tile.rowLimit)
    count = math.min(count, math.sub(tile.rowLimit, tile.index[rowDim]));
  count = math.mul(count, lanes);
  for (const ObservedBuffer &buffer : buffers) {
    memref::StoreOp::create(b, math.add(buffer.first, count), buffer.count,
                            ValueRange());
    // What is left is seen after all that the task does.
    for (Operation *op : buffer.atEnd)
      op->moveBefore(op->getBlock()->getTerminator());
  }
}
