//===- Plans.cpp - Plans of kernels as text -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/Plans.h"

#include "dialects/SDX/SDX.h"
#include "lib/Dispatch/KernelWork.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace sardonyx;

static constexpr size_t kDigits = 16;

std::string sardonyx::fingerprintKernel(func::FuncOp kernel, StringRef plan) {
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  copy->setName("kernel");
  (*copy)->removeAttr(plan);
  (*copy)->removeAttr(kPlanReasonAttr);
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  if (sdx::TargetAttrInterface target = sdx::getTarget(kernel))
    os << target;
  std::string digits;
  llvm::raw_string_ostream(digits)
      << llvm::format_hex_no_prefix(llvm::xxh3_64bits(text), kDigits);
  return digits;
}

static llvm::Error refuseLine(size_t number, const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "line " + Twine(number) + " of the plan " +
                                     what);
}

llvm::Expected<DictionaryAttr> sardonyx::parsePlans(MLIRContext *context,
                                                    StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  NamedAttrList plans;
  for (auto [i, whole] : llvm::enumerate(lines)) {
    // The attribute begins with one #; a space before another ends it.
    StringRef line = whole.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    auto [fingerprint, rest] = line.split(' ');
    bool isFingerprint = fingerprint == kOtherKernels ||
                         (fingerprint.size() == kDigits &&
                          llvm::all_of(fingerprint, llvm::isHexDigit));
    StringRef value = rest.trim().split(" # ").first.trim();
    if (!isFingerprint || value.empty())
      return refuseLine(i + 1,
                        "is no fingerprint of 16 digits, or *, and a plan");
    std::string problem;
    ScopedDiagnosticHandler quiet(context, [&](Diagnostic &diagnostic) {
      // The first says what is wrong, those after it what that led to.
      if (problem.empty())
        problem = diagnostic.str();
      return success();
    });
    Attribute plan = parseAttribute(value, context);
    if (!plan)
      return refuseLine(i + 1, "cannot be read: " + problem);
    if (plans.get(fingerprint))
      return refuseLine(i + 1, fingerprint == kOtherKernels
                                   ? "is a second one for all kernels"
                                   : "is of a kernel that another line is of");
    plans.append(fingerprint, plan);
  }
  return plans.getDictionary(context);
}

static bool isKernel(func::FuncOp func) {
  return func->hasAttr(sdx::kKernelAttr) && !func.isDeclaration();
}

void sardonyx::applyPlans(ModuleOp module, StringRef plan) {
  auto plans = module->getAttrOfType<DictionaryAttr>(kPlansAttr);
  if (!plans)
    return;
  llvm::StringSet<> used;
  const Attribute others = plans.get(kOtherKernels);
  used.insert(kOtherKernels);
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!isKernel(func))
      continue;
    std::string fingerprint = fingerprintKernel(func, plan);
    if (Attribute given = plans.get(fingerprint)) {
      func->setAttr(plan, given);
      used.insert(fingerprint);
    } else if (others) {
      func->setAttr(plan, others);
    }
  }
  Builder b(module.getContext());
  SmallVector<Attribute> stale;
  for (NamedAttribute given : plans)
    if (!used.contains(given.getName().getValue()))
      stale.push_back(
          b.getStringAttr("the plan of " + given.getName().getValue() +
                          " is of no kernel of this model on this processor"));
  module->removeAttr(kPlansAttr);
  if (!stale.empty())
    module->setAttr(kStalePlansAttr, b.getArrayAttr(stale));
}

/// "node 'c' (Conv)", of which a kernel's dense operation was made, or its
/// first operation.
static std::string describeNode(func::FuncOp kernel) {
  std::string node;
  kernel.walk([&](Operation *op) {
    if (node.empty() || isa<sdx::DenseOpInterface>(op))
      node = sdx::describeOrigin(op->getLoc());
    return isa<sdx::DenseOpInterface>(op) ? WalkResult::interrupt()
                                          : WalkResult::advance();
  });
  return node;
}

std::vector<std::string> sardonyx::listFallbacks(ModuleOp module) {
  std::vector<std::string> sentences;
  for (auto func : module.getOps<func::FuncOp>()) {
    auto reason = func->getAttrOfType<StringAttr>(kPlanReasonAttr);
    if (!reason)
      continue;
    std::string node = describeNode(func);
    sentences.push_back("kernel '" + func.getName().str() +
                        (node.empty() ? "'" : "' of " + node) +
                        " goes by plain loops because of " + reason.str());
  }
  return sentences;
}

std::string sardonyx::printPlans(
    ModuleOp module, StringRef plan,
    llvm::function_ref<void(func::FuncOp, SmallVectorImpl<Attribute> &)>
        listOthers) {
  std::string text =
      "# How kernels are computed: fingerprint, plan # kernel, form, first "
      "node\n";
  llvm::raw_string_ostream os(text);
  for (auto func : module.getOps<func::FuncOp>()) {
    Attribute value = isKernel(func) ? func->getAttr(plan) : Attribute();
    if (!value)
      continue;
    os << fingerprintKernel(func, plan) << " " << value << " # "
       << func.getName();
    for (const std::string &part : {describeForm(func), describeNode(func)})
      if (!part.empty())
        os << ", " << part;
    os << "\n";
    SmallVector<Attribute> others;
    if (listOthers)
      listOthers(func, others);
    for (Attribute other : others)
      if (other != value)
        os << kOtherPlan << other << "\n";
  }
  return text;
}
