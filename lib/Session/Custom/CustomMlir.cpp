//===- CustomMlir.cpp - Operators as functions of MLIR's ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Custom/CustomMlir.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace sardonyx;
using namespace mlir;

static constexpr StringLiteral kOp = "sardonyx.op";
static constexpr StringLiteral kVersion = "sardonyx.version";
static constexpr StringLiteral kAttribute = "sardonyx.attribute";
static constexpr StringLiteral kDefault = "sardonyx.default";
static constexpr StringLiteral kUnsigned = "sardonyx.unsigned";

//===----------------------------------------------------------------------===//
// Names and types
//===----------------------------------------------------------------------===//

/// "com.example.Foo": the domain and the operator.
static std::pair<StringRef, StringRef> operatorOf(func::FuncOp function) {
  auto name = function->getAttrOfType<StringAttr>(kOp);
  return (name ? name.getValue() : function.getName()).rsplit('.');
}

static int64_t versionOf(func::FuncOp function) {
  Attribute given = function->getAttr(kVersion);
  auto version = dyn_cast_or_null<IntegerAttr>(given);
  if (version && version.getType().isInteger(64))
    return version.getInt();
  return given ? 0 : 1;
}

/// The element type in ONNX for which a function's tensor stands; null for one
/// that has none.
static Type onnxElement(Type element, Attribute isUnsigned) {
  if (element.isF16() || element.isBF16() || element.isF32() ||
      element.isF64() || element.isInteger(1))
    return isUnsigned ? Type() : element;
  for (unsigned width : {8, 16, 32, 64})
    if (element.isSignlessInteger(width))
      return isUnsigned ? IntegerType::get(element.getContext(), width,
                                           IntegerType::Unsigned)
                        : element;
  return {};
}

static RankedTensorType onnxType(Type type, Attribute isUnsigned) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor && !tensor.getEncoding()
                     ? onnxElement(tensor.getElementType(), isUnsigned)
                     : Type();
  return element ? RankedTensorType::get(tensor.getShape(), element)
                 : RankedTensorType();
}

