//===- LowerObservations.cpp - Observations that are calls ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWEROBSERVATIONS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct LowerObservationsPass
    : sardonyx::impl::SDXLowerObservationsBase<LowerObservationsPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!isHostFunction(func))
        continue;
      SmallVector<sdx::ObserveOp> ops;
      func.walk([&](sdx::ObserveOp op) { ops.push_back(op); });
      for (sdx::ObserveOp op : ops)
        if (failed(lower(op)))
          return signalPassFailure();
    }
  }

private:
  static LogicalResult lower(sdx::ObserveOp op) {
    const int64_t type =
        sdx::getObservedType(getElementTypeOrSelf(op.getValue().getType()));
    if (type < 0)
      return op.emitOpError("cannot see a value of type ")
             << op.getValue().getType();
    OpBuilder b(op);
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, op.getLoc(),
                                       b.getI64IntegerAttr(value));
    };
    constexpr int64_t kTypeBits = 8;
    Value what =
        number(static_cast<int64_t>(op.getKinds()) | type << kTypeBits);
    sdx::RuntimeCallOp::create(
        b, op.getLoc(), TypeRange(), "sdx_rt_observe_tensor",
        ValueRange{number(op.getSite()), what, number(op.getAxis().value_or(0)),
                   op.getValue()},
        ValueRange(), /*stateful=*/true);
    op.erase();
    return success();
  }
};

} // namespace
