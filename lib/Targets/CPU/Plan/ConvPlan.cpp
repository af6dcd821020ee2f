//===- ConvPlan.cpp - How convolutions are computed -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/ConvPlan.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

ConvFacts::ConvFacts(ConvOp op, TargetAttr target) : target(target), op(op) {
  ArrayRef<int64_t> input = op.getInput().getType().getShape();
  ArrayRef<int64_t> init = op.getInit().getType().getShape();
  in.assign(input.begin() + 2, input.end());
  out.assign(init.begin() + 2, init.end());
  const int64_t group = op.getGroup();
  images = init[0];
  channels = isKnown(input[1]) ? input[1] / group : input[1];
  filters = isKnown(init[1]) ? init[1] / group : init[1];
  positions = ShapedType::isDynamicShape(out) ? ShapedType::kDynamic
                                              : ShapedType::getNumElements(out);
  depth = op.getWeights().getType().getDimSize(2);
  if (op.hasSplitWeights())
    depth = isKnown(channels) ? channels * countTaps() : channels;
}

bool ConvFacts::hasKnownSizes() const {
  auto isThere = [](int64_t size) { return isKnown(size) && size > 0; };
  return llvm::all_of(in, isThere) && llvm::all_of(out, isThere) &&
         isThere(channels);
}

bool ConvFacts::hasSizesToSplit() const {
  auto isStatic = [](ShapedType type) {
    return !ShapedType::isDynamicShape(type.getShape().drop_front());
  };
  return getOp().getWeights().getType().hasStaticShape() &&
         isStatic(getOp().getInput().getType()) &&
         isStatic(getOp().getInit().getType());
}

int64_t ConvFacts::countTaps() const {
  return ShapedType::getNumElements(getOp().getKernelShape());
}

bool ConvFacts::hasTapPhases() const {
  if (isKnown(in[1]) && isKnown(out[1]))
    return in[1] != 2 * out[1];
  // With so much padding the output has half of the input's columns, or more.
  ConvOp op = getOp();
  return op.getPadsBegin()[1] + op.getPadsEnd()[1] <
         (op.getKernelShape()[1] - 1) * op.getDilations()[1];
}

/// The bounds of the row buffer's form: what the emitter's loops are made for.
static constexpr int64_t kMaxBufferedChannels = 4, kMaxBufferedKernel = 8,
                         kMinBufferedLanes = 4;

static std::string whyNotRowBuffer(const ConvFacts &facts) {
  ConvOp op = facts.getOp();
  if (op.getNumSpatialDims() != 2 || op.getGroup() != 1)
    return "it is not of two dimensions and one group";
  if (facts.target.getLanes() < kMinBufferedLanes)
    return "vectors have fewer than 4 lanes";
  if (op.getStrides()[1] > 2)
    return "its columns have a stride of more than 2";
  if (op.getDilations()[0] != 1 || op.getDilations()[1] != 1)
    return "it has dilations";
  if (op.getKernelShape()[1] > kMaxBufferedKernel)
    return "its kernel has more than 8 columns";
  if (facts.countTaps() == 1)
    return "its kernel has one tap";
  if (op.getFilters().getInLanes())
    return "its filters lie in the lanes of vectors";
  if (!isKnown(facts.channels) || facts.channels < 1 ||
      facts.channels > kMaxBufferedChannels)
    return "it has not 1 to 4 channels";
  if (!isKnown(facts.filters) || facts.filters < 1)
    return "it is not known how many filters it has";
  return "";
}

/// Whether rows of inputs, of two dimensions, are long enough for vectors, and
/// stay in the first cache.
static bool paysRowBuffer(const ConvFacts &facts) {
  ConvOp op = facts.getOp();
  // Most pictures of open sizes are wide enough, and their rows fit.
  const int64_t width = facts.out[1], lanes = facts.target.getLanes();
  if (!isKnown(width))
    return true;
  const int64_t stride = op.getStrides()[1];
  int64_t length =
      stride * llvm::alignTo(llvm::alignTo(width, lanes) +
                                 (op.getKernelShape()[1] - 1) / stride,
                             lanes);
  return width >= 2 * lanes &&
         facts.target.getBytesBesideTile() / int64_t(sizeof(float)) >=
             facts.channels * length * op.getKernelShape()[0];
}

