//===- SplitChannels.cpp - Keep what is between two operators in the cache ===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/Passes.h"

#include "dialects/SDX/SDX.h"

#include "mlir/IR/PatternMatch.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXSPLITCHANNELS
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Operators from a convolution, which makes channels one by one, to the last
/// that takes them so. Each but the last has one use: the next one.
using Chain = SmallVector<Operation *>;

RankedTensorType getKnownType(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getElementType().isF32()
             ? type
             : RankedTensorType();
}

/// Whether `op` computes each element of its one tensor, the first operand; all
/// other operands are single elements.
bool isElementwise(Operation *op) {
  if (!op->hasTrait<onnx::Elementwise>() || op->getNumResults() != 1 ||
      op->getNumOperands() == 0 || !getKnownType(op->getOperand(0)) ||
      op->getOperand(0).getType() != op->getResult(0).getType())
    return false;
  return llvm::all_of(op->getOperands().drop_front(), [](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return isa<NoneType>(operand.getType()) ||
           (type && type.hasStaticShape() && type.getNumElements() == 1);
  });
}

/// Whether `conv` makes a picture of some channels, for each of which its
/// weights and its bias have one entry, as they have in any valid model.
bool hasEntryForChannel(onnx::ConvOp conv) {
  RankedTensorType out = getKnownType(conv->getResult(0));
  if (!out || out.getRank() != 4 || out.getDimSize(1) == 0)
    return false;
  return llvm::all_of(conv->getOperands().drop_front(), [&](Value operand) {
    if (!isa<RankedTensorType>(operand.getType()))
      return isa<NoneType>(operand.getType());
    RankedTensorType type = getKnownType(operand);
    return type && type.getRank() > 0 &&
           type.getDimSize(0) == out.getDimSize(1);
  });
}

/// Whether each channel of the result is made of the same channel of the input.
bool isByChannel(Operation *op) {
  if (auto conv = dyn_cast<onnx::ConvOp>(op)) {
    RankedTensorType in = getKnownType(conv.getX());
    return in && in.getRank() == 4 && conv.getGroup() > 1 &&
           in.getDimSize(1) == conv.getGroup() && hasEntryForChannel(conv) &&
           getKnownType(conv.getW()).getDimSize(0) == conv.getGroup();
  }
  return isa<onnx::MaxPoolOp, onnx::AveragePoolOp>(op) &&
         getKnownType(op->getOperand(0)) && getKnownType(op->getResult(0)) &&
         llvm::all_of(op->getResults().drop_front(),
                      [](Value result) { return result.use_empty(); });
}

/// Whether `conv` can make some of its channels for little more than their
/// share: each time, its inputs are packed anew.
bool isCheapInParts(onnx::ConvOp conv) {
  constexpr int64_t kFewInputs = 32;
  if (conv.getGroup() != 1 || !hasEntryForChannel(conv))
    return false;
  RankedTensorType weights = getKnownType(conv.getW());
  if (weights.getRank() != 4)
    return false;
  int64_t inputs = weights.getNumElements() / weights.getDimSize(0);
  auto isOne = [](int64_t size) { return size == 1; };
  std::optional<ArrayRef<int64_t>> strides = conv.getStrides();
  bool isPointwise = llvm::all_of(weights.getShape().drop_front(2), isOne) &&
                     (!strides || llvm::all_of(*strides, isOne));
  return isPointwise || inputs <= kFewInputs;
}

/// The chain around `op`, which takes channels one by one; empty if there is
/// none.
Chain findChain(Operation *op) {
  Chain chain = {op};
  for (Operation *maker = op->getOperand(0).getDefiningOp();;
       maker = maker->getOperand(0).getDefiningOp()) {
    if (!maker || maker->getNumResults() != 1 ||
        !maker->getResult(0).hasOneUse() || maker->getBlock() != op->getBlock())
      return {};
    chain.push_back(maker);
    if (isa<onnx::ConvOp>(maker))
      break;
    if (!isElementwise(maker))
      return {};
  }
  if (!isCheapInParts(cast<onnx::ConvOp>(chain.back())))
    return {};
  std::reverse(chain.begin(), chain.end());
  while (chain.back()->getResult(0).hasOneUse()) {
    Operation *user = *chain.back()->getResult(0).user_begin();
    if (!isElementwise(user) || user->getBlock() != op->getBlock() ||
        user->getOperand(0) != chain.back()->getResult(0))
      break;
    chain.push_back(user);
  }
  return chain;
}

