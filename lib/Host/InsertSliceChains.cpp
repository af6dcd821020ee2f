//===- InsertSliceChains.cpp - Tensors that are put together of slices ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a concatenation or a padding leaves is a chain: each slice is inserted
// into what the insertion before made. Bufferization would ask of each link
// whether it conflicts with each other one. Here, the tensor at the end gets
// its buffer at once, the slices become copies into it, and a kernel whose
// result is a slice writes it there.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// A chain of insertions, the first one first, and what it starts from: an
/// empty tensor, or a call's result for which there is an empty tensor.
struct Chain {
  SmallVector<tensor::InsertSliceOp> inserts;
  sdx::CallOp fill;
  tensor::EmptyOp empty;

  Block *block() const { return inserts.front()->getBlock(); }
  Value result() const { return inserts.back()->getResult(0); }
  RankedTensorType type() const {
    return cast<RankedTensorType>(result().getType());
  }
};

} // namespace

/// The empty tensor that `call` writes its result to; null if that has other
/// uses.
static tensor::EmptyOp destinationOf(sdx::CallOp call, OpResult result) {
  auto empty = cast<DestinationStyleOpInterface>(*call)
                   .getTiedOpOperand(result)
                   ->get()
                   .getDefiningOp<tensor::EmptyOp>();
  return empty && empty->hasOneUse() && empty->getBlock() == call->getBlock()
             ? empty
             : tensor::EmptyOp();
}

static std::optional<Chain> findChain(tensor::InsertSliceOp last) {
  // Only the end of a chain begins one.
  if (last->hasOneUse())
    if (auto next = dyn_cast<tensor::InsertSliceOp>(*last->user_begin()))
      if (next.getDest() == last.getResult() &&
          next->getBlock() == last->getBlock())
        return std::nullopt;
  Chain chain;
  for (tensor::InsertSliceOp op = last; op;
       op = op.getDest().getDefiningOp<tensor::InsertSliceOp>()) {
    if (op != last && (!op->hasOneUse() || op->getBlock() != last->getBlock()))
      return std::nullopt;
    chain.inserts.push_back(op);
  }
  std::reverse(chain.inserts.begin(), chain.inserts.end());
  Value root = chain.inserts.front().getDest();
  if (!root.hasOneUse() || !root.getDefiningOp() ||
      root.getDefiningOp()->getBlock() != last->getBlock())
    return std::nullopt;
  chain.empty = root.getDefiningOp<tensor::EmptyOp>();
  if (!chain.empty) {
    chain.fill = root.getDefiningOp<sdx::CallOp>();
    if (!chain.fill)
      return std::nullopt;
    chain.empty = destinationOf(chain.fill, cast<OpResult>(root));
    if (!chain.empty)
      return std::nullopt;
  }
  return chain;
}

/// True if no element of the slice belongs to another one of the chain: slices
/// of known size that follow each other along one dimension.
static bool areInOrder(const Chain &chain) {
  int64_t along = -1, end = 0;
  for (tensor::InsertSliceOp op : chain.inserts) {
    if (!op.hasUnitStride() ||
        llvm::any_of(op.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(op.getStaticSizes(), ShapedType::isDynamic))
      return false;
    for (auto [dim, size] : llvm::enumerate(op.getStaticSizes()))
      if (size != chain.type().getDimSize(dim)) {
        if (along >= 0 && along != int64_t(dim))
          return false;
        along = dim;
      }
    if (along < 0)
      return chain.inserts.size() == 1;
    if (op.getStaticOffsets()[along] < end)
      return false;
    end = op.getStaticOffsets()[along] + op.getStaticSizes()[along];
  }
  return true;
}

/// The slice is contiguous in the whole: it will have an address of its own.
static bool isContiguousIn(tensor::InsertSliceOp op, RankedTensorType whole) {
  if (!whole.hasStaticShape() || !op.getSourceType().hasStaticShape() ||
      !op.hasUnitStride())
    return false;
  bool partial = false; // an outer dimension already goes over several
  for (auto [size, full] : llvm::zip(op.getStaticSizes(), whole.getShape())) {
    if (ShapedType::isDynamic(size) || (partial && size != full))
      return false;
    partial |= size != 1;
  }
  return true;
}

static Value viewOf(OpBuilder &b, tensor::InsertSliceOp op, Value buffer) {
  auto type = memref::SubViewOp::inferRankReducedResultType(
      op.getSourceType().getShape(), cast<MemRefType>(buffer.getType()),
      op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides());
  return memref::SubViewOp::create(b, op.getLoc(), type, buffer,
                                   op.getMixedOffsets(), op.getMixedSizes(),
                                   op.getMixedStrides());
}

static Value tensorOf(OpBuilder &b, Location loc, RankedTensorType type,
                      Value buffer, bool writable) {
  return bufferization::ToTensorOp::create(b, loc, type, buffer,
                                           /*restrict=*/true, writable);
}

/// What `tensor` is in the end, when kernels have changed it in its place: each
/// is the only one that reads what was there before.
static Value followUpdates(Value tensor) {
  while (true) {
    OpOperand *only = nullptr;
    for (OpOperand &use : tensor.getUses()) {
      if (isa<tensor::DimOp>(use.getOwner()))
        continue;
      if (only)
        return tensor;
      only = &use;
    }
    auto call = only ? dyn_cast<sdx::CallOp>(only->getOwner()) : sdx::CallOp();
    if (!call || call->getBlock() != tensor.getParentBlock() ||
        !cast<DestinationStyleOpInterface>(*call).isDpsInit(only) ||
        !call.updatesOut(only->getOperandNumber() - call.getIns().size()))
      return tensor;
    tensor = cast<DestinationStyleOpInterface>(*call).getTiedOpResult(only);
  }
}

/// The function's result that `made`, by the chain or what changes that, is.
static bufferization::MaterializeInDestinationOp resultOf(const Chain &chain,
                                                          Value made) {
  for (Operation *user : made.getUsers())
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user))
      if (isa<MemRefType>(write.getDest().getType()) &&
          write->getBlock() == chain.block())
        return write;
  return {};
}

