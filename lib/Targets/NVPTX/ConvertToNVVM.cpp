//===- ConvertToNVVM.cpp - Kernels in the dialects llvm and nvvm ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVCONVERTTONVVM
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// What checks of a module of kernels fail with, by their numbers.
class Messages {
public:
  explicit Messages(gpu::GPUModuleOp module) : module(module) {
    if (auto known = module->getAttrOfType<ArrayAttr>(nv::kMessagesAttr))
      sentences.assign(known.begin(), known.end());
  }

  int64_t add(sdx::CheckOp check) {
    Builder b(module.getContext());
    Attribute sentence = b.getDictionaryAttr(
        {b.getNamedAttr("text", check.getMessageAttr()),
         b.getNamedAttr("kind", b.getI64IntegerAttr(
                                    static_cast<int64_t>(check.getKind())))});
    auto *found = llvm::find(sentences, sentence);
    if (found != sentences.end())
      return found - sentences.begin();
    sentences.push_back(sentence);
    return sentences.size() - 1;
  }

  void store() {
    if (!sentences.empty())
      module->setAttr(nv::kMessagesAttr,
                      Builder(module.getContext()).getArrayAttr(sentences));
  }

private:
  gpu::GPUModuleOp module;
  SmallVector<Attribute> sentences;
};

} // namespace

/// The parameter of the kernel around `op` that is the run's failure record.
static Value findRecord(Operation *op) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (!kernel)
    return {};
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgAttr(i, nv::kFailureRecordAttr))
      return kernel.getArgument(i);
  return {};
}

/// The first thread of a run whose check fails says which; each ends.
static LogicalResult lowerCheck(sdx::CheckOp check, Messages &messages) {
  Value record = findRecord(check);
  if (!record)
    return check.emitOpError("is in a kernel that gets no failure record");
  OpBuilder b(check);
  Location loc = check.getLoc();
  Type i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, i64, value);
  };
  Value fails = arith::XOrIOp::create(
      b, loc, check.getCondition(),
      arith::ConstantIntOp::create(b, loc, /*value=*/1, /*width=*/1));
  auto failed = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
  b.setInsertionPoint(failed.thenYield());
  auto exchange = LLVM::AtomicCmpXchgOp::create(
      b, loc, record, constant(0), constant(1), LLVM::AtomicOrdering::monotonic,
      LLVM::AtomicOrdering::monotonic);
  Value isFirst = LLVM::ExtractValueOp::create(b, loc, exchange, 1);
  auto first = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  b.setInsertionPoint(first.thenYield());
  auto store = [&](Value value, int32_t word) {
    Value place = LLVM::GEPOp::create(b, loc, record.getType(), i64, record,
                                      ArrayRef<LLVM::GEPArg>{word});
    LLVM::StoreOp::create(b, loc, value, place);
  };
  store(constant(messages.add(check)), 1);
  for (auto [i, value] : llvm::enumerate(check.getValues()))
    store(arith::IndexCastOp::create(b, loc, i64, value), i + 2);
  b.setInsertionPoint(failed.thenYield());
  NVVM::Exit::create(b, loc);
  check.erase();
  return success();
}

/// Whether an instruction of PTX, or a few, compute what `op` does.
static bool isInstruction(Operation *op) {
  if (isa<math::SqrtOp, math::FmaOp, math::AbsFOp, math::CopySignOp,
          math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp,
          math::RoundOp>(op)) {
    Type type = getElementTypeOrSelf(op->getResult(0).getType());
    return type.isF32() || type.isF64() || type.isF16() || type.isBF16();
  }
  return isa<math::AbsIOp, math::CtPopOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::IsNaNOp, math::IsInfOp,
             math::IsFiniteOp, math::IsNormalOp>(op);
}

/// LLVM would end the process at a function that it has no instruction for.
static LogicalResult verifyMath(gpu::GPUModuleOp module) {
  bool ok = true;
  module.walk([&](Operation *op) {
    if (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
        !isInstruction(op)) {
      op->emitOpError("is a function that no instruction computes");
      ok = false;
    }
  });
  return success(ok);
}

/// What no pattern converts is brought to forms that one does.
static LogicalResult expandOps(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  memref::populateExpandStridedMetadataPatterns(patterns);
  memref::populateExpandOpsPatterns(patterns);
  arith::populateArithExpandOpsPatterns(patterns);
  vector::populateVectorTransferLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  populateAffineToStdConversionPatterns(patterns);
  GreedyRewriteConfig config;
  config.enableFolding(true);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

static LogicalResult convert(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter types(context);
  configureGpuToNVVMTypeConverter(types);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  cf::populateAssertToLLVMConversionPattern(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  index::populateIndexToLLVMConversionPatterns(types, patterns);
  // Before those of gpu, which call libdevice.
  populateMathToLLVMConversionPatterns(types, patterns,
                                       /*approximateLog1p=*/false,
                                       /*benefit=*/3);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  ub::populateUBToLLVMConversionPatterns(types, patterns);
  populateGpuToNVVMConversionPatterns(types, patterns, /*benefit=*/2);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  target.addIllegalDialect<gpu::GPUDialect, arith::ArithDialect,
                           cf::ControlFlowDialect, math::MathDialect,
                           memref::MemRefDialect, scf::SCFDialect,
                           vector::VectorDialect, affine::AffineDialect>();
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {
/// Parameters of kernels that are in place, which nobody writes. The conversion
/// of functions forgets them.
class ParametersInPlace {
public:
  explicit ParametersInPlace(gpu::GPUModuleOp module) : module(module) {
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
        if (auto type = kernel.getArgAttrOfType<TypeAttr>(
                i, LLVM::LLVMDialect::getByValAttrName()))
          found.push_back({kernel.getNameAttr(), i, type});
  }

  void restore() {
    for (const Parameter &parameter : found) {
      auto func = module.lookupSymbol<LLVM::LLVMFuncOp>(parameter.kernel);
      func.setArgAttr(parameter.number, LLVM::LLVMDialect::getByValAttrName(),
                      parameter.type);
      func.setArgAttr(parameter.number,
                      NVVM::NVVMDialect::getGridConstantAttrName(),
                      UnitAttr::get(func.getContext()));
    }
  }

private:
  struct Parameter {
    StringAttr kernel;
    unsigned number;
    TypeAttr type;
  };
  gpu::GPUModuleOp module;
  SmallVector<Parameter> found;
};
} // namespace

/// Instructions that LLVM has no intrinsic for become text.
static LogicalResult writeInstructions(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateNVVMToLLVMConversionPatterns(patterns);
  ConversionTarget target(*module.getContext());
  target.addLegalDialect<LLVM::LLVMDialect>();
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {

struct ConvertToNVVMPass
    : sardonyx::impl::NVConvertToNVVMBase<ConvertToNVVMPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    Messages messages(module);
    SmallVector<sdx::CheckOp> checks;
    module.walk([&](sdx::CheckOp check) { checks.push_back(check); });
    for (sdx::CheckOp check : checks)
      if (failed(lowerCheck(check, messages)))
        return signalPassFailure();
    messages.store();
    ParametersInPlace inPlace(module);
    if (failed(verifyMath(module)) || failed(expandOps(module)) ||
        failed(convert(module)) || failed(writeInstructions(module)))
      return signalPassFailure();
    inPlace.restore();
    SmallVector<UnrealizedConversionCastOp> casts, left;
    module.walk(
        [&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
    reconcileUnrealizedCasts(casts, &left);
    for (UnrealizedConversionCastOp cast : left) {
      cast.emitOpError("is between types that have no common form");
      return signalPassFailure();
    }
  }
};

} // namespace
