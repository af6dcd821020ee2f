//===- ParameterizeKernels.cpp - Numbers of kernels as arguments ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEquality.h"
#include "sardonyx/Dispatch/Passes.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXPARAMETERIZEKERNELS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Whether code for `constant` is the same, and as fast, for any other number.
static bool mayBeArgument(arith::ConstantOp constant) {
  Type type = constant.getType();
  if (!isa<FloatType>(type) && !(type.isInteger() && !type.isInteger(1)))
    return false;
  return llvm::all_of(constant->getUsers(), [](Operation *user) {
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
               arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp, arith::CmpFOp, arith::AddIOp, arith::SubIOp,
               arith::MulIOp, arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp,
               arith::MinUIOp, arith::SelectOp, math::FmaOp>(user);
  });
}

static bool isDivisor(arith::ConstantOp constant) {
  return llvm::any_of(constant->getUses(), [](OpOperand &use) {
    return isa<arith::DivFOp>(use.getOwner()) && use.getOperandNumber() == 1;
  });
}

/// Whether a quotient by `value` is a product by its reciprocal and a
/// correction.
static bool isNormal(TypedAttr value) {
  APFloat number = cast<FloatAttr>(value).getValue();
  APFloat inverse(number.getSemantics(), 1);
  inverse.divide(number, APFloat::rmNearestTiesToEven);
  return number.isNormal() && inverse.isNormal();
}

namespace {

/// A kernel, and its numbers that may be arguments, in the order of its body.
struct Candidate {
  func::FuncOp kernel;
  SmallVector<arith::ConstantOp> constants;
  SmallVector<TypedAttr> values;

  /// Makes kernels equal that differ in these numbers only: a mark, which no
  /// other constant has, instead of each.
  void hideValues() {
    for (arith::ConstantOp constant : constants) {
      Builder b(constant.getContext());
      constant.setValueAttr(b.getZeroAttr(constant.getType()));
      constant->setDiscardableAttr(kHidden, b.getUnitAttr());
    }
  }
  void restoreValues() {
    for (auto [constant, value] : llvm::zip_equal(constants, values)) {
      constant.setValueAttr(value);
      constant->removeDiscardableAttr(kHidden);
    }
  }

  static constexpr llvm::StringLiteral kHidden = "sdx.hidden";
};

struct ParameterizeKernelsPass
    : sardonyx::impl::SDXParameterizeKernelsBase<ParameterizeKernelsPass> {
  void runOnOperation() override {
    // Kernels whose bodies are equal but for these numbers.
    llvm::MapVector<size_t, SmallVector<SmallVector<Candidate>, 1>> distinct;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(sdx::kKernelAttr) || !hasDenseOp(kernel))
        continue;
      Candidate candidate = collect(kernel);
      candidate.hideValues();
      auto &groups = distinct[hashKernel(kernel)];
      auto *equal = llvm::find_if(groups, [&](ArrayRef<Candidate> group) {
        return areEqualKernels(kernel, group.front().kernel);
      });
      if (equal == groups.end())
        equal = &groups.emplace_back();
      equal->push_back(std::move(candidate));
    }
    // The arguments of a kernel are the call's operands in their order.
    llvm::StringMap<unsigned> inputs;
    getOperation().walk([&](sdx::CallOp call) {
      inputs[call.getCallee()] = call.getIns().size();
    });
    llvm::StringMap<SmallVector<TypedAttr>> added;
    for (auto &[hash, groups] : distinct)
      for (MutableArrayRef<Candidate> group : groups)
        parameterize(group, inputs, added);
    getOperation().walk([&](sdx::CallOp call) {
      auto it = added.find(call.getCallee());
      if (it == added.end())
        return;
      OpBuilder b(call);
      SmallVector<Value> numbers;
      for (TypedAttr value : it->second)
        numbers.push_back(arith::ConstantOp::create(b, call.getLoc(), value));
      call.getInsMutable().append(numbers);
    });
  }

private:
  /// Others take no time to compile.
  static bool hasDenseOp(func::FuncOp kernel) {
    return kernel
        .walk([](sdx::DenseOpInterface) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  static Candidate collect(func::FuncOp kernel) {
    Candidate candidate{kernel, {}, {}};
    kernel.walk([&](arith::ConstantOp constant) {
      // Code for divisors that are not normal numbers is another.
      if (!mayBeArgument(constant) ||
          (isDivisor(constant) && !isNormal(constant.getValue())))
        return;
      candidate.constants.push_back(constant);
      candidate.values.push_back(constant.getValue());
    });
    return candidate;
  }

  /// Makes arguments, behind the other inputs, of the numbers in which kernels
  /// of the group differ, and puts those that each of them takes into `added`.
  static void parameterize(MutableArrayRef<Candidate> group,
                           const llvm::StringMap<unsigned> &inputs,
                           llvm::StringMap<SmallVector<TypedAttr>> &added) {
    ArrayRef<TypedAttr> first = group.front().values;
    SmallVector<size_t> differing;
    for (size_t i = 0; i < first.size(); ++i)
      if (llvm::any_of(group, [&](const Candidate &candidate) {
            return candidate.values[i] != first[i];
          }))
        differing.push_back(i);
    for (Candidate &candidate : group) {
      candidate.restoreValues();
      if (differing.empty())
        continue;
      func::FuncOp kernel = candidate.kernel;
      SmallVector<TypedAttr> &numbers = added[kernel.getName()];
      for (size_t i : differing) {
        arith::ConstantOp constant = candidate.constants[i];
        const unsigned at = inputs.lookup(kernel.getName()) + numbers.size();
        NamedAttrList attributes;
        if (isDivisor(constant))
          attributes.set(sdx::kNormalAttr, UnitAttr::get(kernel.getContext()));
        (void)kernel.insertArgument(
            at, constant.getType(),
            attributes.getDictionary(kernel.getContext()), constant.getLoc());
        constant.replaceAllUsesWith(kernel.getArgument(at));
        constant.erase();
        numbers.push_back(candidate.values[i]);
      }
    }
  }
};

} // namespace