/// Whether `buffer` is there before `first`, of the same block. The buffer of a
/// result of known sizes, and its views, may be asked for that early.
static bool isThereBefore(Value buffer, Operation *first) {
  Operation *made = buffer.getDefiningOp();
  if (!made || made->getBlock() != first->getBlock())
    return false;
  if (made->isBeforeInBlock(first))
    return true;
  if (!isa<sdx::OutputBufferOp, memref::ExpandShapeOp, memref::CollapseShapeOp>(
          made) ||
      !llvm::all_of(made->getOperands(), [&](Value operand) {
        return isThereBefore(operand, first);
      }))
    return false;
  made->moveBefore(first);
  return true;
}

/// A copy of what is there already disappears in the end.
static void copyTo(OpBuilder &b, Location loc, Value source, Value buffer) {
  bufferization::MaterializeInDestinationOp::create(
      b, loc, Type(), source, buffer, /*restrict=*/true, /*writable=*/true);
}

/// A kernel that makes the slice writes it into the buffer. The slice's view;
/// null if something else makes it.
static Value writeThere(tensor::InsertSliceOp op, const Chain &chain,
                        Value buffer) {
  auto call = op.getSource().getDefiningOp<sdx::CallOp>();
  if (!call || call->getBlock() != op->getBlock() ||
      !findWriters(op.getSource()).empty() ||
      (chain.fill && call->isBeforeInBlock(chain.fill)))
    return {};
  tensor::EmptyOp empty = destinationOf(call, cast<OpResult>(op.getSource()));
  if (!empty || empty.getType() != op.getSourceType())
    return {};
  OpBuilder b(call);
  Value view = viewOf(b, op, buffer);
  empty.replaceAllUsesWith(
      tensorOf(b, op.getLoc(), op.getSourceType(), view, /*writable=*/true));
  empty.erase();
  return view;
}

static void assemble(Chain &chain) {
  RankedTensorType type = chain.type();
  Location loc = chain.inserts.back().getLoc();
  OpBuilder b(chain.empty);
  Value buffer;
  bool plannable = type.hasStaticShape();
  bool isResult = false;
  Value made = followUpdates(chain.result());
  if (auto write = resultOf(chain, made)) {
    Operation *first = chain.fill ? chain.fill : chain.inserts.front();
    if (isThereBefore(write.getDest(), first)) {
      buffer = write.getDest();
      isResult = made == chain.result();
      if (isResult)
        write.erase();
      plannable = false; // its place is the caller's to choose
    }
  }
  if (!buffer) {
    // The place of what has a known size is planned: it may be asked for early.
    if (plannable)
      b.setInsertionPointToStart(chain.block());
    buffer = memref::AllocOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()),
        chain.empty.getDynamicSizes(), b.getI64IntegerAttr(64));
  }
  if (chain.fill) {
    b.setInsertionPoint(chain.fill);
    chain.empty.replaceAllUsesWith(
        tensorOf(b, loc, type, buffer, /*writable=*/true));
    b.setInsertionPointAfter(chain.fill);
    copyTo(b, loc, chain.inserts.front().getDest(), buffer);
  }
  plannable &=
      llvm::none_of(chain.result().getUsers(), llvm::IsaPred<scf::YieldOp>) &&
      areInOrder(chain);
  bool shared = false; // somebody else reads a slice in its place
  for (tensor::InsertSliceOp op : chain.inserts) {
    Value view;
    if (plannable && isContiguousIn(op, type))
      view = writeThere(op, chain, buffer);
    shared |= view && !op.getSource().hasOneUse();
    b.setInsertionPoint(op);
    copyTo(b, op.getLoc(), op.getSource(), view ? view : viewOf(b, op, buffer));
  }
  b.setInsertionPointAfter(chain.inserts.back());
  chain.result().replaceAllUsesWith(
      tensorOf(b, loc, type, buffer, /*writable=*/!shared && !isResult));
  for (tensor::InsertSliceOp op : llvm::reverse(chain.inserts))
    op.erase();
  if (chain.empty->use_empty())
    chain.empty.erase();
}

void sardonyx::assembleSlices(func::FuncOp func) {
  SmallVector<tensor::InsertSliceOp> inserts;
  func.walk([&](tensor::InsertSliceOp op) { inserts.push_back(op); });
  SmallVector<Chain> chains;
  for (tensor::InsertSliceOp op : inserts)
    if (std::optional<Chain> chain = findChain(op))
      chains.push_back(std::move(*chain));
  for (Chain &chain : chains)
    assemble(chain);
}
