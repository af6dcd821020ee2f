//===- LowerMatmul.cpp - Matrix products by tiles of blocks ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Matmul/FewRows.h"
#include "Matmul/MatmulPlan.h"
#include "Matmul/ProductKernel.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERMATMUL
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {

class MatmulKernel : public ProductKernel {
public:
  MatmulKernel(sdx::MatmulOp op, MatmulPlanAttr plan, KernelBody &body)
      : ProductKernel(cast<sdx::DenseOpInterface>(op.getOperation()),
                      getProductTypes(op), plan, body),
        matmul(op) {}

private:
  bool hasOperands() override {
    return KernelBody::hasBuffer(matmul.getLhs()) &&
           KernelBody::hasBuffer(matmul.getRhs());
  }

  Sizes findSizes(ImplicitLocOpBuilder &b) override {
    lhs = body.getBuffer(matmul.getLhs());
    rhs = body.getBuffer(matmul.getRhs());
    const int64_t first = matmul.isBatched();
    sizes.pairs = first ? sizeOf(b, lhs, 0) : Indices(b).constant(1);
    sizes.m = sizeOf(b, lhs, first);
    sizes.k = sizeOf(b, lhs, first + 1);
    if (!getConstantIntValue(sizes.k))
      sizes.k = sizeOf(b, rhs, matmul.getDepthDim());
    sizes.n = sizeOf(b, rhs, matmul.getColumnDim());
    return sizes;
  }

  TileSource findLhs(ImplicitLocOpBuilder &b, Value pair) override {
    return TileSource::matrix(lhs, matmul.isBatched() ? pair : Value(), sizes.m,
                              sizes.k);
  }

  TileSource findRhs(ImplicitLocOpBuilder &b, Value pair) override {
    Value batch = matmul.isRhsBatched() ? pair : Value();
    return matmul.getTransposed()
               ? TileSource::matrix(rhs, batch, sizes.n, sizes.k)
               : TileSource::matrix(rhs, batch, sizes.k, sizes.n);
  }

  SmallVector<Value> findResult(ImplicitLocOpBuilder &b, Value pair, Value m,
                                Value n) override {
    SmallVector<Value> index;
    if (matmul.isBatched())
      index.push_back(pair);
    index.append({m, n});
    return index;
  }

  sdx::MatmulOp matmul;
  Value lhs, rhs;
  Sizes sizes;
};

struct LowerMatmulPass : sardonyx::impl::NVLowerMatmulBase<LowerMatmulPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    auto root = findProduct<sdx::MatmulOp>(func);
    if (!root)
      return;
    if (auto plan = func->getAttrOfType<FewRowsPlanAttr>(kPlanAttr))
      lower<FewRows>(func, root, plan);
    else if (std::optional<MatmulPlanAttr> plan = getPlan(func, root))
      lower<MatmulKernel>(func, root, *plan);
  }

private:
  template <typename KernelT, typename PlanT>
  void lower(func::FuncOp func, sdx::MatmulOp root, PlanT plan) {
    KernelBody body(func);
    KernelT kernel(root, plan, body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