/// Into how many parts of equally many channels: the fewest of which one fits
/// in the cache, what is between the operators and what comes of it; 1 if all
/// fit, or none would with enough channels.
int64_t chooseParts(const Chain &chain, int64_t cacheBytes) {
  constexpr int64_t kFewestChannels = 16, kMultiple = 8;
  RankedTensorType type = getKnownType(chain.front()->getResult(0));
  int64_t channels = type.getDimSize(1), bytes = 0;
  for (Operation *end : {chain.front(), chain.back()})
    bytes += getKnownType(end->getResult(0)).getNumElements() * sizeof(float);
  if (bytes <= cacheBytes)
    return 1;
  for (int64_t parts = 2; parts * kFewestChannels <= channels; ++parts)
    if (channels % (parts * kMultiple) == 0 && bytes / parts <= cacheBytes)
      return parts;
  return 1;
}

RankedTensorType getPartType(Value value, int64_t dim, int64_t parts) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= parts;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Parts of weights or a bias along the first dimension.
ValueRange createParts(OpBuilder &b, Location loc, Value value, int64_t parts) {
  SmallVector<Type> types(parts, getPartType(value, 0, parts));
  return onnx::SplitOp::create(
             b, loc, types, value, /*split=*/Value(), /*axis=*/0,
             b.getIntegerAttr(b.getIntegerType(64, /*isSigned=*/true), parts))
      ->getResults();
}

void split(OpBuilder &b, const Chain &chain, int64_t parts) {
  Operation *last = chain.back();
  b.setInsertionPoint(last);
  // Weights and biases.
  DenseMap<Value, ValueRange> weights;
  for (Operation *op : chain)
    if (isa<onnx::ConvOp>(op))
      for (Value operand : op->getOperands().drop_front())
        if (isa<RankedTensorType>(operand.getType()) &&
            !weights.contains(operand))
          weights[operand] = createParts(b, op->getLoc(), operand, parts);
  SmallVector<Value> results;
  for (int64_t part = 0; part < parts; ++part) {
    IRMapping mapping;
    for (const auto &[whole, split] : weights)
      mapping.map(whole, split[part]);
    for (Operation *op : chain) {
      Operation *copy = b.clone(*op, mapping);
      for (OpResult result : copy->getResults())
        if (isa<RankedTensorType>(result.getType()))
          result.setType(getPartType(result, 1, parts));
      if (auto conv = dyn_cast<onnx::ConvOp>(copy); conv && conv.getGroup() > 1)
        conv.setGroup(conv.getGroup() / parts);
    }
    results.push_back(mapping.lookup(last->getResult(0)));
  }
  auto whole =
      onnx::ConcatOp::create(b, last->getLoc(), last->getResult(0).getType(),
                             results, /*axis=*/int64_t(1));
  last->getResult(0).replaceAllUsesWith(whole->getResult(0));
  for (Operation *op : llvm::reverse(chain))
    op->erase();
}

struct OnnxSplitChannelsPass
    : sardonyx::impl::OnnxSplitChannelsBase<OnnxSplitChannelsPass> {
  using Base::Base;

  void runOnOperation() override {
    sdx::TargetAttrInterface target = sdx::getTarget(getOperation());
    int64_t cacheBytes = target ? target.getCacheBytes() : 0;
    if (!cacheBytes)
      return;
    SmallVector<Operation *> candidates;
    getOperation()->walk([&](Operation *op) {
      if (isByChannel(op))
        candidates.push_back(op);
    });
    OpBuilder b(&getContext());
    // Two of them are never in one chain: a convolution is in between.
    for (Operation *op : candidates)
      if (Chain chain = findChain(op); !chain.empty())
        if (int64_t parts = chooseParts(chain, cacheBytes); parts > 1)
          split(b, chain, parts);
  }
};

} // namespace
