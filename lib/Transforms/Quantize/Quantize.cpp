//===- Quantize.cpp - Integers in the place of floats ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizeModel.h"

#include "sardonyx/Transforms/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXQUANTIZE
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct OnnxQuantizePass : sardonyx::impl::OnnxQuantizeBase<OnnxQuantizePass> {
  using OnnxQuantizeBase::OnnxQuantizeBase;

  void runOnOperation() override {
    if (failed(quantize()))
      signalPassFailure();
  }

private:
  LogicalResult quantize() {
    ModuleOp module = getOperation();
    auto complain = [&](const llvm::Twine &message) -> LogicalResult {
      return emitError(module.getLoc(), "onnx-quantize: ") << message;
    };
    if (plan.empty() == type.empty())
      return complain("needs a plan or a type, and not both");
    if (failed(checkNodeNames(module, exclude, "exclude")))
      return failure();
    if (!plan.empty()) {
      if (!exclude.empty())
        return complain("a plan says itself what is not quantised");
      llvm::Expected<QuantizationPlan> read =
          QuantizationPlan::load(plan, &getContext());
      if (!read)
        return complain(llvm::toString(read.takeError()));
      return quantizeByPlan(module, *read);
    }
    const bool isDynamic = type == "int8-dynamic";
    const unsigned bits = llvm::StringSwitch<unsigned>(type)
                              .Case("int2", 2)
                              .Case("int4", 4)
                              .Case("int8", 8)
                              .Default(0);
    if (!isDynamic && !bits)
      return complain("type=" + type +
                      ": must be int8-dynamic, int8, int4 or int2");
    if (block < 0)
      return complain("block: must be 0 or more");
    module.walk([&](Operation *op) {
      std::optional<WeightedOp> layer = WeightedOp::get(op);
      if (!layer || llvm::is_contained(exclude, getNameOfNode(op)))
        return;
      // Fewer bits than 8 lose too much where few numbers share a window.
      const bool hasWindow = layer->type.getRank() > 2;
      if (isDynamic ? !quantizeDynamically(*layer)
                    : (hasWindow && bits < 8) ||
                          !quantizeWeights(*layer, bits, block))
        remarkOn(op) << "keeps its weights, of " << layer->type;
    });
    return success();
  }
};

} // namespace
