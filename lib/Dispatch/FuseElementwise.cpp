//===- FuseElementwise.cpp - Fuse elementwise ops, move reshapes ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Observed.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXFUSEELEMENTWISE
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// More inputs than this make a body that spills.
static constexpr unsigned kMaxInputs = 12;
/// Each fusion copies both bodies: a chain of any length would be copied as
/// often as it is long.
static constexpr size_t kMaxBody = 64;

/// Operations that are looked at behind each other.
static constexpr size_t kFurthest = 16;

/// The only operation that needs `value`, besides those that fusion left over;
/// null if there are several.
static Operation *findUser(Value value) {
  Operation *found = nullptr;
  for (Operation *user : value.getUsers()) {
    if (user == found || isOpTriviallyDead(user) || isObservation(user))
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

/// Whether `op` can compute on dimensions of which each of `groups` is one.
static bool canCollapse(linalg::GenericOp op,
                        ArrayRef<ReassociationIndices> groups) {
  return llvm::all_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    return llvm::all_of(groups, [&](const ReassociationIndices &group) {
      const auto used = llvm::count_if(
          group, [&](int64_t dim) { return map.isFunctionOfDim(dim); });
      return used == 0 || used == static_cast<int64_t>(group.size());
    });
  });
}

/// The dense operation on whose result `op` computes at the same position,
/// maybe through other elementwise operations of one user: all of them will be
/// in its kernel. Null where there is none. `behind` are those after `op`.
static Operation *findDenseOp(linalg::GenericOp op,
                              SmallVector<linalg::GenericOp> behind = {}) {
  behind.push_back(op);
  for (OpOperand *input : op.getDpsInputOperands()) {
    Operation *user = op, *producer = input->get().getDefiningOp();
    if (!producer || !op.getMatchingIndexingMap(input).isIdentity())
      continue;
    // Reshapes move out of the way, to where they undo each other.
    while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
               producer) &&
           findUser(producer->getResult(0)) == user) {
      auto expand = dyn_cast<tensor::ExpandShapeOp>(producer);
      if (expand && !llvm::all_of(behind, [&](linalg::GenericOp generic) {
            return generic.getNumLoops() !=
                       static_cast<unsigned>(
                           expand.getResultType().getRank()) ||
                   canCollapse(generic, expand.getReassociationIndices());
          }))
        break;
      user = producer;
      producer = producer->getOperand(0).getDefiningOp();
    }
    if (isa_and_present<sdx::DenseOpInterface>(producer))
      return producer;
    if (producer && behind.size() <= kFurthest &&
        isElementwiseGeneric(producer) &&
        findUser(producer->getResult(0)) == user)
      if (Operation *found =
              findDenseOp(cast<linalg::GenericOp>(producer), behind))
        return found;
  }
  return nullptr;
}

/// Whether `producer` makes smaller elements of a dense result, such as bytes
/// of i32, and what its consumer is for is computed in another kernel: behind a
/// later dense operation (of two products that are added as bytes, the first
/// leaves bytes), or beside the reduction of rows (softmax of scores that are
/// bytes reads these).
static bool leavesSmallResult(linalg::GenericOp producer, OpOperand *fused) {
  auto bits = [](Value value) {
    return getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  };
  constexpr int64_t kDenseBits = 32;
  if (bits(producer.getResult(0)) >= kDenseBits)
    return false;
  Operation *own = findDenseOp(producer);
  if (!own || bits(producer.getResult(0)) >= bits(own->getResult(0)))
    return false;
  bool isLast = true; // of what makes smaller elements
  for (size_t depth = 0; depth < kFurthest; ++depth) {
    auto consumer = dyn_cast<linalg::GenericOp>(fused->getOwner());
    if (!consumer || !isElementwiseGeneric(consumer) ||
        !consumer.getMatchingIndexingMap(fused).isIdentity())
      return false;
    for (OpOperand *input : consumer.getDpsInputOperands()) {
      Operation *other = input->get().getDefiningOp();
      if (!other || input == fused ||
          !consumer.getMatchingIndexingMap(input).isIdentity())
        continue;
      if (isElementwiseGeneric(other))
        other = findDenseOp(cast<linalg::GenericOp>(other));
      if (isa_and_nonnull<sdx::DenseOpInterface>(other) &&
          other->getBlock() == own->getBlock() && own->isBeforeInBlock(other))
        return true;
    }
    isLast &= bits(consumer.getResult(0)) >= kDenseBits;
    if (isLast && isReduced(consumer.getResult(0)))
      return true;
    Operation *user = findUser(consumer.getResult(0));
    if (!user)
      return false;
    fused = llvm::find_if(user->getOpOperands(), [&](OpOperand &operand) {
      return operand.get() == consumer.getResult(0);
    });
  }
  return false;
}

