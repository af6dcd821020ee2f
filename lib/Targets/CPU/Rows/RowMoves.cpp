//===- RowMoves.cpp - Long rows that are copied or filled -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A long row that only is copied, or filled with bytes that are all the same,
// is left to memcpy and memset: processors have ways to write whole cache lines
// without reading them first, and these functions know which is fastest.
//
//===----------------------------------------------------------------------===//

#include "Rows/RowMoves.h"
#include "Rows/AccessPattern.h"
#include "Rows/RowGroupEmitter.h"
#include "dialects/SDX/RareElse.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Rows of fewer bytes go by vectors: a call takes longer to begin.
static constexpr int64_t kLongRowBytes = 16384;

/// The byte that all bytes of `value`, a constant, are.
static std::optional<uint8_t> findByte(Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  std::optional<APInt> bits;
  if (auto number = dyn_cast<FloatAttr>(constant))
    bits = number.getValue().bitcastToAPInt();
  else if (auto number = dyn_cast<IntegerAttr>(constant))
    bits = number.getValue();
  if (!bits || bits->getBitWidth() % 8 != 0 || !bits->isSplat(8))
    return std::nullopt;
  return bits->extractBitsAsZExtValue(8, 0);
}

/// Whether `access` walks a row of its memory along `lane`, without gaps.
static bool isRow(const RowAccess &access, int64_t lane) {
  return access.kind == RowAccess::Memory &&
         cast<MemRefType>(access.value.getType()).getLayout().isIdentity() &&
         getAccessPattern(access, lane) == AccessPattern::Contiguous;
}

/// What the group does, if it is no more than to move.
std::optional<RowGroupEmitter::Move> RowGroupEmitter::findMove() {
  if (group.stages.size() != 1 || group.reduced.any() || plan.run)
    return std::nullopt;
  RowStage &stage = group.stages.front();
  if (stage.stores.size() != 1 || !stage.body->without_terminator().empty() ||
      !isRow(stage.stores[0], plan.lane))
    return std::nullopt;
  Type type = stage.resultTypes[0];
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() % 8 != 0)
    return std::nullopt;
  Value value = stage.body->getTerminator()->getOperand(0);
  Move move{stage.stores[0], {}, {}};
  if (auto arg = dyn_cast<BlockArgument>(value);
      arg && arg.getOwner() == stage.body) {
    const RowAccess &from = stage.args[arg.getArgNumber()];
    if (from.kind == RowAccess::Scalar)
      value = from.value;
    else if (isRow(from, plan.lane))
      move.from = from;
  }
  if (move.from.kind == RowAccess::None) {
    move.byte = findByte(value);
    if (!move.byte)
      return std::nullopt;
  }
  return move;
}

/// The address of what `access` is at `point`.
static Value getAddress(OpBuilder &b, Location loc, Value memref,
                        ArrayRef<Value> indices) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  auto type = cast<MemRefType>(memref.getType());
  Value place;
  for (auto [d, index] : llvm::enumerate(indices)) {
    if (!place) {
      place = index;
      continue;
    }
    Value size = b.createOrFold<memref::DimOp>(loc, memref, int64_t(d));
    place = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, place, size), index);
  }
  if (place) {
    Value bytes = arith::ConstantIndexOp::create(
        b, loc, type.getElementTypeBitWidth() / 8);
    base = arith::AddIOp::create(b, loc, base,
                                 arith::MulIOp::create(b, loc, place, bytes));
  }
  Value address = arith::IndexCastOp::create(b, loc, b.getI64Type(), base);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
}

/// Copies `bytes` between what memory has at indices.
static void emitCopy(OpBuilder &b, Location loc, Value to, ArrayRef<Value> at,
                     Value from, ArrayRef<Value> source, Value bytes) {
  LLVM::MemcpyOp::create(
      b, loc, getAddress(b, loc, to, at), getAddress(b, loc, from, source),
      arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes).getResult(),
      /*isVolatile=*/false);
}