static std::string whyNotOutputChannels(const ConvFacts &facts) {
  if (!facts.getOp().getFilters().getInLanes())
    return "its filters do not lie in the lanes of vectors";
  if (!isKnown(facts.positions) || facts.positions > kMaxOutputChannelPositions)
    return "it has not at most 64 output positions";
  return "";
}

static std::string whyNotPolyphase(const ConvFacts &facts) {
  ConvOp op = facts.getOp();
  // Planes of many taps would be many times the input.
  constexpr int64_t kMaxTapPhases = 7;
  if (op.getNumSpatialDims() != 2 || op.getStrides()[1] != 2 ||
      op.getStrides()[0] > 2)
    return "its columns have no stride of 2, or its rows one of more";
  auto isEmpty = [](int64_t size) { return size == 0; };
  if (!isKnown(facts.channels) || facts.channels == 0 ||
      llvm::any_of(facts.in, isEmpty) || llvm::any_of(facts.out, isEmpty))
    return "its channels are not known, or it has no elements";
  if (facts.hasTapPhases() && op.getKernelShape()[1] > kMaxTapPhases)
    return "its kernel has more than 7 columns";
  return "";
}

/// Why the form does not fit.
static std::string whyNotForm(const ConvFacts &facts, ConvPlanAttr plan) {
  const ConvForm form = plan.getForm();
  FiltersAttr filters = facts.getOp().getFilters();
  if ((form == ConvForm::Winograd) != (filters.getAlgorithm() != nullptr))
    return "filters are transformed for Winograd's algorithm, and only for it";
  if ((form == ConvForm::Bf16x3) != filters.isSplit())
    return "filters are sums of bf16, and only for 'bf16x3'";
  constexpr int64_t kSplitLanes = 16;
  if (form == ConvForm::Bf16x3 &&
      (facts.target.getLanes() != kSplitLanes || !facts.hasSizesToSplit()))
    return "filters that are sums of bf16 are for vectors of 16 numbers and "
           "for "
           "sizes that are known";
  if (plan.getPolyphase()) {
    if (form != ConvForm::Im2col && form != ConvForm::Bf16x3)
      return "polyphase inputs are for 'im2col' and 'bf16x3'";
    return whyNotPolyphase(facts);
  }
  if (form == ConvForm::RowBuffer)
    return whyNotRowBuffer(facts);
  if (form == ConvForm::OutputChannels)
    return whyNotOutputChannels(facts);
  constexpr int64_t kMaxDepthwiseFilters = 2;
  if (form == ConvForm::Depthwise &&
      (facts.channels != 1 || !isKnown(facts.filters) ||
       facts.filters > kMaxDepthwiseFilters))
    return "its groups have not one channel and one or two filters";
  return "";
}

std::string cpu::whyNot(const ConvFacts &facts, ConvPlanAttr plan) {
  std::string reason = whyNotForm(facts, plan);
  return reason.empty() ? whyNotNumbers(facts, plan) : reason;
}

/// The fastest form that is known to fit.
static ConvPlanAttr selectForm(const ConvFacts &facts) {
  auto plan = [&](ConvForm form, bool polyphase = false) {
    return ConvPlanAttr::get(facts.getOp().getContext(), form, polyphase);
  };
  auto fits = [&](ConvPlanAttr plan) {
    return whyNotForm(facts, plan).empty();
  };
  if (facts.getOp().getAlgorithm())
    return plan(ConvForm::Winograd);
  if (fits(plan(ConvForm::Depthwise)))
    return plan(ConvForm::Depthwise);
  const bool isOfChannels = fits(plan(ConvForm::OutputChannels));
  if (!isOfChannels && fits(plan(ConvForm::RowBuffer)) && paysRowBuffer(facts))
    return plan(ConvForm::RowBuffer);
  if (isOfChannels)
    return plan(ConvForm::OutputChannels);
  const ConvForm form =
      facts.getOp().hasSplitWeights() ? ConvForm::Bf16x3 : ConvForm::Im2col;
  return fits(plan(form, /*polyphase=*/true)) ? plan(form, /*polyphase=*/true)
                                              : plan(form);
}

ConvPlanAttr cpu::selectPlan(const ConvFacts &facts) {
  return completePlan(facts, selectForm(facts));
}
