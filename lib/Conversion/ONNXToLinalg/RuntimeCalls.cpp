//===- RuntimeCalls.cpp - What the runtime computes -----------------------===//

#include "RuntimeCalls.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {

SmallVector<Value> callRuntime(TensorBuilder &b, StringRef name, ValueRange ins,
                               ValueRange outs) {
  return sdx::RuntimeCallOp::create(b, outs.getTypes(), name, ins, outs,
                                    /*stateful=*/false)
      .getResults();
}

Value callRuntime(TensorBuilder &b, StringRef name, ValueRange ins,
                  ArrayRef<OpFoldResult> sizes, Type elementType) {
  return callRuntime(b, name, ins, b.empty(sizes, elementType)).front();
}

Value callForIndex(TensorBuilder &b, StringRef name, ValueRange ins) {
  Value result =
      callRuntime(b, name, ins, ArrayRef<OpFoldResult>(), b.getI64Type());
  return b.convert(b.extract(result, {}), b.getIndexType());
}

Value asNumber(TensorBuilder &b, int64_t value) {
  return b.integer(b.getI64Type(), value);
}

} // namespace sardonyx
