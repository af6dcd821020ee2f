//===- ComputeSlices.cpp - Put small tensors together by elements ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor that is put together of slices is as many copies, each of which is
// started for itself, as are operations on the slices before. One operation
// that asks of each element where it comes from is started once, and goes into
// what computes with the tensor: the rotation of a query is one kernel.
//
//===----------------------------------------------------------------------===//

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVCOMPUTESLICES
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Larger tensors take longer to copy than copies take to start.
static constexpr int64_t kMostElements = 256 * 1024;
/// Parts of a tensor: an element asks for each of them.
static constexpr int64_t kMostParts = 8;

static bool hasUnitSteps(OffsetSizeAndStrideOpInterface op) {
  return llvm::all_of(op.getMixedStrides(), [](OpFoldResult step) {
    return isConstantIntValue(step, 1);
  });
}

/// A part of a tensor of the same rank, which elements follow without gaps.
static bool isPart(Operation *op) {
  if (auto insert = dyn_cast_if_present<tensor::InsertSliceOp>(op))
    return hasUnitSteps(insert) &&
           insert.getSourceType().getRank() == insert.getType().getRank();
  auto extract = dyn_cast_if_present<tensor::ExtractSliceOp>(op);
  return extract && hasUnitSteps(extract) &&
         extract.getSourceType().getRank() == extract.getType().getRank();
}

/// Whether `value` is read by `user` alone, so that nobody misses it.
static bool isReadOnlyBy(Value value, Operation *user) {
  return llvm::all_of(value.getUsers(), [&](Operation *other) {
    return other == user || isa<tensor::DimOp>(other);
  });
}

/// An operation that computes the elements of its only result at the positions
/// of its loops, whatever it reads.
static bool isOnElements(linalg::GenericOp op) {
  OpOperand *init = op.getDpsInitOperand(0);
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumParallelLoops() == op.getNumLoops() &&
         op.getMatchingIndexingMap(init).isIdentity() &&
         !op.payloadUsesValueFromOperand(init) &&
         llvm::all_of(op.getBody()->getOperations(), [](Operation &inner) {
           return isPure(&inner) &&
                  (inner.getNumRegions() == 0 || isa<scf::IfOp>(inner));
         });
}

/// The tensor that `root` is the last part of, if it is small and put together
/// of nothing else: the number of its parts, or 0.
static int64_t countParts(tensor::InsertSliceOp root) {
  RankedTensorType type = root.getType();
  if (!type.hasStaticShape() || type.getNumElements() > kMostElements ||
      type.getNumElements() == 0 || !type.getElementType().isIntOrFloat())
    return 0;
  int64_t parts = 0;
  Value base = root;
  while (auto insert = base.getDefiningOp<tensor::InsertSliceOp>()) {
    if (!isPart(insert) || ++parts > kMostParts ||
        (insert != root && !insert.getResult().hasOneUse()))
      return 0;
    base = insert.getDest();
  }
  return isa_and_present<tensor::EmptyOp, linalg::FillOp>(base.getDefiningOp())
             ? parts
             : 0;
}

/// What computes on elements of `value` and nothing else, and of what that
/// makes, as far as each is all that reads it.
static Value findLast(Value value) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    auto user = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!user || !isOnElements(user) || user.isDpsInit(&use) ||
        !user.getMatchingIndexingMap(&use).isIdentity())
      break;
    value = user->getResult(0);
  }
  return value;
}

namespace {

/// Computes a tensor by elements, with all that is needed for it alone.
class SliceComputer {
public:
  explicit SliceComputer(Value root)
      : root(root), type(cast<RankedTensorType>(root.getType())) {}

  void run() {
    OpBuilder b(root.getDefiningOp());
    Location loc = root.getLoc();
    Value empty =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(
        b, loc, type, ValueRange(), empty,
        b.getMultiDimIdentityMap(type.getRank()), loops,
        [&](OpBuilder &body, Location at, ValueRange) {
          ImplicitLocOpBuilder inner(at, body);
          SmallVector<Value> index;
          for (int64_t dim = 0; dim < type.getRank(); ++dim)
            index.push_back(linalg::IndexOp::create(inner, dim));
          linalg::YieldOp::create(inner, evaluate(inner, root, index, nullptr));
        });
    root.replaceAllUsesWith(made->getResult(0));
  }

private:
  using Values = SmallVector<Value>;

