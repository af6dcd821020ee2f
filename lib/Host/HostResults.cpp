//===- HostResults.cpp - Results go to output buffers ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bufferize.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// A size that is known before a branch: a number or a value, or that of a
/// tensor which is there before.
struct SizeBefore {
  OpFoldResult size;
  Value tensor;
  int64_t dim = 0;

  Value get(OpBuilder &b, Location loc) const {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor ? tensor::getMixedSize(b, loc, tensor, dim) : size);
  }
};

} // namespace

/// Size `d` of `tensor`, which `branch` yields.
static std::optional<SizeBefore> findSizeBefore(scf::IfOp branch, Value tensor,
                                                int64_t d) {
  auto isInside = [&](Value value) {
    return branch->isAncestor(value.getParentBlock()->getParentOp());
  };
  while (true) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.isDynamicDim(d))
      return SizeBefore{
          Builder(branch.getContext()).getIndexAttr(type.getDimSize(d)), {}};
    if (!isInside(tensor))
      return SizeBefore{{}, tensor, d};
    Operation *op = tensor.getDefiningOp();
    if (auto castOp = dyn_cast_or_null<tensor::CastOp>(op)) {
      tensor = castOp.getSource();
    } else if (auto call = dyn_cast_or_null<sdx::CallOp>(op)) {
      tensor = cast<DestinationStyleOpInterface>(*call)
                   .getTiedOpOperand(cast<OpResult>(tensor))
                   ->get();
    } else if (auto empty = dyn_cast_or_null<tensor::EmptyOp>(op)) {
      Value size = empty.getDynamicSize(d);
      return isInside(size) ? std::nullopt
                            : std::optional(SizeBefore{size, {}});
    } else {
      return std::nullopt;
    }
  }
}

namespace {

/// A size of what either of two branches yields is known before them, if each
/// one's is.
struct SizeOfBranches : OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::DimOp dim,
                                PatternRewriter &b) const override {
    auto branch = dim.getSource().getDefiningOp<scf::IfOp>();
    std::optional<int64_t> d = dim.getConstantIndex();
    if (!branch || !d)
      return failure();
    const unsigned number = cast<OpResult>(dim.getSource()).getResultNumber();
    std::optional<SizeBefore> yes =
        findSizeBefore(branch, branch.thenYield().getOperand(number), *d);
    std::optional<SizeBefore> no =
        findSizeBefore(branch, branch.elseYield().getOperand(number), *d);
    if (!yes || !no)
      return failure();
    b.setInsertionPoint(branch);
    Location loc = dim.getLoc();
    Value ifTrue = yes->get(b, loc), ifFalse = no->get(b, loc);
    b.replaceOpWithNewOp<arith::SelectOp>(dim, branch.getCondition(), ifTrue,
                                          ifFalse);
    return success();
  }
};

/// Writes the results of a host function to output buffers.
class Outputs {
public:
  explicit Outputs(func::FuncOp func)
      : func(func),
        ret(cast<func::ReturnOp>(func.getBody().front().getTerminator())) {}

  LogicalResult write() {
    for (Value value : ret.getOperands())
      if (!isa<RankedTensorType>(value.getType()))
        return ret.emitOpError("returns ")
               << value.getType() << "; a host function returns ranked "
               << "tensors only";
    addSizes();
    for (auto [i, sizes] : llvm::enumerate(allSizes))
      writeResult(i, sizes);
    keepResults();
    ret->setOperands({});
    dropWrittenResults();
    func.setFunctionType(FunctionType::get(
        func.getContext(), func.getArgumentTypes(), TypeRange()));
    return success();
  }

private:
  /// What the function's results were: their types and attributes move to
  /// `sdx.results`.
  void keepResults() {
    Builder b(func.getContext());
    SmallVector<Attribute> described;
    for (auto [i, type] : llvm::enumerate(ret.getOperandTypes())) {
      NamedAttrList attrs(func.getResultAttrDict(i));
      attrs.set("sdx.type", TypeAttr::get(type));
      described.push_back(attrs.getDictionary(func.getContext()));
    }
    func->setAttr(sdx::kResultsAttr, b.getArrayAttr(described));
    func.removeResAttrsAttr();
  }

