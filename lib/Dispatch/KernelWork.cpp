//===- KernelWork.cpp - What a kernel computes and moves ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelWork.h"
#include "Utils.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// Multiplies a term by sizes of values of a kernel's body. One that hangs on
/// no argument makes the term unknown.
class TermBuilder {
public:
  explicit TermBuilder(int64_t factor) { term.factor = factor; }

  void multiply(int64_t number) { term.factor *= number; }

  void multiplyDim(Value shaped, int64_t dim) {
    auto type = dyn_cast<ShapedType>(shaped.getType());
    if (!type || !type.hasRank())
      return giveUp();
    if (!type.isDynamicDim(dim))
      return multiply(type.getDimSize(dim));
    if (auto argument = dyn_cast<BlockArgument>(shaped))
      return isArgument(argument) ? add(argument, dim) : giveUp();
    Operation *def = shaped.getDefiningOp();
    if (auto toTensor = dyn_cast<bufferization::ToTensorOp>(def))
      return multiplyDim(toTensor.getBuffer(), dim);
    if (auto cast = dyn_cast<tensor::CastOp>(def))
      return multiplyDim(cast.getSource(), dim);
    if (auto empty = dyn_cast<tensor::EmptyOp>(def))
      return multiplyIndex(empty.getDynamicSize(dim));
    if (auto op = dyn_cast<DestinationStyleOpInterface>(def))
      return multiplyDim(op.getTiedOpOperand(cast<OpResult>(shaped))->get(),
                         dim);
    giveUp();
  }

  /// The trips of a structured operation's loops, each a dimension of one of
  /// its operands.
  void multiplyLoops(linalg::LinalgOp op) {
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
      bool found = false;
      for (OpOperand &operand : op->getOpOperands()) {
        AffineMap map = op.getMatchingIndexingMap(&operand);
        std::optional<unsigned> dim =
            map.getResultPosition(getAffineDimExpr(loop, op.getContext()));
        if (!dim)
          continue;
        multiplyDim(operand.get(), *dim);
        found = true;
        break;
      }
      if (!found)
        giveUp();
    }
  }

  void addTo(SmallVectorImpl<WorkTerm> &sum) const {
    if (term.factor != 0)
      sum.push_back(term);
  }

private:
  static bool isArgument(BlockArgument value) {
    return isa<func::FuncOp>(value.getOwner()->getParentOp());
  }
  void add(BlockArgument argument, std::optional<int64_t> dim) {
    term.sizes.push_back({argument.getArgNumber(), dim});
  }
  void giveUp() { term.factor = 0; }

  void multiplyIndex(Value index) {
    if (std::optional<int64_t> known = getConstantIntValue(index))
      return multiply(*known);
    if (auto argument = dyn_cast<BlockArgument>(index))
      return isArgument(argument) ? add(argument, std::nullopt) : giveUp();
    if (auto dim = index.getDefiningOp<memref::DimOp>())
      if (std::optional<int64_t> number = dim.getConstantIndex())
        return multiplyDim(dim.getSource(), *number);
    giveUp();
  }

  WorkTerm term;
};

} // namespace

/// Floating-point operations of one trip through the body of `op`; a comparison
/// and the choice that it makes are one.
static int64_t countScalarFlops(linalg::LinalgOp op) {
  int64_t count = 0;
  op.getBlock()->walk([&](Operation *inner) {
    StringRef dialect = inner->getName().getDialectNamespace();
    if ((dialect != "arith" && dialect != "math") ||
        inner->getNumResults() != 1 ||
        !isa<FloatType>(inner->getResult(0).getType()) ||
        isa<CastOpInterface, arith::ConstantOp>(inner))
      return;
    count += isa<math::FmaOp>(inner) ? 2 : 1;
  });
  return count;
}

static void countFlops(Operation *op, SmallVectorImpl<WorkTerm> &flops) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    TermBuilder term(countScalarFlops(structured));
    term.multiplyLoops(structured);
    term.addTo(flops);
  } else if (auto dense = dyn_cast<sdx::DenseOpInterface>(op)) {
    sdx::DenseWork work = dense.countFlops();
    TermBuilder term(work.factor);
    for (auto [shaped, dim] : work.sizes)
      term.multiplyDim(shaped, dim);
    term.addTo(flops);
  }
}

/// The bytes of one element; 0 for what is no number.
static int64_t elementBytes(Type type) {
  return type.isIntOrFloat() ? (type.getIntOrFloatBitWidth() + 7) / 8 : 0;
}

WorkTerm sardonyx::countBytes(MemRefType type, unsigned argument) {
  WorkTerm term;
  term.factor = elementBytes(type.getElementType());
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      term.sizes.push_back({argument, static_cast<int64_t>(dim)});
    else
      term.factor *= size;
  return term;
}

/// What a kernel reads or writes of one of its arguments.
static void addAccessed(BlockArgument argument,
                        SmallVectorImpl<WorkTerm> &bytes) {
  auto type = dyn_cast<MemRefType>(argument.getType());
  if (!type)
    return;
  // Elements that computed indices pick, and whether that is all that is read.
  SmallVector<WorkTerm> picked;
  bool onlyPicked = false;
  for (Operation *user : argument.getUsers()) {
    auto tensor = dyn_cast<bufferization::ToTensorOp>(user);
    if (!tensor)
      continue;
    onlyPicked = !tensor->use_empty();
    for (Operation *reader : tensor->getUsers()) {
      auto extract = dyn_cast<tensor::ExtractOp>(reader);
      auto loops =
          extract ? extract->getParentOfType<linalg::LinalgOp>() : nullptr;
      if (!loops) {
        onlyPicked &= isa<tensor::DimOp>(reader);
        continue;
      }
      TermBuilder term(elementBytes(type.getElementType()));
      term.multiplyLoops(loops);
      term.addTo(picked);
    }
  }
  if (onlyPicked && !picked.empty()) {
    bytes.append(picked.begin(), picked.end());
    return;
  }
  bytes.push_back(countBytes(type, argument.getArgNumber()));
}

KernelWork sardonyx::countWork(func::FuncOp kernel) {
  KernelWork work;
  kernel.walk([&](Operation *op) { countFlops(op, work.flops); });
  for (BlockArgument argument : kernel.getArguments())
    addAccessed(argument, work.bytes);
  return work;
}

std::string sardonyx::describeForm(func::FuncOp kernel) {
  std::string text;
  kernel.walk([&](Operation *op) {
    if (auto dense = dyn_cast<sdx::DenseOpInterface>(op))
      text = dense.describeForm();
    return text.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (text.empty()) {
    // The name says it: a number, then the kind.
    StringRef name = kernel.getName();
    text = name.drop_front(std::min(name.find('_') + 1, name.size())).str();
  }
  if (auto reason = kernel->getAttrOfType<StringAttr>(kPlanReasonAttr))
    text += ", by plain loops: " + reason.str();
  return text;
}
