//===- Inspect.cpp - What is in a model -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"
#include "lib/Session/Compile/CompileStoppably.h"
#include "lib/Session/Compile/Compiler.h"
#include "lib/Session/Compile/DeviceWork.h"
#include "lib/Session/Compile/Options.h"
#include "lib/Session/Compile/Signature.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/PassManager.h"
#include "sardonyx/Pipelines/Pipelines.h"

#include <algorithm>
#include <set>

using namespace sardonyx;
using namespace mlir;

/// Sizes of a value's dimensions, open ones as 1; nothing without a rank.
static std::vector<double> sizesOf(Value value) {
  std::vector<double> sizes;
  if (!value)
    return sizes;
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    for (int64_t size : type.getShape())
      sizes.push_back(ShapedType::isDynamic(size) ? 1 : double(size));
  return sizes;
}

static double product(const std::vector<double> &sizes, size_t from = 0) {
  double result = 1;
  for (size_t i = from; i < sizes.size(); ++i)
    result *= sizes[i];
  return result;
}

/// Multiplications and additions of dense operators; one for each element of
/// the result of all others.
static double flopsOf(Operation *op) {
  if (op->getNumResults() == 0 || op->getNumOperands() == 0)
    return 0;
  StringRef name = op->getName().stripDialect();
  double results = product(sizesOf(op->getResult(0)));
  auto operand = [&](unsigned i) {
    return i < op->getNumOperands() ? sizesOf(op->getOperand(i))
                                    : std::vector<double>();
  };
  if (name == "Conv")
    return 2 * results * product(operand(1), 1);
  if (name == "ConvTranspose")
    return 2 * product(operand(0)) * product(operand(1), 1);
  if (name == "MatMul" || name == "MatMulInteger") {
    std::vector<double> lhs = operand(0);
    return lhs.empty() ? 0 : 2 * results * lhs.back();
  }
  if (name == "Gemm") {
    auto transposed = op->getAttrOfType<IntegerAttr>("transA");
    std::vector<double> lhs = operand(0);
    bool first = transposed && transposed.getValue().getSExtValue() != 0;
    return lhs.size() != 2 ? 0 : 2 * results * lhs[first ? 0 : 1];
  }
  if (name == "LSTM" || name == "GRU" || name == "RNN") {
    // X [sequence, batch, input], W [directions, gates * hidden, input] and
    // R [directions, gates * hidden, hidden].
    std::vector<double> x = operand(0);
    return x.size() != 3
               ? 0
               : 2 * x[0] * x[1] * (product(operand(1)) + product(operand(2)));
  }
  bool computes = !op->hasTrait<onnx::MovesData>() &&
                  (!op->hasTrait<onnx::IgnoresElements>() ||
                   op->hasTrait<onnx::DrawsNumbers>()) &&
                  !isa<onnx::CastOp, onnx::CastLikeOp>(op);
  return computes ? results : 0;
}

/// A function counts as one, whatever instances of it there are.
static void countCalls(ModuleOp module, ModelReport &report) {
  SymbolTable symbols(module);
  module.walk([&](onnx::CallOp call) {
    Operation *callee = symbols.lookup(call.getCallee());
    auto domain = callee->getAttrOfType<StringAttr>("onnx.domain");
    auto name = callee->getAttrOfType<StringAttr>("onnx.function");
    if (domain && name)
      ++report.functions[domain.empty() ? name.str()
                                        : domain.str() + "." + name.str()];
  });
}

static void countOps(ModuleOp module, ModelReport &report) {
  module.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() != "onnx")
      return;
    StringRef name = op->getName().stripDialect();
    if (name == "Yield")
      return;
    if (name == "Constant" || name == "ConstantOfShape") {
      if (auto value = op->getAttrOfType<ElementsAttr>("value")) {
        auto type = cast<ShapedType>(value.getType());
        int64_t elements = type.getNumElements();
        report.weightElements += elements;
        if (type.getElementType().isIntOrFloat())
          report.weightBytes +=
              elements * ((type.getElementTypeBitWidth() + 7) / 8);
      }
      if (name == "Constant")
        return;
    }
    std::string label = name.str();
    if (name == "Custom") {
      auto domain = op->getAttrOfType<StringAttr>("domain");
      auto type = op->getAttrOfType<StringAttr>("op_type");
      label = (domain ? domain.str() : "?") + "." + (type ? type.str() : "?");
    }
    ++report.ops[label];
  });
}

static Expected<ModelReport> inspect(const ModelSource &model,
                                     const std::map<std::string, int64_t> &dims,
                                     const SessionOptions &options,
                                     const std::atomic<bool> *stop) {
  Compilation compilation(options, stop);
  OwningOpRef<ModuleOp> module = compilation.import(model);
  if (!module)
    return compilation.error("the importer failed");
  ModelReport report;
  Artifact artifact;
  if (MaybeError error = readSignature(*module, artifact))
    return *error;
  report.metadata = artifact.metadata;
  report.inputs = artifact.inputs;
  report.outputs = artifact.outputs;
  if (auto opsets = (*module)->getAttrOfType<DictionaryAttr>("onnx.opset"))
    for (NamedAttribute entry : opsets)
      if (auto version = dyn_cast<IntegerAttr>(entry.getValue()))
        report.opsets.emplace_back(entry.getName().str(),
                                   version.getValue().getSExtValue());
  countCalls(*module, report);
  if (failed(inlineFunctions(*module)))
    return compilation.error("the functions of the model cannot be inlined");
  countOps(*module, report);
  if (MaybeError error =
          fixDims(*module, dims, artifact,
                  options.inputShapes.empty() && options.denotedDims.empty()
                      ? UnknownDims::AreErrors
                      : UnknownDims::AreIgnored))
    return *error;
  if (succeeded(compilation.run(*module, Phase::Import, Phase::Onnx))) {
    module->walk([&](Operation *op) {
      if (op->getName().getDialectNamespace() == "onnx")
        report.flops += flopsOf(op);
    });
    (void)compilation.run(*module, Phase::Onnx, Phase::Linalg);
  }
  if (compilation.stopped())
    return Error(ErrorKind::Failed, "looking at the model was stopped");
  if (options.device.cuda && compilation.errors().empty()) {
    auto machine = compilation.targetAttr();
    if (!machine)
      return machine.error();
    sdx::setTarget(*module, *machine);
    if (succeeded(compilation.run(*module, Phase::Linalg, Phase::Kernels)))
      report.device = findDeviceWork(*module);
  }
  std::set<std::string> seen;
  for (const std::string &message : compilation.errors())
    if (seen.insert(message).second)
      report.unsupported.push_back(message);
  return report;
}

Expected<ModelReport>
sardonyx::inspectModel(const ModelSource &model,
                       const std::map<std::string, int64_t> &dims,
                       const SessionOptions &options) {
  if (MaybeError error = checkOptions(options))
    return *error;
  LoadScope loading;
  if (loading.error())
    return *loading.error();
  std::optional<Expected<ModelReport>> report;
  auto work = [&](const std::atomic<bool> *stop) {
    report.emplace(inspect(model, dims, options, stop));
  };
  if (MaybeError error = runStoppably(options, work))
    return *error;
  return std::move(*report);
}
