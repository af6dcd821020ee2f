//===- QuantizedMovement.cpp - Quantised tensors through other ops --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DequantizeLinear moves below, and QuantizeLinear above, what copies elements
// or picks the largest or smallest ones, so that it is done on integers.
//
// Both functions look at one element at a time, so they commute with whatever
// copies elements, if the parameters are the same for all. They do not decrease
// where the scale is positive: f(max(a, b)) = max(f(a), f(b)).
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// An operation whose results hold elements of its operands.
struct Movement {
  /// The operands whose elements they are.
  SmallVector<unsigned> data;
  /// Whether it compares elements, which only integers of 8 bits allow.
  bool compares = false;

  static std::optional<Movement> get(Operation *op);
};

} // namespace

/// Whether each window of a MaxPool sees an element of the input: one that sees
/// pads only gives the least value of the type, which stands for another float.
static bool seesInput(onnx::MaxPoolOp op) {
  auto isOne = [](int64_t n) { return n == 1; };
  if (op.getDilations() && !llvm::all_of(*op.getDilations(), isOne))
    return false;
  if (!op.getPads())
    return true;
  ArrayRef<int64_t> kernel = op.getKernelShape(), pads = *op.getPads();
  if (pads.size() != 2 * kernel.size())
    return false;
  for (auto [i, pad] : llvm::enumerate(pads))
    if (pad < 0 || pad >= kernel[i % kernel.size()])
      return false;
  return true;
}

std::optional<Movement> Movement::get(Operation *op) {
  using namespace onnx;
  auto all = llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()));
  if (isa<DepthToSpaceOp, ExpandOp, FlattenOp, GatherElementsOp, GatherNDOp,
          GatherOp, IdentityOp, PadOp, ReshapeOp, SliceOp, SpaceToDepthOp,
          SplitOp, SqueezeOp, TileOp, TransposeOp, UnsqueezeOp>(op))
    return Movement{{0}};
  if (auto resize = dyn_cast<ResizeOp>(op))
    return resize.getMode() == "nearest" &&
                   resize.getCoordinateTransformationMode() !=
                       "tf_crop_and_resize"
               ? std::optional(Movement{{0}})
               : std::nullopt;
  if (isa<ConcatOp>(op))
    return Movement{all};
  if (isa<MaxOp, MinOp>(op))
    return Movement{all, /*compares=*/true};
  if (isa<ReduceMaxOp, ReduceMinOp>(op))
    return Movement{{0}, /*compares=*/true};
  if (auto pool = dyn_cast<MaxPoolOp>(op))
    if ((pool->getNumResults() < 2 || pool->getResult(1).use_empty()) &&
        seesInput(pool))
      return Movement{{0}, /*compares=*/true};
  return std::nullopt;
}

/// The dimension of the result that is dimension `axis` of the operand, or the
/// other way round; nothing if there is none.
static std::optional<int64_t> mapAxis(Operation *op, int64_t axis,
                                      bool toOperand) {
  if (isa<onnx::IdentityOp>(op))
    return axis;
  auto transpose = dyn_cast<onnx::TransposeOp>(op);
  auto type = transpose
                  ? dyn_cast<RankedTensorType>(transpose.getData().getType())
                  : RankedTensorType();
  if (!type)
    return std::nullopt;
  int64_t rank = type.getRank();
  if (!transpose.getPerm())
    return rank - 1 - axis;
  ArrayRef<int64_t> perm = *transpose.getPerm();
  if (static_cast<int64_t>(perm.size()) != rank)
    return std::nullopt;
  if (toOperand)
    return perm[axis];
  const int64_t *found = llvm::find(perm, axis);
  return found == perm.end() ? std::nullopt
                             : std::optional<int64_t>(found - perm.begin());
}

