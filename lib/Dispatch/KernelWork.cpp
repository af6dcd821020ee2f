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
#include "llvm/ADT/StringExtras.h"

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

  void multiplyAllDims(Value shaped) {
    int64_t rank = cast<ShapedType>(shaped.getType()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim)
      multiplyDim(shaped, dim);
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
  } else if (auto product = dyn_cast<sdx::PackedMatmulOp>(op)) {
    TermBuilder term(2);
    term.multiplyAllDims(product.getInit());
    term.multiplyDim(product.getLhs(),
                     product.getLhs().getType().getRank() - 1);
    term.addTo(flops);
  } else if (auto conv = dyn_cast<sdx::ConvOp>(op)) {
    ShapedType input = conv.getInput().getType();
    TermBuilder term(2);
    term.multiplyAllDims(conv.getInit());
    for (int64_t size : conv.getKernelShape())
      term.multiply(size);
    // Channels of a group are known where there are several.
    if (conv.getGroup() == 1)
      term.multiplyDim(conv.getInput(), 1);
    else
      term.multiply(
          input.isDynamicDim(1) ? 0 : input.getDimSize(1) / conv.getGroup());
    term.addTo(flops);
  } else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op)) {
    TermBuilder term(1);
    term.multiplyAllDims(pool.getInit());
    for (int64_t size : pool.getKernelShape())
      term.multiply(size);
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

static std::string times(ArrayRef<int64_t> sizes) {
  return llvm::join(
      llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }),
      "x");
}

static bool isOne(int64_t number) { return number == 1; }

template <typename OpT>
static std::string describeWindow(StringRef kind, OpT op) {
  std::string text = (kind + " " + times(op.getKernelShape())).str();
  if (!llvm::all_of(op.getStrides(), isOne))
    text += " stride " + times(op.getStrides());
  return text;
}

static std::string describeConv(sdx::ConvOp conv) {
  std::string text = describeWindow("conv", conv);
  if (!llvm::all_of(conv.getDilations(), isOne))
    text += " dilation " + times(conv.getDilations());
  if (conv.getGroup() != 1)
    text += " groups " + std::to_string(conv.getGroup());
  if (std::optional<int64_t> side = conv.getWinograd())
    text += ", winograd " + times({*side, *side});
  if (conv.getScales())
    text += ", 24-bit weights";
  if (conv.hasSplitWeights())
    text += ", parts of bf16";
  return text;
}

std::string sardonyx::describeForm(func::FuncOp kernel) {
  std::string text;
  kernel.walk([&](Operation *op) {
    if (auto conv = dyn_cast<sdx::ConvOp>(op))
      text = describeConv(conv);
    else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op))
      text = describeWindow("max pool", pool);
    else if (auto product = dyn_cast<sdx::PackedMatmulOp>(op))
      text = product.isOfThreeBytes() ? "product of 24-bit weights"
             : product.isOfTriples()  ? "product of 21-bit weights"
             : product.getScales()
                 ? "product of " +
                       std::to_string(8 / product.getNumbersPerByte()) +
                       "-bit weights"
             : product.getDepthGroup() == 1 ? "product"
             : product.getDepthGroup() == 2 ? "product of bf16"
                                            : "product of bytes";
    else
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  if (!text.empty())
    return text;
  // The name says it: a number, then the kind.
  StringRef name = kernel.getName();
  return name.drop_front(std::min(name.find('_') + 1, name.size())).str();
}