/// `move` of `bytes` from `point` on.
void RowGroupEmitter::emitMove(const Move &move, const Point &point,
                               Value bytes) {
  if (repeat(move.to, point,
             [&](const Point &at) { emitMove(move, at, bytes); }))
    return;
  SmallVector<Value> to = getIndices(move.to, point, /*copy=*/0);
  if (!move.byte)
    return emitCopy(b, loc, move.to.value, to, move.from.value,
                    getIndices(move.from, point, /*copy=*/0), bytes);
  Value size = arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes);
  Value byte =
      arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(*move.byte));
  LLVM::MemsetOp::create(b, loc, getAddress(b, loc, move.to.value, to), byte,
                         size, /*isVolatile=*/false);
}

void RowGroupEmitter::emitLoopOrMove(Point point, OpFoldResult begin,
                                     OpFoldResult end,
                                     llvm::function_ref<void()> emitLoop) {
  std::optional<Move> move = findMove();
  if (!move)
    return emitLoop();
  const int64_t elementBytes =
      group.stages.front().resultTypes[0].getIntOrFloatBitWidth() / 8;
  point.ivs[plan.lane] = getValueOrCreateConstantIndexOp(b, loc, begin);
  Value count = b.createOrFold<arith::SubIOp>(
      loc, getValueOrCreateConstantIndexOp(b, loc, end), point.ivs[plan.lane]);
  Value bytes = b.createOrFold<arith::MulIOp>(loc, count, index(elementBytes));
  if (std::optional<int64_t> known = getConstantIntValue(bytes)) {
    if (*known < kLongRowBytes)
      return emitLoop();
    return emitMove(*move, point, bytes);
  }
  Value isShort = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                        bytes, index(kLongRowBytes));
  // The loop tells what a task takes.
  auto branch = scf::IfOp::create(b, loc, isShort, /*withElseRegion=*/true);
  branch->setAttr(sdx::kRareElseAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.elseYield());
  emitMove(*move, point, bytes);
  b.setInsertionPoint(branch.thenYield());
  emitLoop();
}

//===----------------------------------------------------------------------===//
// Broadcasts
//===----------------------------------------------------------------------===//

namespace {

/// A copy of a tensor to one of whose dimensions some may be longer, where the
/// tensor has one position that is read again and again.
struct Broadcast {
  Value from, to;
  /// For each dimension whether it is such a one (i1), or null: it is not.
  SmallVector<Value> repeats;
};

} // namespace

/// What the group is, if it is a broadcast.
static std::optional<Broadcast> findBroadcast(ReductionGroup &group) {
  if (group.stages.size() != 1 || group.reduced.any())
    return std::nullopt;
  RowStage &stage = group.stages.front();
  auto read = stage.body->getTerminator()
                  ->getOperand(0)
                  .getDefiningOp<tensor::ExtractOp>();
  if (!read || stage.stores.size() != 1 ||
      stage.stores[0].kind != RowAccess::Memory)
    return std::nullopt;
  Broadcast found{stage.extracts.lookup(read), stage.stores[0].value, {}};
  const unsigned rank = group.getNumDims();
  for (Value memref : {found.from, found.to}) {
    auto type =
        dyn_cast_or_null<MemRefType>(memref ? memref.getType() : Type());
    if (!type || !type.getLayout().isIdentity() || type.getRank() != rank ||
        !type.getElementType().isIntOrFloat() ||
        type.getElementTypeBitWidth() % 8 != 0)
      return std::nullopt;
  }
  if (!stage.stores[0].map.isIdentity())
    return std::nullopt;
  for (auto [d, index] : llvm::enumerate(read.getIndices())) {
    auto position = index.getDefiningOp<linalg::IndexOp>();
    Value repeats;
    if (auto select = index.getDefiningOp<arith::SelectOp>();
        select && isConstantIntValue(select.getTrueValue(), 0) &&
        select.getCondition().getParentBlock() != stage.body) {
      position = select.getFalseValue().getDefiningOp<linalg::IndexOp>();
      repeats = select.getCondition();
    }
    if (!position || stage.dims[position.getDim()] != static_cast<int64_t>(d))
      return std::nullopt;
    found.repeats.push_back(repeats);
  }
  return found;
}