  /// `tensor` at `index`, for `user`.
  Value evaluate(ImplicitLocOpBuilder &b, Value tensor, const Values &index,
                 Operation *user) {
    Operation *op = tensor.getDefiningOp();
    const bool isNeededHere = !user || isReadOnlyBy(tensor, user);
    if (auto insert = dyn_cast_if_present<tensor::InsertSliceOp>(op);
        insert && isPart(op) && isNeededHere &&
        (isa_and_present<tensor::InsertSliceOp>(user) || countParts(insert)))
      return evaluateInsert(b, insert, index);
    if (isa_and_present<tensor::EmptyOp>(op))
      return arith::ConstantOp::create(
          b, b.getZeroAttr(getElementTypeOrSelf(tensor)));
    if (auto fill = dyn_cast_if_present<linalg::FillOp>(op))
      return fill.getInputs()[0];
    if (isa_and_present<tensor::ExtractSliceOp>(op) && isPart(op)) {
      auto extract = cast<tensor::ExtractSliceOp>(op);
      Values at;
      for (auto [i, offset] : llvm::zip_equal(index, extract.getMixedOffsets()))
        at.push_back(shift(b, i, offset, /*back=*/false));
      return evaluate(b, extract.getSource(), at, op);
    }
    auto generic = dyn_cast_if_present<linalg::GenericOp>(op);
    if (generic && isNeededHere && isOnElements(generic))
      return evaluateGeneric(b, generic, index);
    return tensor::ExtractOp::create(b, tensor, index);
  }

  static Value shift(ImplicitLocOpBuilder &b, Value index, OpFoldResult offset,
                     bool back) {
    if (isConstantIntValue(offset, 0))
      return index;
    Value by = getValueOrCreateConstantIndexOp(b, b.getLoc(), offset);
    return back ? b.createOrFold<arith::SubIOp>(index, by)
                : b.createOrFold<arith::AddIOp>(index, by);
  }

  Value evaluateInsert(ImplicitLocOpBuilder &b, tensor::InsertSliceOp op,
                       const Values &index) {
    Value isInside;
    Values at;
    auto both = [&](Value condition) {
      isInside =
          isInside ? arith::AndIOp::create(b, isInside, condition) : condition;
    };
    for (auto [i, offset, size, whole] :
         llvm::zip_equal(index, op.getMixedOffsets(), op.getMixedSizes(),
                         op.getType().getShape())) {
      Value inner = shift(b, i, offset, /*back=*/true);
      at.push_back(inner);
      if (isConstantIntValue(offset, 0) && isConstantIntValue(size, whole))
        continue;
      // What lies before it is a large number.
      Value count = getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
      both(arith::CmpIOp::create(b, arith::CmpIPredicate::ult, inner, count));
    }
    if (!isInside)
      return evaluate(b, op.getSource(), at, op);
    auto which = scf::IfOp::create(b, op.getType().getElementType(), isInside,
                                   /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(which.thenBlock());
    scf::YieldOp::create(b, evaluate(b, op.getSource(), at, op));
    b.setInsertionPointToStart(which.elseBlock());
    scf::YieldOp::create(b, evaluate(b, op.getDest(), index, op));
    return which.getResult(0);
  }

  Value evaluateGeneric(ImplicitLocOpBuilder &b, linalg::GenericOp op,
                        const Values &index) {
    IRMapping mapping;
    for (OpOperand *input : op.getDpsInputOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(input);
      if (argument.use_empty())
        continue;
      if (op.isScalar(input)) {
        mapping.map(argument, input->get());
        continue;
      }
      AffineMap map = op.getMatchingIndexingMap(input);
      Values at;
      for (AffineExpr expr : map.getResults())
        at.push_back(affine::expandAffineExpr(b, b.getLoc(), expr, index, {}));
      // What is read more than once is computed before.
      auto fill = input->get().getDefiningOp<linalg::FillOp>();
      mapping.map(
          argument,
          map.isPermutation() || fill
              ? evaluate(b, input->get(), at, op)
              : tensor::ExtractOp::create(b, input->get(), at).getResult());
    }
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (auto at = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(at.getResult(), index[at.getDim()]);
      else
        b.clone(inner, mapping);
    }
    return mapping.lookupOrDefault(
        op.getBody()->getTerminator()->getOperand(0));
  }

  Value root;
  RankedTensorType type;
};

struct ComputeSlicesPass
    : sardonyx::impl::NVComputeSlicesBase<ComputeSlicesPass> {
  void runOnOperation() override {
    // Later ones first: what earlier ones make may go into them.
    while (tensor::InsertSliceOp part = findPart()) {
      SliceComputer(findLast(part)).run();
      eraseUnused();
    }
  }

private:
  /// The last operation that completes such a tensor.
  tensor::InsertSliceOp findPart() {
    tensor::InsertSliceOp found;
    getOperation().walk([&](tensor::InsertSliceOp op) {
      const bool isLast = llvm::none_of(op->getUsers(), [&](Operation *user) {
        auto next = dyn_cast<tensor::InsertSliceOp>(user);
        return next && next.getDest() == op.getResult();
      });
      if (isLast && countParts(op))
        found = op;
    });
    return found;
  }

  /// What nobody needs any more.
  void eraseUnused() {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<tensor::InsertSliceOp, tensor::ExtractSliceOp, linalg::GenericOp,
              tensor::EmptyOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
