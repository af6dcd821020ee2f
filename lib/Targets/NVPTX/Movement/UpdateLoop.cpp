//===- UpdateLoop.cpp - Loops that update elements or pieces --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/UpdateLoop.h"

#include "Kernel/Block.h"
#include "Movement/TaskScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

SmallVector<OpFoldResult> Update::getOffsets() const {
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return slice.getMixedOffsets();
  return getAsOpFoldResult(cast<tensor::InsertOp>(op).getIndices());
}

llvm::SmallBitVector Update::getPieceDims() const {
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    llvm::SmallBitVector dims = slice.getDroppedDims();
    return dims.flip();
  }
  return llvm::SmallBitVector(
      cast<tensor::InsertOp>(op).getDest().getType().getRank());
}

bool Update::isMadeOfOld(Operation &made) const {
  if (!old || made.getBlock() != op->getBlock() || isa<tensor::InsertOp>(made))
    return false;
  return &made == old || llvm::any_of(made.getOperands(), [&](Value operand) {
    Operation *from = operand.getDefiningOp();
    return from && isMadeOfOld(*from);
  });
}

bool Update::isDistinguishedBy(scf::ForOp loop) const {
  if (!getConstantIntValue(loop.getLowerBound()) ||
      !getConstantIntValue(loop.getStep()))
    return false;
  llvm::SmallBitVector inPiece = getPieceDims();
  for (auto [dim, offset] : llvm::enumerate(getOffsets()))
    if (!inPiece.test(dim) && offset == OpFoldResult(loop.getInductionVar()))
      return true;
  return false;
}

/// Whether a copy of it can stand before `region`.
static bool isBefore(Value value, Region &region) {
  return bool(hoistValue(nullptr, value, region));
}

Value nv::findLimit(Value value, Region &region) {
  if (isBefore(value, region))
    return value;
  if (auto least = value.getDefiningOp<arith::MinSIOp>())
    for (Value operand : least->getOperands())
      if (Value limit = findLimit(operand, region))
        return limit;
  return {};
}

/// Whether `value` is the variable of a loop that counts from 0 or more on.
static bool isCount(Value value) {
  auto variable = dyn_cast<BlockArgument>(value);
  auto loop = variable
                  ? dyn_cast<scf::ForOp>(variable.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || loop.getInductionVar() != variable)
    return false;
  std::optional<int64_t> from = getConstantIntValue(loop.getLowerBound());
  return from && *from >= 0;
}

std::optional<TripBound> TripBound::find(scf::ForOp loop, Region &region) {
  Value from = loop.getLowerBound(), to = loop.getUpperBound();
  if (!isBefore(loop.getStep(), region))
    return std::nullopt;
  if (isBefore(from, region)) {
    if (Value limit = findLimit(to, region))
      return TripBound{limit, from, limit == to, {}};
    return std::nullopt;
  }
  // A block of a longer loop: it begins where that is.
  auto least = to.getDefiningOp<arith::MinSIOp>();
  if (!least)
    return std::nullopt;
  for (int part : {0, 1})
    if (auto end = least->getOperand(part).getDefiningOp<arith::AddIOp>())
      for (int side : {0, 1})
        if (end->getOperand(side) == from)
          if (Value limit = findLimit(end->getOperand(1 - side), region)) {
            // The longer loop may be shorter than a block.
            Value all = isCount(from)
                            ? findLimit(least->getOperand(1 - part), region)
                            : Value();
            return TripBound{limit, {}, false, all};
          }
  return std::nullopt;
}

bool nv::divides(int64_t number, OpFoldResult size) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return *known % number == 0;
  Operation *op = cast<Value>(size).getDefiningOp();
  auto dividesOperand = [&](Value value) { return divides(number, value); };
  if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp, arith::AddIOp,
                      arith::SubIOp>(op))
    return llvm::all_of(op->getOperands(), dividesOperand);
  if (isa_and_nonnull<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), dividesOperand);
  return false;
}

static bool isConversion(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp,
                         arith::ExtUIOp, arith::TruncIOp, arith::BitcastOp>(op);
}