/// Whether an operand may be given to an argument; sizes that the operand
/// leaves open are checked in the run.
static bool accepts(RankedTensorType argument, Type operand) {
  auto given = dyn_cast<RankedTensorType>(operand);
  if (!given || given.getElementType() != argument.getElementType() ||
      given.getRank() != argument.getRank())
    return false;
  return llvm::all_of(llvm::zip_equal(argument.getShape(), given.getShape()),
                      [](auto pair) {
                        auto [wanted, size] = pair;
                        return ShapedType::isDynamic(wanted) ||
                               ShapedType::isDynamic(size) || wanted == size;
                      });
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

static MLIRContext::Threading kOneThread = MLIRContext::Threading::DISABLED;

static DialectRegistry allowedDialects() {
  DialectRegistry registry;
  registry.insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                  linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                  tensor::TensorDialect>();
  return registry;
}

static std::string checkArgument(func::FuncOp function, unsigned index) {
  Type type = function.getArgumentTypes()[index];
  std::string argument = "its argument " + std::to_string(index);
  auto attribute = function.getArgAttr(index, kAttribute);
  if (!attribute)
    return onnxType(type, function.getArgAttr(index, kUnsigned))
               ? ""
               : argument + " is no tensor of a known rank of numbers or bits";
  if (!isa<StringAttr>(attribute))
    return argument + " has a 'sardonyx.attribute' that is no text";
  if (!type.isF32() && !type.isF64() && !type.isInteger(64) && !type.isIndex())
    return argument + " stands for an attribute, but is none of f32, f64, i64 "
                      "and index";
  Attribute value = function.getArgAttr(index, kDefault);
  auto number = dyn_cast_or_null<TypedAttr>(value);
  bool fits = isa_and_nonnull<FloatAttr, IntegerAttr>(value) &&
              number.getType() == type;
  return value && !fits ? argument + " has a default of another type" : "";
}

/// What runs and what it may touch: values only.
static std::string checkBody(func::FuncOp function) {
  std::string problem;
  function.getBody().walk([&](Operation *op) {
    bool isCall =
        isa<func::FuncDialect>(op->getDialect()) && !isa<func::ReturnOp>(op);
    auto isNoValue = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return !type.isIntOrIndexOrFloat() && !tensor;
    };
    if (isCall)
      problem = "it calls a function";
    else if (llvm::any_of(op->getOperandTypes(), isNoValue) ||
             llvm::any_of(op->getResultTypes(), isNoValue))
      problem = "'" + op->getName().getStringRef().str() +
                "' works on what is neither a number nor a tensor of a known "
                "rank";
    return problem.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return problem;
}

static std::string checkFunction(func::FuncOp function) {
  auto [domain, name] = operatorOf(function);
  if (domain.empty() || name.empty())
    return "its name is not of the form domain.operator";
  if (onnx::lookupSchema(domain, name))
    return "it is an operator that Sardonyx has itself";
  if (versionOf(function) < 1)
    return "its version must be an i64 of at least 1";
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return "it must have a body of one block";
  if (function.getNumResults() == 0)
    return "it has no results";
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (std::string problem = checkArgument(function, i); !problem.empty())
      return problem;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (!onnxType(function.getResultTypes()[i],
                  function.getResultAttr(i, kUnsigned)))
      return "its result " + std::to_string(i) +
             " is no tensor of a known rank of numbers or bits";
  return checkBody(function);
}

std::string sardonyx::checkCustomMlir(const std::string &text) {
  MLIRContext context(allowedDialects(), kOneThread);
  context.loadAllAvailableDialects();
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (problem.empty() &&
        diagnostic.getSeverity() == DiagnosticSeverity::Error)
      problem = "the MLIR does not parse: " + diagnostic.str();
    return success();
  });
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return problem.empty() ? "the MLIR does not parse" : problem;
  bool hasAny = false;
  for (Operation &op : module->getBody()->getOperations()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return "the module has '" + op.getName().getStringRef().str() +
             "' besides functions";
    std::string wrong = checkFunction(function);
    if (!wrong.empty())
      return "function '" + function.getName().str() + "': " + wrong;
    hasAny = true;
  }
  return hasAny ? "" : "the module has no functions";
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

CustomMlir::CustomMlir(MLIRContext *context,
                       const std::vector<std::string> &texts) {
  if (texts.empty())
    return;
  context->appendDialectRegistry(allowedDialects());
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    auto module = parseSourceString<ModuleOp>(*text, ParserConfig(context));
    if (!module)
      continue; // it has been checked before
    for (auto function : module->getOps<func::FuncOp>()) {
      auto [domain, name] = operatorOf(function);
      entries.push_back(
          {domain.str(), name.str(), versionOf(function), function});
    }
    modules.push_back(std::move(module));
  }
  // The order stays among those of one version.
  llvm::stable_sort(entries, [](const Entry &a, const Entry &b) {
    return a.version > b.version;
  });
}

SmallVector<const CustomMlir::Entry *>
CustomMlir::candidates(onnx::CustomOp op) const {
  SmallVector<const Entry *> found;
  for (const Entry &entry : entries)
    if (entry.name == op.getOpType() && entry.domain == op.getDomain() &&
        entry.version <= op.getOpVersion())
      found.push_back(&entry);
  return found;
}

bool CustomMlir::knows(onnx::CustomOp op) const {
  return !candidates(op).empty();
}

static bool takes(func::FuncOp function, onnx::CustomOp op) {
  unsigned next = 0;
  ValueRange inputs = op.getInputs();
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (function.getArgAttr(i, kAttribute))
      continue;
    if (next == inputs.size() ||
        !accepts(onnxType(function.getArgumentTypes()[i],
                          function.getArgAttr(i, kUnsigned)),
                 inputs[next].getType()))
      return false;
    ++next;
  }
  return next == inputs.size() &&
         op->getNumResults() <= function.getNumResults();
}

func::FuncOp CustomMlir::find(onnx::CustomOp op) const {
  if (entries.empty() || op.getAbsentInputs() || op.getAbsentOutputs() ||
      op->getNumRegions() != 0)
    return {};
  for (const Entry *entry : candidates(op))
    if (takes(entry->function, op))
      return entry->function;
  return {};
}

SmallVector<Type> CustomMlir::resultTypes(func::FuncOp function,
                                          onnx::CustomOp op) {
  SmallVector<Type> types;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    types.push_back(onnxType(function.getResultTypes()[i],
                             function.getResultAttr(i, kUnsigned)));
  return types;
}
