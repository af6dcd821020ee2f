//===- Plans.h - Plans of kernels as text -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan says how a kernel is computed: an attribute of the target's dialect,
// which its passes choose and which may be given. As text it is a line for each
// kernel: the kernel's fingerprint, the plan, and after # what a person wants
// to know. A line that begins with * is for all kernels that have no other.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_PLANS_H
#define SARDONYX_TARGETS_PLANS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace sardonyx {

/// The plans given for kernels of a module: a dictionary of them by the
/// kernels' fingerprints, and of one for all others.
inline constexpr llvm::StringLiteral kPlansAttr = "sdx.plans";
/// What is said in the place of a fingerprint for all kernels without another
/// plan.
inline constexpr llvm::StringLiteral kOtherKernels = "*";
/// Sentences on those of them that no kernel has.
inline constexpr llvm::StringLiteral kStalePlansAttr = "sdx.stale_plans";

/// What tells a kernel, still on tensors, from others: 16 hexadecimal digits of
/// its body, its types and its machine. Names, locations and the attribute
/// `plan` do not count.
std::string fingerprintKernel(mlir::func::FuncOp kernel, llvm::StringRef plan);

/// Reads lines of plans into a dictionary. Fails with a sentence that names the
/// line.
llvm::Expected<mlir::DictionaryAttr> parsePlans(mlir::MLIRContext *context,
                                                llvm::StringRef text);

/// Gives kernels of `module` the plans that its kPlansAttr has for them, as the
/// attribute `plan`, and takes kPlansAttr away.
void applyPlans(mlir::ModuleOp module, llvm::StringRef plan);

/// How lines of comments begin that have other plans of the kernel before them.
inline constexpr llvm::StringLiteral kOtherPlan = "#   or ";

/// The plans of `module`'s kernels, as the attribute `plan`, as text; with
/// `listOthers` those that it gives besides.
std::string printPlans(
    mlir::ModuleOp module, llvm::StringRef plan,
    llvm::function_ref<void(mlir::func::FuncOp kernel,
                            llvm::SmallVectorImpl<mlir::Attribute> &plans)>
        listOthers = nullptr);

/// Sentences on the kernels of `module` that have none of the forms which their
/// target computes fast.
std::vector<std::string> listFallbacks(mlir::ModuleOp module);

} // namespace sardonyx

#endif // SARDONYX_TARGETS_PLANS_H