/// Whether `op` computes elements of others that it picks from tensors by
/// computed positions, as a resize does, and checks none of these.
static bool isPick(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  return generic && generic.hasPureTensorSemantics() &&
         llvm::all_of(generic.getBody()->getOperations(),
                      [](Operation &inner) { return isPure(&inner); }) &&
         generic.getNumParallelLoops() == generic.getNumLoops() &&
         llvm::all_of(generic.getIndexingMapsArray(), isOrderedProjection);
}

/// A producer goes into its only user if it is computed there as often as it
/// was before: on the same domain. One that picks elements is no part of the
/// kernels of dense operations and of reductions.
static bool shouldFuse(OpOperand *fused) {
  Operation *producer = fused->get().getDefiningOp();
  auto consumer = dyn_cast<linalg::GenericOp>(fused->getOwner());
  if (!producer || !consumer || !isElementwiseGeneric(consumer))
    return false;
  if (!isElementwiseGeneric(producer) &&
      (!isPick(producer) || findDenseOp(consumer) ||
       isReduced(consumer.getResult(0))))
    return false;
  auto generic = cast<linalg::GenericOp>(producer);
  if (!consumer.getMatchingIndexingMap(fused).isIdentity())
    return false;
  // What is only observed is the same numbers as in the program.
  if (isObservation(producer) || isObservation(consumer))
    return false;
  if (leavesSmallResult(generic, fused))
    return false;
  if (generic.getNumDpsInputs() + consumer.getNumDpsInputs() > kMaxInputs)
    return false;
  if (generic.getBody()->getOperations().size() +
          consumer.getBody()->getOperations().size() >
      kMaxBody)
    return false;
  return llvm::all_of(producer->getUsers(),
                      [&](Operation *user) { return user == consumer; });
}

/// A reshape moves below an elementwise operation or a row reduction; the
/// other operands are reshaped in turn, which costs nothing.
static bool shouldMoveReshape(OpOperand *reshaped) {
  auto expand = reshaped->get().getDefiningOp<tensor::ExpandShapeOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(reshaped->getOwner());
  if (!expand || !consumer)
    return false;
  for (AffineMap map : consumer.getIndexingMapsArray())
    if (!isOrderedProjection(map))
      return false;
  return llvm::none_of(capturedValues(consumer), [](Value value) {
    return isa<ShapedType>(value.getType());
  });
}

namespace {

/// Gives elementwise operations whose values are observed a copy for that,
/// where they go into the operation that reads them: there it may be another
/// sum or product than by themselves.
class ObservedCopies {
public:
  void run(ModuleOp module) {
    SmallVector<sdx::ObserveOp> ops;
    module.walk([&](sdx::ObserveOp op) { ops.push_back(op); });
    for (sdx::ObserveOp op : ops)
      if (Value copy = copyOf(op.getValue()))
        op.getValueMutable().set(copy);
  }

private:
  static bool isReshape(Operation *op) {
    return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
        op);
  }

  /// Whether an elementwise operation is all that reads `value`.
  static bool isFused(Value value) {
    Operation *user = findUser(value);
    while (user && isReshape(user))
      user = findUser(user->getResult(0));
    return user && isElementwiseGeneric(user);
  }