  /// The sizes of the results' dynamic dimensions, in terms of what is known
  /// as early as possible.
  void addSizes() {
    OpBuilder b(ret);
    SmallVector<Value> dims;
    for (Value value : ret.getOperands())
      dims.append(tensor::createDynamicDimValues(b, ret.getLoc(), value));
    // Hold the sizes as operands while patterns replace them.
    unsigned count = ret.getNumOperands();
    ret.getOperandsMutable().append(dims);
    RewritePatternSet patterns(func.getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    tensor::DimOp::getCanonicalizationPatterns(patterns, func.getContext());
    arith::SelectOp::getCanonicalizationPatterns(patterns, func.getContext());
    patterns.add<SizeOfBranches>(func.getContext());
    affine::AffineApplyOp::getCanonicalizationPatterns(patterns,
                                                       func.getContext());
    rewriteGreedily(func, std::move(patterns));
    unsigned next = count;
    for (unsigned i = 0; i < count; ++i) {
      auto type = cast<RankedTensorType>(ret.getOperand(i).getType());
      SmallVector<Value> sizes;
      for (int64_t d = 0; d < type.getNumDynamicDims(); ++d)
        sizes.push_back(ret.getOperand(next++));
      allSizes.push_back(sizes);
    }
    ret.getOperandsMutable().erase(count, next - count);
  }

  /// The sizes of what `collapse` makes the tensor in `buffer` of; nothing
  /// where open ones are multiplied with each other.
  static std::optional<SmallVector<OpFoldResult>>
  findExpandedSizes(OpBuilder &b, Value buffer,
                    tensor::CollapseShapeOp collapse) {
    RankedTensorType type = collapse.getSrcType();
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), type.getShape());
    for (auto [i, group] : llvm::enumerate(collapse.getReassociationIndices()))
      for (int64_t dim : group) {
        if (!type.isDynamicDim(dim))
          continue;
        int64_t known = 1;
        for (int64_t other : group)
          if (other != dim)
            known =
                type.isDynamicDim(other) ? 0 : known * type.getDimSize(other);
        if (known == 0)
          return std::nullopt;
        Location loc = collapse.getLoc();
        Value size = memref::DimOp::create(b, loc, buffer, i);
        if (known != 1)
          size = arith::DivUIOp::create(
              b, loc, size, arith::ConstantIndexOp::create(b, loc, known));
        sizes[dim] = size;
      }
    return sizes;
  }

  void writeResult(unsigned i, ArrayRef<Value> sizes) {
    Value value = ret.getOperand(i);
    OpBuilder b(func.getContext());
    Operation *after = nullptr;
    for (Value size : sizes) {
      hoistCheap(size, hoisted);
      Operation *def = size.getDefiningOp();
      if (def && (!after || after->isBeforeInBlock(def)))
        after = def;
    }
    if (after)
      b.setInsertionPointAfter(after);
    else
      b.setInsertionPointToStart(&func.getBody().front());
    Location loc = ret.getLoc();
    Value buffer = sdx::OutputBufferOp::create(
        b, loc, bufferOf(cast<RankedTensorType>(value.getType())), i, sizes);
    // A result that is a view of another tensor: write that, through the
    // inverse view of the buffer, so that its maker can write here.
    while (Operation *view = value.getDefiningOp()) {
      Value source;
      if (auto expand = dyn_cast<tensor::ExpandShapeOp>(view)) {
        source = expand.getSrc();
        buffer = memref::CollapseShapeOp::create(
            b, loc, buffer, expand.getReassociationIndices());
      } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(view)) {
        source = collapse.getSrc();
        auto type = cast<RankedTensorType>(source.getType());
        std::optional<SmallVector<OpFoldResult>> expanded =
            findExpandedSizes(b, buffer, collapse);
        if (!expanded)
          break;
        buffer = memref::ExpandShapeOp::create(
            b, loc, bufferOf(type), buffer, collapse.getReassociationIndices(),
            *expanded);
      } else {
        break;
      }
      value = source;
    }
    writeTo(buffer, value, ret);
  }

  /// The branches that make `value` for `user`, in their block, and for nothing
  /// else.
  static scf::IfOp findBranches(Value value, Operation *user) {
    while (auto cast = value.getDefiningOp<tensor::CastOp>()) {
      if (!value.hasOneUse())
        return nullptr;
      value = cast.getSource();
    }
    auto branch = value.getDefiningOp<scf::IfOp>();
    return branch && value.hasOneUse() && branch->getBlock() == user->getBlock()
               ? branch
               : nullptr;
  }

  /// Whether calls in `block` make the tensor that `value` is a view of in
  /// memory of its own.
  static bool isMadeIn(Block *block, Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (op->getBlock() != block)
        return false;
      if (isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
              op)) {
        value = op->getOperand(0);
        continue;
      }
      if (!isa<sdx::CallOp>(op))
        return false;
      value = cast<DestinationStyleOpInterface>(op)
                  .getTiedOpOperand(cast<OpResult>(value))
                  ->get();
      if (value.getDefiningOp<tensor::EmptyOp>())
        return true;
    }
    return false;
  }

  static OpResult skipCasts(Value value) {
    while (auto cast = value.getDefiningOp<tensor::CastOp>())
      value = cast.getSource();
    return cast<OpResult>(value);
  }

  /// Whether there are branches that make `value`, one of them in memory of its
  /// own.
  static bool isMadeInBranches(Value value, Operation *user) {
    scf::IfOp branch = findBranches(value, user);
    if (!branch)
      return false;
    const unsigned number = skipCasts(value).getResultNumber();
    auto isMade = [&](scf::YieldOp yield) {
      Value yielded = yield.getOperand(number);
      return isMadeIn(yield->getBlock(), yielded) ||
             isMadeInBranches(yielded, yield);
    };
    return isMade(branch.thenYield()) || isMade(branch.elseYield());
  }

  /// Writes `value`, of the type of `buffer` but for what is known of its
  /// sizes, before `user`, the operation that it is for; or in branches that
  /// yield it, so that these make it there.
  void writeTo(Value buffer, Value value, Operation *user) {
    auto type = cast<MemRefType>(buffer.getType());
    auto wanted = RankedTensorType::get(type.getShape(), type.getElementType());
    Operation *there = buffer.getDefiningOp();
    if (isMadeInBranches(value, user)) {
      scf::IfOp branch = findBranches(value, user);
      OpResult made = skipCasts(value);
      if ((there->getBlock() != branch->getBlock() ||
           there->isBeforeInBlock(branch)) &&
          tensor::CastOp::areCastCompatible(made.getType(), wanted)) {
        branches.insert(branch);
        for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
          writeTo(buffer, yield.getOperand(made.getResultNumber()), yield);
        return;
      }
    }
    OpBuilder b(user);
    Location loc = ret.getLoc();
    if (value.getType() != wanted)
      value = tensor::CastOp::create(b, loc, wanted, value);
    // What is there before a branch must not lie where the other branch writes:
    // that, and what may be in its memory, is copied.
    if (user != ret && !isMadeIn(user->getBlock(), value)) {
      auto anywhere = MemRefType::get(
          type.getShape(), type.getElementType(),
          StridedLayoutAttr::get(
              b.getContext(), ShapedType::kDynamic,
              SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic)));
      Value memory = bufferization::ToBufferOp::create(b, loc, anywhere, value,
                                                       /*read_only=*/true);
      memref::CopyOp::create(b, loc, memory, buffer);
      return;
    }
    keepFromWriters(value);
    bufferization::MaterializeInDestinationOp::create(b, loc, Type(), value,
                                                      buffer, /*restrict=*/true,
                                                      /*writable=*/true);
  }

  /// Branches that have written a result don't yield it.
  void dropWrittenResults() {
    SmallVector<scf::IfOp> order;
    func.walk<WalkOrder::PreOrder>([&](scf::IfOp branch) {
      if (branches.contains(branch))
        order.push_back(branch);
    });
    for (scf::IfOp branch : order) {
      llvm::BitVector unused(branch->getNumResults());
      for (OpResult result : branch->getResults()) {
        Value last = result;
        while (last.hasOneUse() && isa<tensor::CastOp>(*last.user_begin()))
          last = last.user_begin()->getResult(0);
        if (!last.use_empty())
          continue;
        unused.set(result.getResultNumber());
        while (last != result) {
          Operation *cast = last.getDefiningOp();
          last = cast->getOperand(0);
          cast->erase();
        }
      }
      SmallVector<Type> types;
      SmallVector<Value> kept;
      for (OpResult result : branch->getResults())
        if (!unused[result.getResultNumber()]) {
          types.push_back(result.getType());
          kept.push_back(result);
        }
      for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
        yield->eraseOperands(unused);
      OpBuilder b(branch);
      auto less =
          scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition());
      less->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
      less.getThenRegion().takeBody(branch.getThenRegion());
      less.getElseRegion().takeBody(branch.getElseRegion());
      for (auto [from, to] : llvm::zip_equal(kept, less.getResults()))
        from.replaceAllUsesWith(to);
      branch.erase();
    }
  }

  /// A result must not change once it is made: what would write into its
  /// memory gets a copy. Bufferization takes any write on the way to an output
  /// buffer for a part of what is written there.
  static void keepFromWriters(Value result) {
    for (OpOperand *use : findWriters(result)) {
      OpBuilder b(use->getOwner());
      auto type = cast<RankedTensorType>(use->get().getType());
      use->set(bufferization::AllocTensorOp::create(
          b, use->getOwner()->getLoc(), type, ValueRange(), use->get()));
    }
  }

  func::FuncOp func;
  func::ReturnOp ret;
  SmallVector<SmallVector<Value>> allSizes;
  llvm::SmallPtrSet<Operation *, 16> hoisted;
  /// Those that have written a result.
  llvm::SmallPtrSet<Operation *, 4> branches;
};

} // namespace

