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
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"
#include "Plan/Plan.h"

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

/// A tile of the plan; of forms whose tiles say no number, that of most.
static TileShape getTileShape(const ConvFacts &facts, ConvPlanAttr plan) {
  TileShape shape = facts.getTileShape();
  if (plan.getForm() != ConvForm::Winograd && plan.getTileRows())
    shape.rows = plan.getTileRows();
  return shape;
}

ConvEmitter::ConvEmitter(const ConvFacts &facts, ConvPlanAttr plan,
                         TileEvaluator &evaluator, const ConvOperands &operands)
    : facts(facts), plan(plan), op(facts.getOp()), target(facts.target),
      evaluator(evaluator), shape(getTileShape(facts, plan)),
      lanes(target.getLanes()), registers(target.countVectorRegisters()),
      spatial(op.getNumSpatialDims()), group(op.getGroup()),
      winograd(op.getAlgorithm()), input(operands.input),
      weights(operands.weights), flatInput(operands.flatInput),
      phases(operands.phases), allInputs(operands.allInputs),
      flatWeights(operands.flatWeights), inSizes(operands.inSizes),
      outPositions(operands.outPositions),
      groupChannels(operands.groupChannels),
      groupFilters(operands.groupFilters), depth(operands.depth),
      columns(plan.getColumns()) {}

LogicalResult ConvKernel::verify() {
  ConvOp op = facts.getOp();
  if (!KernelBody::hasBuffer(op.getInput()) ||
      !KernelBody::hasBuffer(op.getWeights()))
    return op.emitOpError("has an operand that is computed in its own kernel");
  if (op.getGroup() <= 0)
    return op.emitOpError("has no groups");
  return evaluator.verify(op.getInit());
}

void ConvKernel::emit(ImplicitLocOpBuilder &b) {
  IndexMath math(b);
  ConvOp op = facts.getOp();
  ConvOperands of;
  of.input = body.getBuffer(op.getInput());
  of.weights = body.getBuffer(op.getWeights());
  evaluator.prepare(b, op.getInit());
  of.flatInput = emitCollapse(b, of.input, 2);
  of.flatWeights = emitCollapse(b, of.weights, 0);
  of.outPositions = math.constant(1);
  for (int64_t d = 0; d < op.getNumSpatialDims(); ++d) {
    of.inSizes.push_back(math.dim(of.input, 2 + d));
    of.outPositions = math.mul(of.outPositions, evaluator.getSize(2 + d));
  }
  const int64_t group = op.getGroup();
  of.groupChannels = math.div(math.dim(of.input, 1), group);
  of.groupFilters = math.div(evaluator.getSize(1), group);
  of.depth = op.hasSplitWeights()
                 ? math.mul(of.groupChannels, facts.countTaps())
                 : math.dim(of.weights, 2);
  if (plan.getPolyphase())
    of.phases = ConvEmitter(facts, plan, evaluator, of).emitPolyphase(b);
  const ConvForm form = plan.getForm();
  if (form == ConvForm::Im2col || form == ConvForm::OutputChannels ||
      form == ConvForm::Bf16x3)
    of.allInputs = emitCollapse(b, of.phases ? of.phases : of.input, 0);
  ConvEmitter(facts, plan, evaluator, of).emit(b);
  if (of.phases)
    memref::DeallocOp::create(b, of.phases);
}

void ConvEmitter::emit(ImplicitLocOpBuilder &b) {
  switch (plan.getForm()) {
  case ConvForm::Winograd:
    return emitWinograd(b);
  case ConvForm::Depthwise:
    return emitDepthwise(b);
  case ConvForm::RowBuffer:
    return emitRowBuffer(b);
  case ConvForm::Bf16x3:
    return emitBf16x3(b);
  case ConvForm::OutputChannels:
    return emitOutputChannels(b);
  case ConvForm::Im2col:
    return emitIm2col(b);
  }
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
    FailureOr<ConvPlanAttr> plan = getPlan<ConvPlanAttr>(func, *root, facts);
    if (failed(plan))
      return signalPassFailure();
    func->removeAttr(kPlanAttr);
    KernelBody body(func);
    ConvKernel kernel(facts, *plan, body);
    if (failed(emitKernel(func, *root, body, kernel)))
      signalPassFailure();
  }
};

} // namespace
