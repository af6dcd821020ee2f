//===- RuntimeCalls.cpp - What the runtime computes -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/RuntimeCalls.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {

SmallVector<Value> callRuntime(TensorBuilder &b, StringRef name, ValueRange ins,
                               ValueRange outs, bool isStateful) {
  return sdx::RuntimeCallOp::create(b, outs.getTypes(), name, ins, outs,
                                    isStateful)
      .getResults();
}

Value callRuntime(TensorBuilder &b, StringRef name, ValueRange ins,
                  ArrayRef<OpFoldResult> sizes, Type elementType,
                  bool isStateful) {
  return callRuntime(b, name, ins, b.empty(sizes, elementType), isStateful)
      .front();
}

Value asNumber(TensorBuilder &b, int64_t value) {
  return b.integer(b.getI64Type(), value);
}

} // namespace sardonyx
