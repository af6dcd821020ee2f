//===- Equalize.cpp - Equal ranges of channels from layer to layer --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cross-layer equalisation (Nagel et al., "Data-Free Quantization Through
// Weight Equalization and Bias Correction", arXiv:1906.04721).
//
//===----------------------------------------------------------------------===//

#include "WeightMath.h"
#include "sardonyx/Transforms/Passes.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXEQUALIZE
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Two layers, and what lies between them.
struct Pair {
  WeightedOp first, second;
  /// Constants that are added to the channels on the way.
  SmallVector<OpOperand *> addends;
};

/// Whether f(s * x) is s * f(x) for positive s, channel by channel. Channels
/// lie along the last dimension or the second one.
bool isHomogeneous(Operation *op, bool alongLast) {
  if (isa<onnx::ReluOp, onnx::LeakyReluOp, onnx::IdentityOp>(op))
    return true;
  if (alongLast)
    return false;
  if (auto pool = dyn_cast<onnx::MaxPoolOp>(op))
    return pool->getNumResults() == 1 || pool->getResult(1).use_empty();
  return isa<onnx::AveragePoolOp, onnx::GlobalAveragePoolOp,
             onnx::GlobalMaxPoolOp>(op);
}

/// A Flatten that leaves one number of each channel along the last dimension.
bool keepsChannels(Operation *op) {
  auto flatten = dyn_cast<onnx::FlattenOp>(op);
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  return flatten && flatten.getAxis() == 1 && type && type.getRank() > 1 &&
         llvm::all_of(type.getShape().drop_front(2),
                      [](int64_t size) { return size == 1; });
}

/// Moves what makes `value`, which follows from constants, before `place`.
void hoist(Value value, Operation *place) {
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != place->getBlock() || op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    hoist(operand, place);
  op->moveBefore(place);
}

/// The constant that `op` adds to `value`, if it is one number for each of
/// `channels` that lie along the last dimension.
OpOperand *getChannelAddend(Operation *op, Value value, int64_t channels) {
  if (!isa<onnx::AddOp>(op))
    return nullptr;
  OpOperand &other = op->getOpOperand(op->getOperand(0) == value ? 1 : 0);
  RankedTensorType type = getWeightType(other.get());
  if (!type || type.getRank() == 0 || type.getNumElements() != channels ||
      type.getShape().back() != channels ||
      op->getResult(0).getType() != value.getType())
    return nullptr;
  return &other;
}

/// The layer that alone reads what `first` makes.
std::optional<Pair> findPair(const WeightedOp &first) {
  Pair pair{first, first, {}};
  bool alongLast = isa<onnx::MatMulOp, onnx::GemmOp>(first.op);
  Value value = first.op->getResult(0);
  while (value.hasOneUse()) {
    OpOperand &use = *value.getUses().begin();
    Operation *reader = use.getOwner();
    if (reader->getBlock() != first.op->getBlock())
      return std::nullopt;
    OpOperand *addend =
        alongLast ? getChannelAddend(reader, value, first.countOutputs())
                  : nullptr;
    const bool flattens = !alongLast && keepsChannels(reader);
    if (addend)
      pair.addends.push_back(addend);
    if (addend || flattens ||
        (use.getOperandNumber() == 0 && isHomogeneous(reader, alongLast))) {
      alongLast |= flattens;
      value = reader->getResult(0);
      continue;
    }
    std::optional<WeightedOp> second = WeightedOp::get(reader);
    if (!second || use.getOperandNumber() != 0 ||
        isa<onnx::MatMulOp, onnx::GemmOp>(reader) != alongLast)
      return std::nullopt;
    if (auto gemm = dyn_cast<onnx::GemmOp>(reader); gemm && gemm.getTransA())
      return std::nullopt;
    pair.second = *second;
    // Channels of a grouped ConvTranspose's input lie along one dimension.
    const int64_t inputs =
        second->type.getDimSize(second->depthDim) *
        (isa<onnx::ConvTransposeOp>(reader) ? 1 : second->groups);
    if (inputs != first.countOutputs())
      return std::nullopt;
    return pair;
  }
  return std::nullopt;
}

class Equalizer {
public:
  Equalizer(ImplicitLocOpBuilder &b, const Pair &pair)
      : math(b), pair(pair), outputs(pair.first.countOutputs()) {}

