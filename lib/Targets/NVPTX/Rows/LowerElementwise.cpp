//===- LowerElementwise.cpp - Kernels of elementwise operations -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread computes neighbours of all results: as many as sixteen bytes of the
// widest elements hold, where rows are a multiple of that.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Kernel/PointEvaluator.h"

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVLOWERELEMENTWISE
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static constexpr int64_t kThreads = 256;
/// Bytes that a thread reads and writes at a time.
static constexpr int64_t kBytes = 16;

namespace {

class ElementwiseKernel {
public:
  ElementwiseKernel(func::FuncOp func, KernelBody &body)
      : func(func), body(body), points(body) {}

  /// Whether each result has the shape of the first, and can be computed
  /// element by element. Of open shapes that is sure of the results of one
  /// operation.
  bool isPossible() {
    ArrayRef<KernelBody::Output> outputs = body.getOutputs();
    if (outputs.empty())
      return false;
    auto shapeOf = [](const KernelBody::Output &output) {
      return cast<MemRefType>(output.memref.getType()).getShape();
    };
    const bool isOpen = ShapedType::isDynamicShape(shapeOf(outputs.front()));
    if (shapeOf(outputs.front()).empty() || (isOpen && !hasOneDomain()))
      return false;
    return llvm::all_of(outputs, [&](const KernelBody::Output &output) {
      return shapeOf(output) == shapeOf(outputs.front()) &&
             points.canEvaluate(output.tensor);
    });
  }

  void emit(ImplicitLocOpBuilder &b) {
    Indices i(b);
    auto type = cast<MemRefType>(body.getOutputs().front().memref.getType());
    const int64_t width = chooseWidth(type.getShape().back());
    SmallVector<Value> sizes;
    Value count = i.constant(1);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Value size = sizeOf(b, body.getOutputs().front().memref, dim);
      if (dim + 1 == type.getRank())
        size = i.div(size, width);
      sizes.push_back(size);
      count = i.mul(count, size);
    }
    OpBuilder::InsertionGuard guard(b);
    scf::ParallelOp loop =
        startBlocks(b, i.ceilDiv(count, kThreads), kThreads, "elementwise");
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    Value number = i.add(i.mul(loop.getInductionVars()[0], kThreads), thread);
    auto some = scf::IfOp::create(b, i.less(number, count),
                                  /*withElseRegion=*/false);
    b.setInsertionPoint(some.thenYield());
    SmallVector<Value> first = i.unflatten(number, sizes);
    first.back() = i.mul(first.back(), width);
    emitPoints(b, first, width);
  }

private:
  /// Whether one operation computes all results, so that they have its sizes.
  bool hasOneDomain() {
    return llvm::hasSingleElement(func.getOps<linalg::GenericOp>());
  }

  /// Neighbours are read together where rows of all are a multiple of them.
  int64_t chooseWidth(int64_t row) {
    if (ShapedType::isDynamic(row))
      return 1;
    int64_t bytes = 1;
    auto widen = [&](Type type) {
      if (auto buffer = dyn_cast<MemRefType>(type))
        bytes =
            std::max<int64_t>(bytes, (buffer.getElementTypeBitWidth() + 7) / 8);
    };
    for (Type type : func.getArgumentTypes())
      widen(type);
    int64_t width = std::max<int64_t>(1, kBytes / bytes);
    while (row % width)
      width /= 2;
    return width;
  }

  void emitPoints(ImplicitLocOpBuilder &b, ArrayRef<Value> first,
                  int64_t width) {
    Indices i(b);
    SmallVector<SmallVector<Value>> indices;
    for (int64_t j = 0; j < width; ++j) {
      SmallVector<Value> &index = indices.emplace_back(first);
      index.back() = i.add(index.back(), j);
    }
    SmallVector<PointEvaluator::Point> known(width);
    points.store(b, body.getOutputs(), indices, known);
  }

  func::FuncOp func;
  KernelBody &body;
  PointEvaluator points;
};

struct LowerElementwisePass
    : sardonyx::impl::NVLowerElementwiseBase<LowerElementwisePass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!mayHaveBlocks(func))
      return;
    for (Operation &op : func.getBody().front()) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      const bool isOther =
          !generic && !isa<linalg::FillOp>(op) &&
          isa<linalg::LinalgOp, sdx::DenseOpInterface, scf::ForallOp>(op);
      if (isOther || (generic && generic.getNumReductionLoops() != 0) ||
          (generic && !generic.hasPureTensorSemantics()))
        return;
    }
    KernelBody body(func);
    ElementwiseKernel kernel(func, body);
    if (kernel.isPossible() &&
        failed(body.replaceWith([&](auto &b) { kernel.emit(b); })))
      signalPassFailure();
  }
};

} // namespace
