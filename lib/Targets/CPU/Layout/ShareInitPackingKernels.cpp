//===- ShareInitPackingKernels.cpp - One for all sizes -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most weights have sizes of their own, and a network of fifty convolutions had
// as many kernels that pack them: a fifth of its code, each of which runs once
// for each session at most.
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSHAREINITPACKINGKERNELS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The only operation of a kernel that packs weights without a look at what
/// they are, whose code asks for no size; null for other kernels.
static Operation *findPacking(func::FuncOp kernel) {
  if (!kernel->hasAttr(sdx::kKernelAttr) || kernel.isDeclaration())
    return nullptr;
  Operation *packing = nullptr;
  for (Operation &op : kernel.getBody().front()) {
    auto rhs = dyn_cast<cpu::PackRhsOp>(op);
    auto weights = dyn_cast<cpu::PackConvWeightsOp>(op);
    if (!rhs && !weights)
      continue;
    bool isPlain = rhs ? !rhs.getScales() : !weights.splits();
    if (packing || !isPlain)
      return nullptr;
    packing = &op;
  }
  return kernel.getNumArguments() == 2 ? packing : nullptr;
}

/// Whether a call passes whole buffers only.
static bool passesBuffers(sdx::CallOp call) {
  return llvm::all_of(call->getOperandTypes(), [](Type type) {
    auto buffer = dyn_cast<MemRefType>(type);
    return buffer && buffer.getLayout().isIdentity();
  });
}

/// `type` with all sizes open, but for the first and the last ones that are
/// known.
static MemRefType openSizes(Type type, int64_t first, int64_t last) {
  auto buffer = cast<MemRefType>(type);
  SmallVector<int64_t> shape(buffer.getShape());
  std::fill(shape.begin() + first, shape.end() - last, ShapedType::kDynamic);
  return MemRefType::get(shape, buffer.getElementType());
}

/// Makes the kernel of `packing` anew, for buffers of any size.
static void openSizesOf(func::FuncOp kernel, Operation *packing) {
  Block &entry = kernel.getBody().front();
  Location loc = packing->getLoc();
  auto weights = dyn_cast<cpu::PackConvWeightsOp>(packing);
  const bool isWinograd = weights && weights.getAlgorithm();
  OperationState opened(loc, packing->getName());
  opened.addAttributes(packing->getAttrs());
  entry.clear();

  // The width of a panel is that of registers; Winograd's algorithm is for
  // kernels of 3x3 and for one group.
  Value from = entry.getArgument(0), to = entry.getArgument(1);
  from.setType(openSizes(from.getType(), 0, isWinograd ? 2 : 0));
  to.setType(openSizes(to.getType(), isWinograd ? 1 : 0, 1));
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), entry.getArgumentTypes(), {}));
  OpBuilder b = OpBuilder::atBlockEnd(&entry);
  Value source = bufferization::ToTensorOp::create(
      b, loc, memref::getTensorTypeFromMemRefType(from.getType()), from,
      /*restrict=*/true);
  Value init = tensor::EmptyOp::create(
      b, loc, memref::getMixedSizes(b, loc, to), getElementTypeOrSelf(to));
  opened.addOperands({source, init});
  opened.addTypes(init.getType());
  bufferization::MaterializeInDestinationOp::create(
      b, loc, Type(), b.create(opened)->getResult(0), to, /*restrict=*/true,
      /*writable=*/true);
  func::ReturnOp::create(b, loc);
}

namespace {

struct ShareInitPackingKernelsPass
    : sardonyx::impl::CPUShareInitPackingKernelsBase<
          ShareInitPackingKernelsPass> {
  void runOnOperation() override {
    // Kernels that run again and again keep their sizes, and so do those of a
    // piece of a buffer, which is no buffer of other sizes.
    DenseMap<StringRef, SmallVector<sdx::CallOp, 1>> calls;
    llvm::StringSet<> keepsSizes;
    for (auto func : getOperation().getOps<func::FuncOp>())
      func.walk([&](sdx::CallOp call) {
        calls[call.getCallee()].push_back(call);
        if (func.getName() != "init" || !passesBuffers(call))
          keepsSizes.insert(call.getCallee());
      });
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      Operation *packing = findPacking(kernel);
      if (!packing || keepsSizes.contains(kernel.getName()))
        continue;
      openSizesOf(kernel, packing);
      for (sdx::CallOp call : calls.lookup(kernel.getName())) {
        OpBuilder b(call);
        for (auto [operand, type] :
             llvm::zip_equal(call->getOpOperands(), kernel.getArgumentTypes()))
          operand.set(
              memref::CastOp::create(b, call.getLoc(), type, operand.get()));
      }
    }
  }
};

} // namespace
