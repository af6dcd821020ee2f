//===- PreparePools.cpp - Sums over windows as convolutions ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVPREPAREPOOLS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// A sum over windows.
struct WindowSum {
  Value input;
  SmallVector<int64_t> kernel, strides, dilations, padsBegin, padsEnd;

  int64_t span(size_t dim) const {
    return (kernel[dim] - 1) * dilations[dim] + 1;
  }
};

} // namespace

/// The factor of dimension `dim` in `expr`, or none.
static std::optional<int64_t> findFactor(AffineExpr expr, unsigned dim) {
  if (expr == getAffineDimExpr(dim, expr.getContext()))
    return 1;
  auto product = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!product || product.getKind() != AffineExprKind::Mul ||
      product.getLHS() != getAffineDimExpr(dim, expr.getContext()))
    return std::nullopt;
  auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
  return factor ? std::optional(factor.getValue()) : std::nullopt;
}

/// Whether the body adds the first input to the sum.
static bool isSum(linalg::GenericOp op) {
  Block *body = op.getBody();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  auto isElement = [&](Value value) {
    if (auto extend = value.getDefiningOp<arith::ExtFOp>())
      value = extend.getIn();
    return value == body->getArgument(0);
  };
  Value sum = body->getArgument(2);
  const size_t operations = body->getOperations().size();
  return operations <= 3 && ((add.getLhs() == sum && isElement(add.getRhs())) ||
                             (add.getRhs() == sum && isElement(add.getLhs())));
}

static std::optional<WindowSum> match(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumResults() != 1 || !isSum(op))
    return std::nullopt;
  auto input = dyn_cast<RankedTensorType>(op.getDpsInputs()[0].getType());
  auto kernel = dyn_cast<RankedTensorType>(op.getDpsInputs()[1].getType());
  if (!input || !kernel || !kernel.hasStaticShape() || input.getRank() < 3 ||
      input.getRank() > 5 || input.getRank() != kernel.getRank() + 2 ||
      input.isDynamicDim(1))
    return std::nullopt;
  const unsigned rank = kernel.getRank(), dims = 2 + 2 * rank;
  AffineMap window = op.getIndexingMapsArray()[0];
  MLIRContext *context = op.getContext();
  if (op.getNumLoops() != dims || op.getNumReductionLoops() != rank ||
      !op.getIndexingMapsArray()[1].isProjectedPermutation() ||
      op.getIndexingMapsArray()[2] !=
          AffineMap::getMultiDimIdentityMap(dims, context)
              .getMajorSubMap(2 + rank) ||
      window.getResult(0) != getAffineDimExpr(0, context) ||
      window.getResult(1) != getAffineDimExpr(1, context))
    return std::nullopt;
  WindowSum sum;
  sum.input = op.getDpsInputs()[0];
  for (unsigned i = 0; i < rank; ++i) {
    auto terms = dyn_cast<AffineBinaryOpExpr>(window.getResult(2 + i));
    if (!terms || terms.getKind() != AffineExprKind::Add ||
        op.getIndexingMapsArray()[1].getDimPosition(i) != 2 + rank + i)
      return std::nullopt;
    std::optional<int64_t> stride = findFactor(terms.getLHS(), 2 + i);
    std::optional<int64_t> dilation = findFactor(terms.getRHS(), 2 + rank + i);
    if (!stride || !dilation || *stride < 1 || *dilation < 1)
      return std::nullopt;
    sum.strides.push_back(*stride);
    sum.dilations.push_back(*dilation);
  }
  sum.kernel.assign(kernel.getShape().begin(), kernel.getShape().end());
  sum.padsBegin.assign(rank, 0);
  sum.padsEnd.assign(rank, 0);
  return sum;
}

/// Has the windows see what has been padded with zeros, where it is known how.
static void takePads(WindowSum &sum) {
  auto pad = sum.input.getDefiningOp<tensor::InsertSliceOp>();
  if (!pad || !isZeroFilled(pad.getDest()))
    return;
  ArrayRef<int64_t> inner = pad.getSourceType().getShape();
  ArrayRef<int64_t> outer = pad.getResultType().getShape();
  if (inner.size() != outer.size() || !pad.hasUnitStride())
    return;
  SmallVector<int64_t> begin, end;
  for (size_t dim = 0; dim < inner.size(); ++dim) {
    const int64_t offset = pad.getStaticOffsets()[dim];
    if (dim < 2) {
      // An open number of images is that of the source.
      if (offset != 0 || inner[dim] != outer[dim])
        return;
      continue;
    }
    if (ShapedType::isDynamic(inner[dim]) ||
        ShapedType::isDynamic(outer[dim]) || ShapedType::isDynamic(offset))
      return;
    begin.push_back(offset);
    end.push_back(outer[dim] - offset - inner[dim]);
  }
  sum.input = pad.getSource();
  sum.padsBegin = std::move(begin);
  sum.padsEnd = std::move(end);
}

/// Whether the windows are as many as fit into the image and its pads.
static bool fits(const WindowSum &sum, ShapedType result) {
  auto input = cast<ShapedType>(sum.input.getType());
  for (size_t i = 0; i < sum.kernel.size(); ++i) {
    const int64_t in = input.getDimSize(2 + i), out = result.getDimSize(2 + i);
    if (ShapedType::isDynamic(in) || ShapedType::isDynamic(out))
      continue;
    const int64_t room = in + sum.padsBegin[i] + sum.padsEnd[i] - sum.span(i);
    if (room < 0 || room / sum.strides[i] + 1 != out)
      return false;
  }
  return true;
}

static void replace(linalg::GenericOp op, const WindowSum &sum) {
  OpBuilder b(op);
  auto input = cast<RankedTensorType>(sum.input.getType());
  const int64_t channels = input.getDimSize(1);
  SmallVector<int64_t> shape = {channels, 1};
  shape.append(sum.kernel);
  auto element = cast<FloatType>(input.getElementType());
  auto type = RankedTensorType::get(shape, element);
  Value ones = arith::ConstantOp::create(
      b, op.getLoc(),
      DenseElementsAttr::get(type, APFloat(element.getFloatSemantics(), 1)));
  Value conv =
      sdx::ConvOp::create(b, op.getLoc(), sum.input, ones, op.getDpsInits()[0],
                          sum.strides, sum.dilations, sum.padsBegin,
                          sum.padsEnd, channels, /*exact=*/false)
          .getResult();
  op.getResult(0).replaceAllUsesWith(conv);
  op.erase();
}

namespace {

struct PreparePoolsPass : sardonyx::impl::NVPreparePoolsBase<PreparePoolsPass> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) { ops.push_back(op); });
    for (linalg::GenericOp op : ops) {
      std::optional<WindowSum> sum = match(op);
      if (!sum)
        continue;
      takePads(*sum);
      if (fits(*sum, cast<ShapedType>(op.getResult(0).getType())))
        replace(op, *sum);
    }
  }
};

} // namespace