  /// The copy of `value`; null where the value is there in any case.
  Value copyOf(Value value) {
    Operation *def = value.getDefiningOp();
    if (!def || !isFused(value) ||
        !(isReshape(def) || isElementwiseGeneric(def)))
      return {};
    if (Value known = copies.lookup(value))
      return known;
    IRMapping map;
    bool isCopied = !isReshape(def);
    for (Value operand : def->getOperands())
      if (Value copy = copyOf(operand)) {
        map.map(operand, copy);
        isCopied = true;
      }
    if (!isCopied)
      return {}; // a view
    OpBuilder b(def->getContext());
    b.setInsertionPointAfter(def);
    Operation *copy = b.clone(*def, map);
    if (auto generic = dyn_cast<linalg::GenericOp>(copy))
      generic.getBody()->getTerminator()->setAttr(kObservedAttr,
                                                  b.getUnitAttr());
    return copies[value] =
               copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  DenseMap<Value, Value> copies;
};

/// Named operations that are elementwise, broadcasts or reductions, as generic
/// ones. Contractions, pools and fills keep their names.
struct GeneralizeNamed : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp,
            linalg::CopyOp>(op) ||
        !op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "keeps its name");
    bool parallel = op.getNumParallelLoops() == op.getNumLoops();
    if (!parallel && !isa<linalg::ReduceOp>(op))
      return rewriter.notifyMatchFailure(op, "neither elementwise nor a "
                                             "reduction");
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// Drops the dimensions of size 1 that an operand reads at index 0, so that
/// `[M,1]` read by rows is the `[M]` that a reduction made; also that of a loop
/// of one iteration whose neighbours it does not read, with which it may become
/// one dimension.
struct DropUnitDimsOfOperand : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    bool changed = false;
    SmallVector<Value> inputs(op.getDpsInputs());
    for (OpOperand *operand : op.getDpsInputOperands()) {
      unsigned i = operand->getOperandNumber();
      std::optional<Value> dropped =
          drop(rewriter, op.getLoc(), operand->get(), maps, i);
      if (!dropped)
        continue;
      inputs[i] = *dropped;
      changed = true;
    }
    if (!changed)
      return rewriter.notifyMatchFailure(op, "reads no dimension of size 1");
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputsMutable().assign(inputs);
      op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    });
    return success();
  }

private:
  /// Whether `map` reads loop `dim` and none beside it.
  static bool isOnlyOneRead(unsigned dim, AffineMap map) {
    return map.isFunctionOfDim(dim) && map.getNumResults() < map.getNumDims() &&
           (dim == 0 || !map.isFunctionOfDim(dim - 1)) &&
           (dim + 1 == map.getNumDims() || !map.isFunctionOfDim(dim + 1));
  }

  /// Whether `value` may be what was made of rows, in whose kernel each of
  /// their elements is computed from it.
  static bool isOfRows(Value value, AffineMap map) {
    Operation *op = value.getDefiningOp();
    while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      op = op->getOperand(0).getDefiningOp();
    if (!isa_and_present<linalg::GenericOp>(op))
      return false;
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (expr != getAffineDimExpr(i, map.getContext()))
        return false;
    return true;
  }

  /// Whether an operand other than `operand` tells how often loop `dim` runs.
  static bool hasOtherSize(AffineExpr dim, ArrayRef<AffineMap> maps,
                           size_t operand) {
    for (auto [i, map] : llvm::enumerate(maps))
      if (i != operand && llvm::is_contained(map.getResults(), dim))
        return true;
    return false;
  }

  static std::optional<Value> drop(OpBuilder &b, Location loc, Value value,
                                   MutableArrayRef<AffineMap> maps,
                                   size_t operand) {
    AffineMap &map = maps[operand];
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return std::nullopt;
    SmallVector<AffineExpr> kept;
    SmallVector<int64_t> shape;
    llvm::SmallBitVector dropped(map.getNumResults());
    for (auto [i, expr] : llvm::enumerate(map.getResults())) {
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      auto dim = dyn_cast<AffineDimExpr>(expr);
      const bool isAlone = dim && isOnlyOneRead(dim.getPosition(), map) &&
                           hasOtherSize(dim, maps, operand) &&
                           !isOfRows(value, maps[operand]);
      if (((constant && constant.getValue() == 0) || isAlone) &&
          type.getDimSize(i) == 1) {
        dropped.set(i);
        continue;
      }
      kept.push_back(expr);
      shape.push_back(type.getDimSize(i));
    }
    if (dropped.none())
      return std::nullopt;
    map = AffineMap::get(map.getNumDims(), 0, kept, b.getContext());
    return tensor::CollapseShapeOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), value,
        groupWithDropped(dropped));
  }
};