  void run() {
    Operation *place = pair.first.op;
    hoist(pair.second.weight->get(), place);
    for (OpOperand *addend : pair.addends)
      hoist(addend->get(), place);
    Value first = pair.first.weight->get(), second = pair.second.weight->get();
    Value large = getRangesOfOutputs(), next = getRangesOfInputs();
    // A channel that is zero on one side stays.
    Value both = math.binary<onnx::MulOp>(large, next);
    Value ratio = math.binary<onnx::DivOp>(large, next);
    Value scale =
        math.select(math.isPositive(both), math.unary<onnx::SqrtOp>(ratio),
                    math.scalar(large, 1));
    pair.first.weight->set(
        math.binary<onnx::DivOp>(first, alongOutputs(scale)));
    pair.second.weight->set(scaleInputs(second, scale));
    if (Value bias = pair.first.getBias())
      pair.first.op->setOperand(2, math.binary<onnx::DivOp>(bias, scale));
    for (OpOperand *addend : pair.addends)
      addend->set(math.binary<onnx::DivOp>(addend->get(), scale));
  }

private:
  /// [channels], the largest magnitude of what makes each.
  Value getRangesOfOutputs() {
    const WeightedOp &op = pair.first;
    const int64_t rank = op.type.getRank();
    Value weight = op.weight->get();
    if (!isa<onnx::ConvTransposeOp>(op.op))
      return math.reshape(
          math.largest(weight, getOtherDims(rank, op.outputDim)), {outputs});
    // [groups, inputs, outputs of a group, window...]
    return math.reshape(
        math.largest(splitGroups(weight, op), getOtherDims(rank + 1, {0, 2})),
        {outputs});
  }
  /// A number for each output, to be broadcast with the first weight.
  Value alongOutputs(Value scale) {
    const WeightedOp &op = pair.first;
    SmallVector<int64_t> shape(op.type.getRank(), 1);
    shape[op.outputDim] = op.type.getDimSize(op.outputDim);
    if (!isa<onnx::ConvTransposeOp>(op.op) || op.groups == 1)
      return math.reshape(scale, shape);
    // Every row of the weight belongs to one group.
    SmallVector<int64_t> full(op.type.getRank() + 1, 1);
    full[0] = op.groups, full[2] = op.type.getDimSize(1);
    Value grouped = math.reshape(scale, full);
    SmallVector<int64_t> ones(full.size(), 1);
    ones[0] = op.groups, ones[1] = op.type.getDimSize(0) / op.groups;
    Value spread = math.binary<onnx::MulOp>(grouped, unit(scale, ones));
    shape[0] = op.type.getDimSize(0), shape[1] = op.type.getDimSize(1);
    return math.reshape(spread, shape);
  }
  /// [channels], the largest magnitude of what each is multiplied by.
  Value getRangesOfInputs() {
    const WeightedOp &op = pair.second;
    const int64_t rank = op.type.getRank();
    Value weight = op.weight->get();
    if (op.groups == 1 || isa<onnx::ConvTransposeOp>(op.op))
      return math.reshape(math.largest(weight, getOtherDims(rank, op.depthDim)),
                          {outputs});
    // [groups, outputs of a group, inputs, window...]
    return math.reshape(
        math.largest(splitGroups(weight, op), getOtherDims(rank + 1, {0, 2})),
        {outputs});
  }
  /// The second weight times a number for each of its inputs.
  Value scaleInputs(Value weight, Value scale) {
    const WeightedOp &op = pair.second;
    if (op.groups == 1 || isa<onnx::ConvTransposeOp>(op.op)) {
      SmallVector<int64_t> shape(op.type.getRank(), 1);
      shape[op.depthDim] = outputs;
      return math.binary<onnx::MulOp>(weight, math.reshape(scale, shape));
    }
    SmallVector<int64_t> shape(op.type.getRank() + 1, 1);
    shape[0] = op.groups, shape[2] = op.type.getDimSize(1);
    Value scaled = math.binary<onnx::MulOp>(splitGroups(weight, op),
                                            math.reshape(scale, shape));
    return math.reshape(scaled, op.type.getShape());
  }

  /// [groups, rows of a group, ...]
  Value splitGroups(Value weight, const WeightedOp &op) {
    SmallVector<int64_t> shape(op.type.getShape());
    shape[0] /= op.groups;
    shape.insert(shape.begin(), op.groups);
    return math.reshape(weight, shape);
  }
  Value unit(Value like, ArrayRef<int64_t> shape) {
    auto element = cast<RankedTensorType>(like.getType()).getElementType();
    Value zeros = math.zeros(element, shape);
    return math.binary<onnx::AddOp>(zeros, math.scalar(zeros, 1));
  }

  WeightMath math;
  const Pair &pair;
  int64_t outputs;
};

struct OnnxEqualizePass : sardonyx::impl::OnnxEqualizeBase<OnnxEqualizePass> {
  using OnnxEqualizeBase::OnnxEqualizeBase;

  void runOnOperation() override {
    for (unsigned i = 0; i < iterations; ++i)
      getOperation().walk([](Operation *op) {
        std::optional<WeightedOp> first = WeightedOp::get(op);
        if (!first)
          return;
        // alpha and beta scale the product and the bias alike or not at all.
        if (auto gemm = dyn_cast<onnx::GemmOp>(op);
            gemm && first->getBias() &&
            first->getBias().getType() !=
                RankedTensorType::get({first->countOutputs()},
                                      first->type.getElementType()))
          return;
        if (Value bias = first->getBias(); bias && !isConstantOnly(bias))
          return;
        std::optional<Pair> pair = findPair(*first);
        if (!pair || pair->first.type.getElementType() !=
                         pair->second.type.getElementType())
          return;
        ImplicitLocOpBuilder b(op->getLoc(), op);
        Equalizer(b, *pair).run();
      });
  }
};

} // namespace
