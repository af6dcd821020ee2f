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
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace sardonyx;

namespace {

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
    keepFromWriters(value);
    b.setInsertionPoint(ret);
    bufferization::MaterializeInDestinationOp::create(b, loc, Type(), value,
                                                      buffer, /*restrict=*/true,
                                                      /*writable=*/true);
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