/// Collapsing asks an operand's producer for sizes that the result's type
/// knows. A tensor may be expanded to a size that is both, a buffer may not.
struct TakeSizesFromType : OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> shape = op.getResultType().getShape();
    if (op.getStaticOutputShape() == shape)
      return rewriter.notifyMatchFailure(op, "says what its type says");
    SmallVector<Value> open;
    for (auto [size, given] : llvm::zip_equal(shape, op.getMixedOutputShape()))
      if (ShapedType::isDynamic(size))
        open.push_back(
            getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), given));
    rewriter.modifyOpInPlace(op, [&] {
      op.setStaticOutputShape(shape);
      op.getOutputShapeMutable().assign(open);
    });
    return success();
  }
};

/// A result as static as the tensor that it is put into, where a cast hides
/// that. Upstream's patterns would make a tensor of the cast's sizes for it,
/// and a cast of a static one of that, for ever.
struct TakeSizesFromInit : OpRewritePattern<linalg::GenericOp> {
  explicit TakeSizesFromInit(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    bool changed = false;
    SmallVector<Value> inits;
    SmallVector<Type> types(op.getResultTypes());
    for (auto [init, type] : llvm::zip_equal(op.getDpsInits(), types)) {
      auto cast = init.getDefiningOp<tensor::CastOp>();
      const bool hides = cast && tensor::canFoldIntoConsumerOp(cast);
      inits.push_back(hides ? cast.getSource() : init);
      type = inits.back().getType();
      changed |= hides;
    }
    if (!changed)
      return rewriter.notifyMatchFailure(op, "no cast hides a size");
    IRMapping map;
    for (auto [init, taken] : llvm::zip_equal(op.getDpsInits(), inits))
      map.map(init, taken);
    auto taken = cast<linalg::GenericOp>(rewriter.clone(*op, map));
    SmallVector<Value> results;
    for (auto [result, old, type] :
         llvm::zip_equal(taken->getResults(), op.getResultTypes(), types)) {
      result.setType(type);
      results.push_back(
          rewriter.createOrFold<tensor::CastOp>(op.getLoc(), old, result));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct FuseElementwisePass
    : sardonyx::impl::SDXFuseElementwiseBase<FuseElementwisePass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    // Which dimensions can be one tells what will be in a product's kernel.
    RewritePatternSet dimensions(context);
    dimensions.add<GeneralizeNamed, DropUnitDimsOfOperand>(context);
    rewriteGreedily(getOperation(), std::move(dimensions));
    ObservedCopies().run(getOperation());
    RewritePatternSet patterns(context);
    patterns.add<GeneralizeNamed, DropUnitDimsOfOperand, TakeSizesFromInit,
                 TakeSizesFromType>(context);
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns,
                                                       shouldMoveReshape);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::populateReassociativeReshapeFoldingPatterns(patterns);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    for (StringRef dialect : {"tensor", "linalg", "arith", "affine"})
      if (Dialect *loaded = context->getLoadedDialect(dialect))
        loaded->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      if (isa<linalg::LinalgDialect, tensor::TensorDialect>(op.getDialect()))
        op.getCanonicalizationPatterns(patterns, context);
    FrozenRewritePatternSet frozen(std::move(patterns));
    // Equal values first: the two users of one are not fused, the users of two
    // equal ones would each be.
    for (int round = 0; round < 2; ++round) {
      mergeEqual(getOperation());
      rewriteGreedily(getOperation(), frozen);
    }
    mergeEqual(getOperation());
  }
};

} // namespace
