//===- ShareInitPackingKernels.cpp - One for all sizes -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most weights have sizes of their own, and a network of fifty convolutions had
// as many kernels that pack them, move them or compute on their elements: a
// fifth of its code, each of which runs once for each session at most.
//
//===----------------------------------------------------------------------===//

#include "Layout/Layout.h"
#include "Plan/RunsOnce.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSHAREINITPACKINGKERNELS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Whether code for all sizes does what `op` does, to weights that it does not
/// look at.
static bool takesAllSizes(Operation &op) {
  if (auto rhs = dyn_cast<cpu::PackRhsOp>(op))
    return !rhs.getScales();
  if (auto weights = dyn_cast<cpu::PackConvWeightsOp>(op))
    return !weights.splits();
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return generic.getNumLoops() == generic.getNumParallelLoops() &&
           generic.getNumDpsInits() == 1 && !generic.hasIndexSemantics() &&
           llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
             return map.isProjectedPermutation();
           });
  return isa<linalg::TransposeOp, linalg::FillOp>(op);
}

/// Whether code for any number in the place of this one is as good: zeros tell
/// how sums begin, and functions may look at what they are given.
static bool mayBeAnyNumber(arith::ConstantOp number) {
  return !matchPattern(number.getResult(), m_Zero()) &&
         !matchPattern(number.getResult(), m_AnyZeroFloat()) &&
         llvm::all_of(number->getUsers(), [](Operation *user) {
           return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp,
                      arith::DivFOp, linalg::FillOp>(user);
         });
}

static bool isNumber(Operation &op) {
  return isa<arith::ConstantOp>(op) && op.getResult(0).getType().isIntOrFloat();
}

/// The only operation, beside numbers, of a kernel that makes something of
/// weights by code for all sizes; null for other kernels.
static Operation *findPacking(func::FuncOp kernel) {
  if (!kernel->hasAttr(sdx::kKernelAttr) || kernel.isDeclaration())
    return nullptr;
  Operation *packing = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<bufferization::ToTensorOp, tensor::EmptyOp,
            bufferization::MaterializeInDestinationOp>(op) ||
        isNumber(op))
      continue;
    if (packing || !takesAllSizes(op))
      return nullptr;
    packing = &op;
  }
  auto dps = dyn_cast_or_null<DestinationStyleOpInterface>(packing);
  if (!dps || !dps.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>())
    return nullptr;
  // Its operands are the arguments, in their order, and numbers.
  unsigned next = 0;
  for (Value input : dps.getDpsInputs()) {
    auto tensor = input.getDefiningOp<bufferization::ToTensorOp>();
    if (tensor ? next == kernel.getNumArguments() ||
                     tensor.getBuffer() != kernel.getArgument(next++)
               : !input.getDefiningOp<arith::ConstantOp>())
      return nullptr;
  }
  return next + 1 == kernel.getNumArguments() ? packing : nullptr;
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

/// How many of the last dimensions that `packing` reads, and writes, keep their
/// sizes: the width of a panel is that of registers, Winograd's algorithm is
/// for kernels of 3x3, and few elements beside each other move together.
static std::pair<int64_t, int64_t> countKept(Operation *packing) {
  if (auto weights = dyn_cast<cpu::PackConvWeightsOp>(packing))
    return {weights.getAlgorithm() ? 2 : 0, 1};
  if (isa<cpu::PackRhsOp>(packing))
    return {0, 1};
  auto transpose = dyn_cast<linalg::TransposeOp>(packing);
  if (!transpose)
    return {0, 0};
  constexpr int64_t kFew = 16;
  const int64_t last = transpose.getPermutation().size() - 1;
  const bool isKept = transpose.getPermutation().back() == last &&
                      transpose.getInit().getType().getDimSize(last) <= kFew;
  return {isKept, isKept};
}

/// Makes the kernel of `packing` anew, for buffers of any size and, behind the
/// other inputs, for any numbers; those that it had are returned.
static SmallVector<TypedAttr> openSizesOf(func::FuncOp kernel,
                                          Operation *packing) {
  Block &entry = kernel.getBody().front();
  Location loc = packing->getLoc();
  auto weights = dyn_cast<cpu::PackConvWeightsOp>(packing);
  // It is for one group.
  const bool isWinograd = weights && weights.getAlgorithm();
  auto [keptOfSource, keptOfResult] = countKept(packing);
  SmallVector<Operation *> old;
  SmallVector<arith::ConstantOp> numbers;
  for (Operation &op : entry) {
    old.push_back(&op);
    if (isNumber(op))
      numbers.push_back(cast<arith::ConstantOp>(op));
  }

  SmallVector<Value> buffers(kernel.getArguments());
  for (Value buffer : ArrayRef(buffers).drop_back())
    buffer.setType(openSizes(buffer.getType(), 0, keptOfSource));
  Value to = buffers.back();
  to.setType(openSizes(to.getType(), isWinograd ? 1 : 0, keptOfResult));
  OpBuilder b = OpBuilder::atBlockEnd(&entry);
  IRMapping map;
  SmallVector<TypedAttr> values;
  for (arith::ConstantOp number : numbers) {
    if (!mayBeAnyNumber(number)) {
      map.map(number.getResult(), b.clone(*number)->getResult(0));
      continue;
    }
    values.push_back(number.getValue());
    map.map(number.getResult(),
            entry.insertArgument(entry.getNumArguments() - 1, number.getType(),
                                 number.getLoc()));
  }
  auto dps = cast<DestinationStyleOpInterface>(packing);
  unsigned next = 0;
  for (Value input : dps.getDpsInputs())
    if (input.getDefiningOp<bufferization::ToTensorOp>()) {
      Value from = buffers[next++];
      map.map(input,
              bufferization::ToTensorOp::create(
                  b, loc, memref::getTensorTypeFromMemRefType(from.getType()),
                  from, /*restrict=*/true)
                  .getResult());
    }
  Value init = tensor::EmptyOp::create(
      b, loc, memref::getMixedSizes(b, loc, to), getElementTypeOrSelf(to));
  map.map(dps.getDpsInits()[0], init);
  Operation *opened = b.clone(*packing, map);
  opened->getResult(0).setType(init.getType());
  bufferization::MaterializeInDestinationOp::create(
      b, loc, Type(), opened->getResult(0), to, /*restrict=*/true,
      /*writable=*/true);
  func::ReturnOp::create(b, loc);
  for (Operation *op : llvm::reverse(old))
    op->erase();
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), entry.getArgumentTypes(), {}));
  kernel->setAttr(kRunsOnceAttr, b.getUnitAttr());
  return values;
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
      const SmallVector<TypedAttr> values = openSizesOf(kernel, packing);
      for (sdx::CallOp call : calls.lookup(kernel.getName())) {
        OpBuilder b(call);
        SmallVector<Value> numbers;
        for (TypedAttr value : values)
          numbers.push_back(arith::ConstantOp::create(b, call.getLoc(), value));
        call.getInsMutable().append(numbers);
        for (auto [operand, type] :
             llvm::zip_equal(call->getOpOperands(), kernel.getArgumentTypes()))
          if (isa<MemRefType>(type))
            operand.set(
                memref::CastOp::create(b, call.getLoc(), type, operand.get()));
      }
    }
  }
};

} // namespace
