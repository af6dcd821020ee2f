//===- ToyTarget.cpp - Kernels as C ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "sardonyx/Dispatch/Passes.h"
#include "sardonyx/Targets/Target.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sardonyx;

#include "ToyDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ToyAttrs.cpp.inc"

void toy::ToyDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ToyAttrs.cpp.inc"
      >();
}

sdx::FusionLimits toy::MachineAttr::getFusionLimits() const {
  sdx::FusionLimits limits;
  limits.operations = 8;
  return limits;
}

namespace {

class ToyTarget : public TargetInterface {
public:
  using TargetInterface::TargetInterface;

  /// There is nothing better than loop nests.
  void buildLayoutPasses(OpPassManager &module,
                         const LayoutOptions &) const override {
    module.addPass(createSDXDecomposeDenseOps());
  }

  void buildCodegenPasses(OpPassManager &module) const override {
    module.addPass(bufferization::createOneShotBufferizePass());
    OpPassManager &functions = module.nest<func::FuncOp>();
    functions.addPass(createConvertLinalgToLoopsPass());
    functions.addPass(createLowerAffinePass());
    functions.addPass(memref::createExpandStridedMetadataPass());
    functions.addPass(createLowerAffinePass());
    functions.addPass(createCanonicalizerPass());
    functions.addPass(createCSEPass());
  }

  LogicalResult emit(ModuleOp module,
                     SmallVectorImpl<Image> &images) const override {
    Image image{"toy", toy::getPrelude().str()};
    llvm::raw_string_ostream os(image.bytes);
    bool isEmpty = true;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
        continue;
      if (failed(toy::printKernel(func, os)))
        return failure();
      isEmpty = false;
    }
    if (!isEmpty)
      images.push_back(std::move(image));
    return success();
  }
};

/// A file that goes when the object does.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix) {
    error = llvm::sys::fs::createTemporaryFile("toy", suffix, path);
    remover.setFile(path);
  }
  SmallString<128> path;
  std::error_code error;
  llvm::FileRemover remover;
};

} // namespace

void toy::registerToyTarget(DialectRegistry &registry) {
  registry.insert<ToyDialect>();
  registry.addExtension(+[](MLIRContext *, ToyDialect *dialect) {
    dialect->addInterfaces<ToyTarget>();
  });
}

static sdx::TargetAttrInterface describe(MLIRContext *context,
                                         const TargetOptions &) {
  context->getOrLoadDialect<toy::ToyDialect>();
  return toy::MachineAttr::get(context);
}

/// Compiles the C of an image.
static llvm::Expected<std::string> load(const Image &image) {
  TemporaryFile source("c"), object("o");
  auto fail = [](const Twine &what) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
  };
  if (source.error || object.error)
    return fail("there is no place for temporary files");
  {
    std::error_code error;
    llvm::raw_fd_ostream os(source.path, error);
    os << image.bytes;
    if (error || os.has_error())
      return fail("the temporary file cannot be written");
  }
  auto compiler = llvm::sys::findProgramByName("cc");
  if (!compiler)
    return fail("there is no C compiler, 'cc'");
  StringRef arguments[] = {*compiler,         "-O1", "-c",        "-fPIC",
                           "-fno-math-errno", "-o",  object.path, source.path};
  std::string message;
  if (llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt, {}, 0, 0,
                                &message))
    return fail("the C compiler fails " + message);
  auto code = llvm::MemoryBuffer::getFile(object.path);
  if (!code)
    return fail("the C compiler wrote nothing");
  return (*code)->getBuffer().str();
}

/// This program has no other target.
llvm::ArrayRef<TargetInfo> sardonyx::getLinkedTargets() {
  static constexpr TargetInfo targets[] = {
      {"toy", toy::registerToyTarget, [] {}, describe, load}};
  return targets;
}
