//===- Numbers.cpp - Numbers of a softmax ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention/Numbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

Value nv::floatConstant(ImplicitLocOpBuilder &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value nv::minusInfinity(ImplicitLocOpBuilder &b) {
  return floatConstant(b, -std::numeric_limits<float>::infinity());
}

Value nv::exp2(ImplicitLocOpBuilder &b, Value x) {
  return LLVM::CallIntrinsicOp::create(
             b, b.getF32Type(), b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
             ValueRange(x))
      .getResult(0);
}

Value nv::finiteBase(ImplicitLocOpBuilder &b, Value largest) {
  Value none = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest,
                                     minusInfinity(b));
  return arith::SelectOp::create(b, none, floatConstant(b, 0), largest);
}

Value nv::larger(ImplicitLocOpBuilder &b, Value x, Value y) {
  return LLVM::MaxNumOp::create(b, x, y);
}

Value nv::reduce(ImplicitLocOpBuilder &b, ValueRange values, bool isSum) {
  SmallVector<Value> left(values);
  while (left.size() > 1) {
    SmallVector<Value> next;
    for (size_t j = 0; j + 1 < left.size(); j += 2)
      next.push_back(
          isSum ? arith::AddFOp::create(b, left[j], left[j + 1]).getResult()
                : larger(b, left[j], left[j + 1]));
    if (left.size() % 2)
      next.push_back(left.back());
    left = std::move(next);
  }
  return left.front();
}

Value nv::normalize(ImplicitLocOpBuilder &b, Value keys, Value value,
                    Value factor) {
  Value quotient = arith::MulFOp::create(b, value, factor);
  if (getConstantIntValue(keys))
    return quotient;
  Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, keys,
                                     arith::ConstantIndexOp::create(b, 0));
  return arith::SelectOp::create(b, none, floatConstant(b, 0), quotient);
}
