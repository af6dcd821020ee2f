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
#include "Rows/RowsKernel.h"

#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

  bool hasWholeRows() const { return plan.hasWholeRows(); }
  int64_t countThreads() const { return plan.countThreads(); }
  /// Only where `condition` holds.
  void onlyIf(Value condition) { isWanted = condition; }

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

  MappedSource mapLhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    return mapMatrix(b, lhs, sizes.m, sizes.k, matmul.isBatched(), boxRows,
                     boxCols);
  }

  MappedSource mapRhs(ImplicitLocOpBuilder &b, int64_t boxRows,
                      int64_t boxCols) override {
    const bool isTransposed = matmul.getTransposed();
    return mapMatrix(b, rhs, isTransposed ? sizes.n : sizes.k,
                     isTransposed ? sizes.k : sizes.n, matmul.isRhsBatched(),
                     boxRows, boxCols);
  }

  /// One matrix, or one for each pair.
  MappedSource mapMatrix(ImplicitLocOpBuilder &b, Value memref, Value numRows,
                         Value numCols, bool isBatched, int64_t boxRows,
                         int64_t boxCols) {
    SmallVector<Value> extents = {numCols, numRows};
    std::function<Value()> findPair;
    if (isBatched) {
      extents.push_back(sizes.pairs);
      findPair = [this] { return pair; };
    }
    return MappedSource::matrix(b, memref, extents, {boxCols, boxRows},
                                types.areRounded(), findPair);
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
    KernelBody body(func);
    if (auto plan = func->getAttrOfType<FewRowsPlanAttr>(kPlanAttr)) {
      auto products = findProducts<sdx::MatmulOp>(func);
      if (products.empty())
        return;
      FewRows few(products, plan, body, rowsOf(products.front()));
      return lower(body, few.isPossible(), [&](auto &b) { few.emit(b); });
    }
    auto root = findProduct<sdx::MatmulOp>(func);
    if (!root)
      return;
    if (std::optional<MatmulPlanAttr> plan = getPlan(func, root)) {
      MatmulKernel tiles(root, *plan, body);
      if (hasRows(func))
        return lowerBeforeRows(func, root, tiles, body);
      lower(body, tiles.isPossible(),
            [&](auto &b) { emit(b, root, body, tiles); });
    }
  }

private:
  /// Reductions of the result's rows read the sums of all parts.
  void lowerBeforeRows(func::FuncOp func, sdx::MatmulOp op,
                       MatmulKernel &product, KernelBody &body) {
    RowsKernel rows(llvm::to_vector(func.getOps<linalg::GenericOp>()), body);
    rows.declare(op->getResult(0),
                 [&](ImplicitLocOpBuilder &b, ValueRange index) {
                   return product.hasWholeRows() ? product.loadSum(b, index)
                                                 : product.emitSum(b, index);
                 });
    SmallVector<Value> results;
    for (const KernelBody::Output &output : body.getOutputs())
      results.push_back(output.tensor);
    if (product.hasWholeRows())
      return lowerClusters(op, product, rows, body, results);
    const bool isPossible = !op.isBatched() &&
                            op.getInit().getType().hasStaticShape() &&
                            product.canLeaveSums() && rows.isPossible(results);
    lower(body, isPossible, [&](ImplicitLocOpBuilder &b) {
      rows.useStaticSizes(b);
      product.emitSumsOfParts(b);
      rows.emit(b);
      product.freeSums(b);
    });
  }

  /// The blocks of a cluster have whole rows of sums, and reduce them.
  void lowerClusters(sdx::MatmulOp op, MatmulKernel &product, RowsKernel &rows,
                     KernelBody &body, ArrayRef<Value> results) {
    const bool isPossible = product.canLeaveSums() &&
                            rows.isPossible(results) &&
                            rows.readsOwnRows(op->getResult(0));
    lower(body, isPossible, [&](ImplicitLocOpBuilder &b) {
      product.emitClusters(b, [&](Value thread, Value first, int64_t step,
                                  int64_t count, Value end) {
        rows.emitRowsOfWarps(b, thread, product.countThreads(), first, step,
                             count, end);
      });
    });
  }

  static int64_t rowsOf(sdx::MatmulOp op) {
    return op.getInit().getType().getDimSize(op.isBatched());
  }

  void lower(KernelBody &body, bool isPossible,
             llvm::function_ref<void(ImplicitLocOpBuilder &)> emit) {
    if (isPossible && failed(body.replaceWith(emit)))
      signalPassFailure();
  }

  /// Where the number of rows is open the host chooses: the other kernels have
  /// no blocks then.
  static void emit(ImplicitLocOpBuilder &b, sdx::MatmulOp op, KernelBody &body,
                   MatmulKernel &tiles) {
    std::optional<FewRowsPlanAttr> plan =
        chooseFewRows(op, getTargetOrDefault(op), /*mayBeOpen=*/true);
    if (!plan || !ShapedType::isDynamic(rowsOf(op)))
      return tiles.emit(b);
    FewRows one(op, *plan, body, 1), few(op, *plan, body, kFewRows);
    if (!one.isPossible())
      return tiles.emit(b);
    Indices i(b);
    Value rows = sizeOf(b, body.getBuffer(op.getLhs()), op.isBatched());
    auto isWithin = [&](int64_t least, int64_t most) {
      return i.both(i.less(i.constant(least - 1), rows),
                    i.less(rows, i.constant(most + 1)));
    };
    one.emit(b, isWithin(1, 1));
    few.emit(b, isWithin(2, kFewRows));
    tiles.onlyIf(i.less(i.constant(kFewRows), rows));
    tiles.emit(b);
  }
};

} // namespace