/// How the other side of `op` is quantised; nothing if the parameters cannot
/// be the same there.
static std::optional<Quantization> carryOver(Operation *op,
                                             const Movement &movement,
                                             Quantization given,
                                             bool toOperand) {
  if (movement.compares &&
      (!given.isIncreasing() || given.integer.getWidth() != 8))
    return std::nullopt;
  if (given.axis) {
    given.axis = mapAxis(op, *given.axis, toOperand);
    if (!given.axis)
      return std::nullopt;
  }
  return given;
}

/// What a Pad puts beside the data, as the integer that it is or becomes;
/// nothing if there is no one integer. `exactly`: it must stand for the float.
static std::optional<int64_t>
quantizePadding(onnx::PadOp op, const Quantization &given, bool exactly) {
  float number = 0;
  if (Value value = op.getConstantValue()) {
    auto floats = readFloats(value);
    if (!floats || floats->size() != 1)
      return std::nullopt;
    number = floats->front();
  }
  return exactly ? given.findExactly(number) : given.quantize(number);
}

/// `op` again, on integers: its operands of `movement` are `data`. Null, and
/// nothing is made, where a Pad's constant is no integer.
static Operation *cloneOnIntegers(RewriterBase &b, Operation *op,
                                  const Movement &movement, ValueRange data,
                                  const Quantization &given, bool exactly) {
  Value padding;
  auto pad = dyn_cast<onnx::PadOp>(op);
  if (pad && pad.getMode() == "constant") {
    auto number = quantizePadding(pad, given, exactly);
    if (!number)
      return nullptr;
    padding = given.createInteger(b, op->getLoc(), *number);
  }
  Operation *copy = b.clone(*op);
  for (auto [index, value] : llvm::zip_equal(movement.data, data))
    copy->setOperand(index, value);
  if (padding)
    cast<onnx::PadOp>(copy).getConstantValueMutable().assign(padding);
  for (Value result : copy->getResults())
    if (auto type = dyn_cast<TensorType>(result.getType());
        type && type.getElementType().isF32())
      result.setType(type.clone(given.integer));
  return copy;
}

/// Whether a reduction may be of no elements: what it makes then is infinite,
/// and no integer stands for that.
static bool mayReduceNothing(Operation *op) {
  if (!isa<onnx::ReduceMaxOp, onnx::ReduceMinOp>(op))
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  return !type || !type.hasStaticShape() || type.getNumElements() == 0;
}

