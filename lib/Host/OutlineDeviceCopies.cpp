//===- OutlineDeviceCopies.cpp - Strided copies on a device are kernels ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Host/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXOUTLINEDEVICECOPIES
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// The type of `type` with all of its sizes and strides open, and an open
/// offset.
static MemRefType openType(MemRefType type) {
  SmallVector<int64_t> open(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, open);
  return MemRefType::get(open, type.getElementType(), layout,
                         type.getMemorySpace());
}

namespace {

struct OutlineDeviceCopiesPass
    : sardonyx::impl::SDXOutlineDeviceCopiesBase<OutlineDeviceCopiesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable table(module);
    symbols = &table;
    kernels.clear();
    SmallVector<memref::CopyOp> copies;
    for (auto func : module.getOps<func::FuncOp>())
      if (isHostFunction(func))
        func.walk([&](memref::CopyOp copy) {
          auto source = cast<MemRefType>(copy.getSource().getType());
          auto target = cast<MemRefType>(copy.getTarget().getType());
          if (source.getMemorySpace() &&
              source.getMemorySpace() == target.getMemorySpace() &&
              !(sdx::isContiguous(source) && sdx::isContiguous(target)))
            copies.push_back(copy);
        });
    for (memref::CopyOp copy : copies)
      outline(copy);
  }

private:
  void outline(memref::CopyOp copy) {
    OpBuilder b(copy);
    Location loc = copy.getLoc();
    MemRefType open = openType(cast<MemRefType>(copy.getSource().getType()));
    Value source = memref::CastOp::create(b, loc, open, copy.getSource());
    Value target = memref::CastOp::create(b, loc, open, copy.getTarget());
    sdx::CallOp::create(b, loc, kernelFor(open, loc).getName(), source, target);
    copy.erase();
  }

  func::FuncOp kernelFor(MemRefType type, Location loc) {
    func::FuncOp &kernel = kernels[type];
    if (kernel)
      return kernel;
    auto b = OpBuilder::atBlockEnd(getOperation().getBody());
    std::string name = "copy_" + std::to_string(type.getRank()) + "d";
    kernel =
        func::FuncOp::create(b, loc, name, b.getFunctionType({type, type}, {}));
    kernel.setPrivate();
    kernel->setAttr(sdx::kKernelAttr, b.getUnitAttr());
    symbols->insert(kernel); // which makes the name one of its own
    Block *body = kernel.addEntryBlock();
    b.setInsertionPointToStart(body);
    AffineMap map = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> loops(type.getRank(),
                                           utils::IteratorType::parallel);
    linalg::GenericOp::create(
        b, loc, body->getArgument(0), body->getArgument(1),
        ArrayRef<AffineMap>{map, map}, loops,
        [](OpBuilder &b, Location loc, ValueRange values) {
          linalg::YieldOp::create(b, loc, values.front());
        });
    func::ReturnOp::create(b, loc);
    return kernel;
  }

  SymbolTable *symbols = nullptr;
  DenseMap<Type, func::FuncOp> kernels;
};

} // namespace
