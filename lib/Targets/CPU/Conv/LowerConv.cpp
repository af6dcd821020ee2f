//===- LowerConv.cpp - Convolutions as register tiles ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexMath.h"
#include "Conv/ConvEmitter.h"
#include "Conv/WinogradConv.h"
#include "Kernel/RootKernel.h"
#include "MicroKernels/AmxMicroKernel.h"
#include "MicroKernels/MicroKernel.h"

#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERCONV
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

ConvEmitter::ConvEmitter(const ConvFacts &facts, ConvPlanAttr plan,
                         KernelBody &body)
    : facts(facts), plan(plan), op(facts.getOp()), body(body),
      target(facts.target), evaluator(body, op->getResult(0), 1, 2),
      shape(TileShape::get(target, cpu::kPanelWidth)), lanes(target.getLanes()),
      registers(target.countVectorRegisters()),
      columns(target.getVectorBits() >= 512 ? 3 : 2),
      spatial(op.getNumSpatialDims()), group(op.getGroup()),
      winograd(op.getAlgorithm()) {
  shape.rows = std::gcd(shape.rows, op.getBlockRows());
}

LogicalResult ConvEmitter::verify() {
  if (!KernelBody::hasBuffer(op.getInput()) ||
      !KernelBody::hasBuffer(op.getWeights()))
    return op.emitOpError("has an operand that is computed in its own kernel");
  if (group <= 0)
    return op.emitOpError("has no groups");
  if (op.hasSplitWeights()) {
    auto isStatic = [](ShapedType type) {
      return !ShapedType::isDynamicShape(type.getShape().drop_front());
    };
    if (lanes != kTileRows || !op.getWeights().getType().hasStaticShape() ||
        !isStatic(op.getInput().getType()) || !isStatic(op.getInit().getType()))
      return op.emitOpError("has weights of bf16, which are for vectors of ")
             << kTileRows << " numbers and for sizes that are known";
  }
  return evaluator.verify(op.getInit());
}

/// Whether an output position and the input that one tap reads for it are
/// always the same distance apart in memory, edges aside.
bool ConvEmitter::isShift() {
  if (phases)
    return true;
  for (int64_t d = 0; d < spatial; ++d) {
    if (stride(d) != 1)
      return false;
    // The size in equals the size out, or does not matter.
    int64_t pads = pad(d) + op.getPadsEnd()[d];
    if (d > 0 && pads != dilation(d) * (kernel(d) - 1))
      return false;
  }
  return true;
}

void ConvEmitter::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  input = body.getBuffer(op.getInput());
  weights = body.getBuffer(op.getWeights());
  evaluator.prepare(b, op.getInit());
  flatInput = emitCollapse(b, input, 2);
  flatWeights = emitCollapse(b, weights, 0);
  outPositions = math.constant(1);
  for (int64_t d = 0; d < spatial; ++d) {
    inSizes.push_back(math.dim(input, 2 + d));
    outPositions = math.mul(outPositions, outSize(d));
  }
  groupChannels = math.div(math.dim(input, 1), group);
  groupFilters = math.div(evaluator.getSize(1), group);
  depth = op.hasSplitWeights() ? math.mul(groupChannels, countTaps())
                               : math.dim(weights, 2);
  switch (plan.getForm()) {
  case ConvForm::Winograd:
    return emitWinograd(b);
  case ConvForm::Depthwise:
    return emitDepthwise(b);
  case ConvForm::RowBuffer:
    return emitRowBuffer(b);
  case ConvForm::Im2col:
  case ConvForm::OutputChannels:
  case ConvForm::Bf16x3:
    break;
  }
  if (plan.getPolyphase())
    emitPolyphase(b);
  allInputs = emitCollapse(b, phases ? phases : input, 0);
  if (plan.getForm() == ConvForm::Bf16x3)
    emitBf16x3(b);
  else if (plan.getForm() == ConvForm::OutputChannels)
    emitOutputChannels(b);
  else
    emitIm2col(b);
  if (phases)
    memref::DeallocOp::create(b, phases);
}

/// The sum of a finished product and the op's init on a tile of one row.
Value ConvEmitter::emitOntoInit(ImplicitLocOpBuilder &b, const Tile &tile,
                                Value value) {
  auto fill = skipCasts(op.getInit()).getDefiningOp<linalg::FillOp>();
  if (fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat()))
    return value;
  Value init = evaluator.emitInit(b, op.getInit(), tile, 1).front();
  return arith::AddFOp::create(b, init, value);
}

/// Loop number `loop` of `loops` over `steps` values of k, which together fetch
/// `elements` of the weights, beginning with `from`.
Prefetch ConvEmitter::prefetchWeights(ImplicitLocOpBuilder &b, Value from,
                                      int64_t elements, Value loop,
                                      int64_t loops, int64_t steps) {
  if (!Prefetch::pays(weights))
    return {};
  int64_t line = Prefetch::kLineBytes * 8 /
                 cast<MemRefType>(weights.getType()).getElementTypeBitWidth();
  return Prefetch::share(
      b, {flatWeights, from, line, elements / line, loops, steps}, loop);
}

namespace {

struct LowerConvPass : sardonyx::impl::CPULowerConvBase<LowerConvPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<cpu::ConvOp> root = findRoot<cpu::ConvOp>(func, "contraction");
    if (failed(root))
      return signalPassFailure();
    if (!*root)
      return;
    ConvFacts facts(*root, cpu::getTargetOrDefault(func));
    auto plan = func->getAttrOfType<ConvPlanAttr>(kPlanAttr);
    if (!plan)
      plan = selectConvPlan(facts);
    if (std::string reason = whyNot(facts, plan); !reason.empty()) {
      emitError(root->getLoc()) << describeMisfit(plan, func.getName(), reason);
      return signalPassFailure();
    }
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    ConvEmitter emitter(facts, plan, body);
    if (failed(emitKernel(func, *root, body, emitter)))
      signalPassFailure();
  }
};

} // namespace
