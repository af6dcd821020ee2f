//===- LowerRows.cpp - Kernels that reduce rows ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Rows/RowsKernel.h"

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERROWS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {

struct LowerRowsPass : sardonyx::impl::NVLowerRowsBase<LowerRowsPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func))
      return;
    // Everything is a generic operation, but for fills.
    for (Operation &op : func.getBody().front())
      if (isa<linalg::LinalgOp, sdx::DenseOpInterface, scf::ForallOp>(op) &&
          !isa<linalg::GenericOp, linalg::FillOp>(op))
        return;
    KernelBody body(func);
    RowsKernel kernel(llvm::to_vector(func.getOps<linalg::GenericOp>()), body);
    SmallVector<Value> results;
    for (const KernelBody::Output &output : body.getOutputs())
      results.push_back(output.tensor);
    if (!kernel.isPossible(results))
      return;
    ImplicitLocOpBuilder b(func.getLoc(),
                           func.getBody().front().getTerminator());
    if (failed(kernel.findSizes(b)))
      return signalPassFailure();
    kernel.emit(b);
    body.eraseTensors();
  }
};

} // namespace