namespace {

/// op(DQ(x)) becomes DQ(op(x)).
struct DequantizeLater : RewritePattern {
  explicit DequantizeLater(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    std::optional<Movement> movement = Movement::get(op);
    if (!movement || movement->data.empty() || mayReduceNothing(op) ||
        !llvm::all_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
      return failure();
    std::optional<Quantization> given;
    SmallVector<Value> data;
    for (unsigned index : movement->data) {
      auto each = Quantization::ofDequantized(op->getOperand(index));
      if (!each || (given && !given->isSame(*each)))
        return rewriter.notifyMatchFailure(op, "not all dequantised alike");
      given = each;
      data.push_back(op->getOperand(index)
                         .getDefiningOp<onnx::DequantizeLinearOp>()
                         .getX());
    }
    auto result = carryOver(op, *movement, *given, /*toOperand=*/false);
    if (!result)
      return rewriter.notifyMatchFailure(op, "parameters cannot pass");
    Operation *copy = cloneOnIntegers(rewriter, op, *movement, data, *given,
                                      /*exactly=*/true);
    if (!copy)
      return rewriter.notifyMatchFailure(op, "padding is no integer");
    SmallVector<Value> results;
    for (auto [old, value] : llvm::zip(op->getResults(), copy->getResults()))
      results.push_back(old.use_empty() ? value
                                        : result->createDequantize(
                                              rewriter, op->getLoc(), value));
    for (auto [old, value] : llvm::zip(op->getResults(), results))
      if (!old.use_empty())
        rewriter.replaceAllUsesWith(old, value);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Q(op(x)) becomes op(Q(x)), where that lets what makes x write integers.
struct QuantizeEarlier : OpRewritePattern<onnx::QuantizeLinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::QuantizeLinearOp op,
                                PatternRewriter &rewriter) const override {
    auto from = dyn_cast<OpResult>(op.getX());
    auto movement =
        from ? Movement::get(from.getOwner()) : std::optional<Movement>();
    auto given = Quantization::get(op);
    if (!movement || !given)
      return rewriter.notifyMatchFailure(op, "reads no moved elements");
    Operation *mover = from.getOwner();
    auto earlier = carryOver(mover, *movement, *given, /*toOperand=*/true);
    if (!earlier || !isWorthwhile(mover, *movement, from) ||
        !llvm::all_of(mover->getUsers(), [&](Operation *user) {
          auto other = dyn_cast<onnx::QuantizeLinearOp>(user);
          auto its =
              other ? Quantization::get(other) : std::optional<Quantization>();
          return its && its->isSame(*given);
        }))
      return rewriter.notifyMatchFailure(op, "would not help");
    auto pad = dyn_cast<onnx::PadOp>(mover);
    if (pad && pad.getMode() == "constant" &&
        !quantizePadding(pad, *given, /*exactly=*/false))
      return rewriter.notifyMatchFailure(op, "padding is not known");
    SmallVector<Value> data;
    for (unsigned index : movement->data)
      data.push_back(earlier->createQuantize(rewriter, op.getLoc(),
                                             mover->getOperand(index)));
    Operation *copy = cloneOnIntegers(rewriter, mover, *movement, data, *given,
                                      /*exactly=*/false);
    rewriter.replaceOp(op, copy->getResult(from.getResultNumber()));
    return success();
  }

private:
  /// What reads a small part of a tensor would quantise much for nothing, and
  /// inputs and constants have nobody who could write integers instead.
  static bool isWorthwhile(Operation *op, const Movement &movement,
                           Value result) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    constexpr int64_t kMostTimes = 4;
    int64_t elements = 0;
    bool isComputed = false;
    for (unsigned index : movement.data) {
      Operation *producer = op->getOperand(index).getDefiningOp();
      isComputed |= producer && !producer->hasTrait<OpTrait::ConstantLike>();
      auto data = dyn_cast<RankedTensorType>(op->getOperand(index).getType());
      if (!data)
        return false;
      if (data.hasStaticShape())
        elements += data.getNumElements();
    }
    bool isSmallPart = type && type.hasStaticShape() &&
                       !isa<onnx::SplitOp>(op) &&
                       elements / kMostTimes > type.getNumElements();
    return isComputed && !isSmallPart;
  }
};

/// What tells where elements are, or puts them in order, does so by integers,
/// of which no two stand for the same float.
struct CompareIntegers : RewritePattern {
  explicit CompareIntegers(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<onnx::ArgMaxOp, onnx::ArgMinOp, onnx::TopKOp>(op) ||
        !isa<TensorType>(op->getResult(0).getType()))
      return failure();
    auto given = Quantization::ofDequantized(op->getOperand(0));
    if (!given || given->axis || given->integer.getWidth() != 8 ||
        !given->isIncreasing())
      return rewriter.notifyMatchFailure(op, "orders no dequantised bytes");
    Value integers =
        op->getOperand(0).getDefiningOp<onnx::DequantizeLinearOp>().getX();
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(0, integers); });
    if (!isa<onnx::TopKOp>(op))
      return success();
    Value values = op->getResult(0);
    auto type = cast<TensorType>(values.getType());
    rewriter.modifyOpInPlace(
        op, [&] { values.setType(type.clone(given->integer)); });
    rewriter.setInsertionPointAfter(op);
    Value floats = given->createDequantize(rewriter, op->getLoc(), values);
    rewriter.replaceAllUsesExcept(values, floats, floats.getDefiningOp());
    return success();
  }
};

} // namespace

void sardonyx::populateQuantizedMovementPatterns(RewritePatternSet &patterns) {
  patterns.add<DequantizeLater, CompareIntegers>(patterns.getContext());
  patterns.add<QuantizeEarlier>(patterns.getContext());
}
