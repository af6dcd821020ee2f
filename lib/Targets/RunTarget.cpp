//===- RunTarget.cpp - Run the passes of a module's target ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXRUNTARGET
#include "sardonyx/Targets/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

llvm::cl::ValuesClass sardonyx::getNumericsValues() {
  return llvm::cl::values(
      clEnumValN(Numerics::Exact, "exact", "plain sums"),
      clEnumValN(Numerics::F32, "f32", "errors within twice theirs"),
      clEnumValN(Numerics::Fast, "fast", "also what loses more"));
}

llvm::cl::ValuesClass sardonyx::getPrecisionValues() {
  return llvm::cl::values(
      clEnumValN(Precision::F32, "f32", "operands as they are"),
      clEnumValN(Precision::TF32, "tf32", "operands rounded to 11 bits"),
      clEnumValN(Precision::F16, "f16", "operands rounded to f16"),
      clEnumValN(Precision::BF16, "bf16", "operands rounded to bf16"),
      clEnumValN(Precision::BF16x3, "bf16x3", "operands as sums of two bf16"));
}

static Attribute describe(Builder &b, const Image &image) {
  SmallVector<Attribute> kernels, messages;
  for (const DeviceKernel &kernel : image.kernels)
    kernels.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(kernel.name)),
         b.getNamedAttr("node", b.getStringAttr(kernel.node)),
         b.getNamedAttr("arguments", b.getI64IntegerAttr(kernel.arguments)),
         b.getNamedAttr("shared", b.getI64IntegerAttr(kernel.sharedBytes))}));
  for (const Message &message : image.messages)
    messages.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("text", b.getStringAttr(message.text)),
         b.getNamedAttr("kind", b.getI64IntegerAttr(message.kind))}));
  NamedAttrList attrs;
  attrs.set("target", b.getStringAttr(image.target));
  attrs.set("bytes", b.getStringAttr(image.bytes));
  if (!image.architecture.empty())
    attrs.set("architecture", b.getStringAttr(image.architecture));
  if (image.kind == ImageKind::PTX)
    attrs.set("ptx", b.getUnitAttr());
  if (!kernels.empty())
    attrs.set("kernels", b.getArrayAttr(kernels));
  if (!messages.empty())
    attrs.set("messages", b.getArrayAttr(messages));
  return attrs.getDictionary(b.getContext());
}

/// Leaves the images beside the kernels: functions that start them, or, where
/// the images define what is called, declarations.
static void storeImages(ModuleOp module, ArrayRef<Image> images) {
  Builder b(module.getContext());
  SmallVector<Attribute> stored;
  for (const Image &image : images)
    stored.push_back(describe(b, image));
  module->setAttr(sdx::kImagesAttr, b.getArrayAttr(stored));
  if (llvm::any_of(images,
                   [](const Image &image) { return !image.kernels.empty(); }))
    return;
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr(sdx::kKernelAttr) && !func.isDeclaration()) {
      func.eraseBody();
      func.setPrivate();
    }
}

namespace {

struct RunTargetPass : sardonyx::impl::SDXRunTargetBase<RunTargetPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const TargetInterface *target = TargetInterface::find(module);
    if (!target)
      return signalPassFailure();
    OpPassManager passes(ModuleOp::getOperationName());
    switch (stage) {
    case TargetStage::Layout:
      target->buildLayoutPasses(passes, {numerics, precision});
      break;
    case TargetStage::Fusion:
      target->buildFusionPasses(passes);
      break;
    case TargetStage::Plan:
      target->buildPlanPasses(passes);
      break;
    case TargetStage::Codegen:
      target->buildCodegenPasses(passes);
      break;
    }
    if (!passes.empty() && failed(runPipeline(passes, module)))
      return signalPassFailure();
    if (stage != TargetStage::Codegen)
      return;
    SmallVector<Image> images;
    if (failed(target->emit(module, images)))
      return signalPassFailure();
    if (!images.empty())
      storeImages(module, images);
  }
};

} // namespace