/// Copies what all dimensions from `first` on hold at a time: `bytes`, which
/// are cut into tasks.
static void emitPieces(OpBuilder &b, const ReductionGroup &group,
                       const Broadcast &broadcast, unsigned first,
                       Value bytes) {
  constexpr int64_t kTaskBytes = 65536;
  Location loc = group.loc;
  auto index = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(b, loc, number);
  };
  const unsigned rank = group.getNumDims();
  const int64_t elementBytes =
      cast<MemRefType>(broadcast.to.getType()).getElementTypeBitWidth() / 8;
  SmallVector<Value> begins(first + 1, index(0)), ends, steps(first, index(1));
  for (unsigned d = 0; d < first; ++d)
    ends.push_back(getValueOrCreateConstantIndexOp(b, loc, group.sizes[d]));
  ends.push_back(bytes);
  steps.push_back(index(kTaskBytes));
  auto tasks = scf::ParallelOp::create(b, loc, begins, ends, steps);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(tasks.getBody());
  SmallVector<Value> to(tasks.getInductionVars()), from(to);
  // The last index is that of an element of the piece as one row.
  Value begin = to.back();
  to.back() = from.back() =
      arith::DivUIOp::create(b, loc, begin, index(elementBytes));
  for (unsigned d = 0; d < first; ++d)
    if (Value repeats = broadcast.repeats[d])
      from[d] = arith::SelectOp::create(b, loc, repeats, index(0), from[d]);
  SmallVector<ReassociationIndices> groups;
  for (unsigned d = 0; d < rank; ++d)
    if (d <= first)
      groups.push_back({d});
    else
      groups.back().push_back(d);
  auto flatten = [&](Value memref) -> Value {
    return memref::CollapseShapeOp::create(b, loc, memref, groups);
  };
  Value size = arith::MinSIOp::create(
      b, loc, index(kTaskBytes), arith::SubIOp::create(b, loc, bytes, begin));
  emitCopy(b, loc, flatten(broadcast.to), to, flatten(broadcast.from), from,
           size);
}

void cpu::emitBroadcastCopies(OpBuilder &b, ReductionGroup &group) {
  constexpr int64_t kPieceBytes = 4096;
  std::optional<Broadcast> broadcast = findBroadcast(group);
  const unsigned rank = group.getNumDims();
  if (!broadcast || rank < 2)
    return;
  Location loc = group.loc;
  // Of the last dimensions, whether these are as long in what is read, and the
  // bytes there.
  SmallVector<Value> areWhole(rank), bytes(rank);
  Value isWhole,
      size = arith::ConstantIndexOp::create(
          b, loc,
          cast<MemRefType>(broadcast->to.getType()).getElementTypeBitWidth() /
              8);
  for (unsigned d = rank; d-- > 1;) {
    Value extent = getValueOrCreateConstantIndexOp(b, loc, group.sizes[d]);
    size = b.createOrFold<arith::MulIOp>(loc, size, extent);
    if (broadcast->repeats[d]) {
      Value isSame = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq, extent,
          memref::DimOp::create(b, loc, broadcast->from, d));
      isWhole =
          isWhole ? arith::AndIOp::create(b, loc, isWhole, isSame) : isSame;
    }
    Value isLong = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::sge, size,
        arith::ConstantIndexOp::create(b, loc, kPieceBytes));
    areWhole[d] =
        isWhole ? arith::AndIOp::create(b, loc, isWhole, isLong) : isLong;
    bytes[d] = size;
  }
  for (unsigned d = 1; d < rank; ++d) {
    auto branch =
        scf::IfOp::create(b, loc, areWhole[d], /*withElseRegion=*/true);
    b.setInsertionPoint(branch.thenYield());
    emitPieces(b, group, *broadcast, d, bytes[d]);
    b.setInsertionPoint(branch.elseYield());
  }
}