LogicalResult sardonyx::writeResults(func::FuncOp func) {
  return Outputs(func).write();
}

sdx::OutputBufferOp sardonyx::wholeOutput(Value buffer) {
  while (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp,
                         memref::CastOp>(buffer.getDefiningOp()))
    buffer = buffer.getDefiningOp()->getOperand(0);
  return buffer.getDefiningOp<sdx::OutputBufferOp>();
}

/// The memory that `buffer` is a view of.
static Value viewedMemory(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

/// The copies at the function's end that put whole results into their output
/// buffers. Others there, which write parts of a buffer or what parts are then
/// written over, are steps of how a result is made.
static SmallVector<memref::CopyOp> findResultCopies(func::FuncOp func) {
  SmallVector<memref::CopyOp> found;
  llvm::SmallPtrSet<Operation *, 8> written;
  Operation *ret = func.getBody().front().getTerminator();
  for (Operation *op = ret->getPrevNode(); op; op = op->getPrevNode()) {
    auto copy = dyn_cast<memref::CopyOp>(op);
    if (!copy && isMemoryEffectFree(op))
      continue;
    Operation *output = copy ? wholeOutput(copy.getTarget()) : nullptr;
    if (!output || !written.insert(output).second)
      break;
    found.insert(found.begin(), copy);
  }
  return found;
}

void sardonyx::orderResultCopies(func::FuncOp func) {
  Operation *ret = func.getBody().front().getTerminator();
  SmallVector<memref::CopyOp> left = findResultCopies(func);
  auto isRead = [&](Value memory, memref::CopyOp by) {
    return llvm::any_of(left, [&](memref::CopyOp other) {
      return other != by && viewedMemory(other.getSource()) == memory;
    });
  };
  while (!left.empty()) {
    auto *next = llvm::find_if(left, [&](memref::CopyOp copy) {
      return !isRead(viewedMemory(copy.getTarget()), copy);
    });
    if (next == left.end()) {
      // Each reads what another one writes.
      next = left.begin();
      OpBuilder b(ret);
      Location loc = next->getLoc();
      Value source = next->getSource();
      auto type = cast<MemRefType>(source.getType());
      SmallVector<Value> sizes;
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (type.isDynamicDim(d))
          sizes.push_back(memref::DimOp::create(b, loc, source, d));
      Value kept = memref::AllocOp::create(
          b, loc, MemRefType::get(type.getShape(), type.getElementType()),
          sizes);
      memref::CopyOp::create(b, loc, source, kept);
      next->getSourceMutable().assign(kept);
      continue;
    }
    (*next)->moveBefore(ret);
    left.erase(next);
  }
}