/// Whether `combined` is made of `old` and something else so that the order of
/// such steps does not matter, but for rounding.
static bool commutes(Value combined, Value old) {
  while (old.hasOneUse() && isConversion(*old.user_begin()))
    old = (*old.user_begin())->getResult(0);
  while (isConversion(combined.getDefiningOp()))
    combined = combined.getDefiningOp()->getOperand(0);
  return old.hasOneUse() && *old.user_begin() == combined.getDefiningOp() &&
         isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp,
             arith::MinimumFOp, arith::MaximumFOp, arith::MinSIOp,
             arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(*old.user_begin());
}

namespace {

/// Finds the updates of a task, from the task's part to what it returns.
class UpdateFinder {
public:
  explicit UpdateFinder(UpdateLoop &loop) : loop(loop) {}

  bool run(Value last) { return walk(loop.op.getBody(), loop.part, last, {}); }

private:
  bool walk(Block *block, Value state, Value last, ArrayRef<scf::ForOp> loops) {
    tensor::ExtractOp old;
    const size_t before = loop.updates.size();
    for (Operation &op : block->without_terminator()) {
      if (&op == loop.part)
        continue;
      if (auto inner = dyn_cast<scf::ForOp>(op)) {
        if (!enter(inner, state, loops))
          return false;
        state = inner.getResult(0);
      } else if (auto cast = dyn_cast<tensor::CastOp>(op);
                 cast && cast.getSource() == state) {
        state = cast.getDest();
      } else if (isa<tensor::InsertOp, tensor::InsertSliceOp>(op)) {
        if (!add({SmallVector<scf::ForOp>(loops), &op, old}, state))
          return false;
        state = op.getResult(0);
        old = {};
      } else if (auto load = dyn_cast<tensor::ExtractOp>(op);
                 load && load.getTensor() == state && !old) {
        old = load;
      } else if (!TaskScalars::isPossible(op)) {
        return false;
      }
    }
    // Of two updates in a loop the first of a later iteration is behind the
    // second of an earlier one.
    const size_t added = loop.updates.size() - before;
    return state == last && !old && added > 0 && (loops.empty() || added == 1);
  }

  bool enter(scf::ForOp inner, Value state, ArrayRef<scf::ForOp> loops) {
    if (inner.getInitArgs().size() != 1 || inner.getInitArgs()[0] != state ||
        !TripBound::find(inner, loop.op.getRegion()))
      return false;
    SmallVector<scf::ForOp> all(loops);
    all.push_back(inner);
    Block *body = inner.getBody();
    return walk(body, inner.getRegionIterArg(0),
                body->getTerminator()->getOperand(0), all);
  }

  bool add(Update update, Value state) {
    loop.updates.push_back(update);
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(update.op))
      return slice.getDest() == state && !update.old &&
             TaskScalars::isOfBuffer(slice.getSource()) &&
             isSamePieceInLoops(update, slice);
    auto insert = cast<tensor::InsertOp>(update.op);
    if (insert.getDest() != state)
      return false;
    if (!update.old)
      return true;
    const unsigned bits =
        insert.getDest().getType().getElementType().getIntOrFloatBitWidth();
    return llvm::equal(update.old.getIndices(), insert.getIndices()) &&
           commutes(insert.getScalar(), update.old) &&
           (bits == 16 || bits == 32 || bits == 64);
  }

  /// Whether two pieces are the same or have nothing in common: in the
  /// dimensions that they have they are as large and at the same place in all
  /// iterations.
  static bool isSamePieceInLoops(const Update &update,
                                 tensor::InsertSliceOp slice) {
    if (update.loops.empty())
      return true;
    scf::ForOp outermost = update.loops.front();
    auto isSame = [&](OpFoldResult value) {
      auto known = dyn_cast<Value>(value);
      return !known ||
             !outermost.getRegion().isAncestor(known.getParentRegion());
    };
    llvm::SmallBitVector inPiece = update.getPieceDims();
    for (auto [dim, offset] : llvm::enumerate(slice.getMixedOffsets()))
      if (inPiece.test(dim) && !isSame(offset))
        return false;
    return llvm::all_of(slice.getMixedSizes(), isSame) &&
           llvm::all_of(slice.getMixedStrides(), isSame);
  }

