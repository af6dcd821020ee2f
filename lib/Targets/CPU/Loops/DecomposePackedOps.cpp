//===- DecomposePackedOps.cpp - Packed operations as loop nests -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loops/PlainOperands.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUDECOMPOSEPACKEDOPS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The loop nest that `op`, which nothing reads, stands for.
template <typename OpT>
static Value decomposeAndErase(ImplicitLocOpBuilder &b, OpT op) {
  Value result = decomposeToLinalg(b, cast<sdx::DenseOpInterface>(*op));
  op.erase();
  return result;
}

static Value decomposeMatmul(ImplicitLocOpBuilder &b, PackedMatmulOp op) {
  auto matmul = sdx::MatmulOp::create(b, op.getLhs(), unpackRhs(b, op),
                                      op.getInit(), /*transposed=*/true);
  matmul.setLhsUnsigned(op.getPacking().getElement() == PackedElement::I8);
  return decomposeAndErase(b, matmul);
}

static Value decomposeConv(ImplicitLocOpBuilder &b, ConvOp op) {
  return decomposeAndErase(
      b,
      sdx::ConvOp::create(b, op.getInput(), unpackFilters(b, op), op.getInit(),
                          op.getStrides(), op.getDilations(), op.getPadsBegin(),
                          op.getPadsEnd(), op.getGroup(), op.getExact()));
}

/// What `op` computes, as loop nests; null where it is no dense operation.
static Value decompose(ImplicitLocOpBuilder &b, sdx::DenseOpInterface op) {
  if (auto matmul = dyn_cast<PackedMatmulOp>(*op))
    return decomposeMatmul(b, matmul);
  if (auto conv = dyn_cast<ConvOp>(*op))
    return decomposeConv(b, conv);
  if (auto conv = dyn_cast<NarrowConvOp>(*op))
    return decomposeNarrow(b, conv);
  if (auto conv = dyn_cast<DepthwiseNarrowConvOp>(*op))
    return decomposeNarrow(b, conv);
  if (auto pool = dyn_cast<ChannelsLastMaxPoolOp>(*op))
    return decomposeNarrow(b, pool);
  if (auto pack = dyn_cast<PackRhsOp>(*op))
    return packRhs(b, pack);
  if (auto pack = dyn_cast<PackConvWeightsOp>(*op))
    return packFilters(b, pack);
  return decomposeToLinalg(b, op);
}

namespace {

struct DecomposePackedOpsPass
    : sardonyx::impl::CPUDecomposePackedOpsBase<DecomposePackedOpsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration() ||
        !func->hasAttrOfType<LoopsAttr>(kPlanAttr))
      return;
    SmallVector<sdx::DenseOpInterface> ops;
    func.walk([&](sdx::DenseOpInterface op) {
      if (op->getNumResults() == 1)
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (sdx::DenseOpInterface op : ops) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      if (Value result = decompose(b, op))
        rewriter.replaceOp(op, result);
    }
  }
};

} // namespace