  UpdateLoop &loop;
};

} // namespace

/// The loop of a kernel that has nothing beside it but what its result starts
/// from; null where there is more, or sizes that only the loop knows.
static scf::ForallOp findLoop(func::FuncOp func) {
  scf::ForallOp loop;
  for (Operation &op : func.getBody().front()) {
    if (isa<sdx::DenseOpInterface, scf::ForOp, scf::IfOp>(op) ||
        (isa<linalg::LinalgOp>(op) && !isa<linalg::FillOp, linalg::CopyOp>(op)))
      return {};
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (loop)
        return {};
      loop = forall;
    }
  }
  WalkResult sizes = func.walk([](tensor::DimOp op) {
    return KernelBody::hasBuffer(op.getSource()) ? WalkResult::advance()
                                                 : WalkResult::interrupt();
  });
  if (sizes.wasInterrupted())
    return {};
  return loop;
}

std::optional<UpdateLoop> UpdateLoop::find(func::FuncOp func,
                                           const KernelBody &body) {
  UpdateLoop loop;
  loop.op = findLoop(func);
  if (!loop.op || !loop.op.isNormalized() || loop.op->getNumResults() != 1 ||
      body.getOutputs().size() != 1 ||
      body.getOutputs().front().tensor != loop.op->getResult(0) ||
      !cast<MemRefType>(body.getOutputs().front().memref.getType())
           .getLayout()
           .isIdentity())
    return std::nullopt;
  Value init = loop.op.getOutputs()[0];
  if (auto copy = init.getDefiningOp<linalg::CopyOp>())
    init = copy.getInputs()[0];
  loop.fill = init.getDefiningOp<linalg::FillOp>();
  if (KernelBody::hasBuffer(init))
    loop.start = init;
  else if (!loop.fill && !init.getDefiningOp<tensor::EmptyOp>())
    return std::nullopt;
  auto region = loop.op.getTerminator().getYieldingOps();
  if (!llvm::hasSingleElement(region))
    return std::nullopt;
  auto end = dyn_cast<tensor::ParallelInsertSliceOp>(*region.begin());
  Value all = loop.op.getRegionIterArgs()[0];
  for (Operation *user : all.getUsers())
    if (auto part = dyn_cast<tensor::ExtractSliceOp>(user))
      loop.part = part;
  if (!end || !loop.part || !all.hasNUses(2) ||
      loop.part->getBlock() != loop.op.getBody() ||
      end.getMixedOffsets() != loop.part.getMixedOffsets() ||
      end.getMixedSizes() != loop.part.getMixedSizes() ||
      end.getMixedStrides() != loop.part.getMixedStrides() ||
      !UpdateFinder(loop).run(end.getSource()))
    return std::nullopt;
  // Of several each is a kernel of its own.
  const bool combines = llvm::any_of(
      loop.updates, [](const Update &update) { return bool(update.old); });
  if (combines && loop.updates.size() > 1)
    return std::nullopt;
  return loop;
}

void UpdateLoop::emitStart(ImplicitLocOpBuilder &b, KernelBody &body,
                           Value target) const {
  if (start) {
    Value source = body.getBuffer(start);
    if (source != target)
      memref::CopyOp::create(b, source, target);
    return;
  }
  if (!fill)
    return;
  Indices i(b);
  SmallVector<Value> sizes, zeros, ones;
  const int64_t rank = cast<MemRefType>(target.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    sizes.push_back(sizeOf(b, target, dim));
    zeros.push_back(i.constant(0));
    ones.push_back(i.constant(1));
  }
  OpBuilder::InsertionGuard guard(b);
  auto all = scf::ParallelOp::create(b, zeros, sizes, ones);
  all->setAttr(kStepAttr, b.getStringAttr("fill"));
  b.setInsertionPointToStart(all.getBody());
  Value number = linalg::FillOp(fill).getInputs()[0];
  memref::StoreOp::create(b, number, target, all.getInductionVars());
}
