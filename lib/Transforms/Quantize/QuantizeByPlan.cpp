//===- QuantizeByPlan.cpp - Pairs of Quantize and DequantizeLinear --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizeModel.h"

#include "sardonyx/UnknownName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace sardonyx;

namespace {

/// How a tensor is quantised, as operands.
struct Parameters {
  Value scale, zeroPoint;
  Type type;
  int64_t axis = 1, block = 0;
};

class PlanApplier {
public:
  PlanApplier(Operation *root, const QuantizationPlan &plan)
      : root(root), plan(plan), values(getNamedValues(root)) {}

  LogicalResult run() {
    for (const std::string &node : plan.removed)
      if (failed(remove(node)))
        return failure();
    for (const auto &[name, tensor] : plan.tensors)
      if (tensor.shares.empty() && tensor.role != TensorPlan::Role::Bias &&
          failed(quantize(name, tensor)))
        return failure();
    for (const auto &[name, tensor] : plan.tensors)
      if (!tensor.shares.empty() && failed(share(name, tensor)))
        return failure();
    for (const auto &[name, tensor] : plan.tensors)
      if (tensor.role == TensorPlan::Role::Bias &&
          failed(quantizeBias(name, tensor)))
        return failure();
    return success();
  }

private:
  LogicalResult fail(const llvm::Twine &message) {
    return emitError(root->getLoc(), "onnx-quantize: ") << message;
  }

  FailureOr<Value> find(const std::string &name) {
    if (Value value = values.lookup(name))
      return value;
    std::vector<std::string> known;
    for (const auto &entry : values)
      known.push_back(entry.getKey().str());
    llvm::sort(known);
    return fail(unknownName("tensor", name, known));
  }

  /// Has a node's input take the place of its result.
  LogicalResult remove(const std::string &name) {
    Operation *found = nullptr;
    root->walk([&](Operation *op) {
      if (!found && op->getNumResults() == 1 && getNameOfNode(op) == name)
        found = op;
    });
    if (!found || found->getNumOperands() == 0 ||
        !found->getOperand(0).getDefiningOp())
      return fail("the plan removes node '" + name +
                  "', which the model has not, or whose input no node makes");
    Value input = found->getOperand(0), result = found->getResult(0);
    std::string tensor = getResultName(result).str();
    values.erase(getResultName(input));
    setResultName(input, tensor);
    values[tensor] = input;
    result.replaceAllUsesWith(input);
    found->erase();
    return success();
  }

  /// The operands for `like`, in front of what `b` makes next.
  FailureOr<Parameters> makeParameters(ImplicitLocOpBuilder &b,
                                       const std::string &name,
                                       const TensorPlan &tensor, Value like) {
    auto type = dyn_cast<RankedTensorType>(like.getType());
    auto element = type ? dyn_cast<FloatType>(type.getElementType()) : nullptr;
    if (!element || element.getWidth() < 16)
      return fail("tensor '" + name +
                  "' is no tensor of floats of a known rank");
    if (tensor.scale.empty())
      return fail("the plan has no scale for tensor '" + name +
                  "': it was left to the model that the plan is of (save the "
                  "plan itself)");
    if (!tensor.type || tensor.zeroPoint.size() != tensor.scale.size())
      return fail("the plan has no type or no zero point for tensor '" + name +
                  "'");
    Parameters result;
    result.type = tensor.type;
    result.block = tensor.block;
    const int64_t rank = type.getRank();
    result.axis = tensor.axis.value_or(1);
    if (tensor.axis && (result.axis < -rank || result.axis >= rank))
      return fail("tensor '" + name + "' has no dimension " +
                  llvm::Twine(result.axis));
    if (!fits(tensor, type))
      return fail("the plan's scale for tensor '" + name +
                  "' does not fit its shape");
    SmallVector<APFloat> scales;
    for (double scale : tensor.scale)
      scales.push_back(toFloat(scale, tensor.floatType));
    result.scale = onnx::createConstant(
        b, b.getLoc(),
        DenseElementsAttr::get(
            RankedTensorType::get(tensor.shape, tensor.floatType), scales));
    auto zeros = makeZeroPoint(tensor);
    if (!zeros)
      return fail("a zero point of tensor '" + name + "' is beyond its type");
    result.zeroPoint = onnx::createConstant(b, b.getLoc(), *zeros);
    return result;
  }

  /// Whether there is a scale for all, for each index, or for each block.
  static bool fits(const TensorPlan &tensor, RankedTensorType type) {
    ArrayRef<int64_t> shape = tensor.shape;
    if (shape.empty() && !tensor.block)
      return true;
    if (!tensor.axis)
      return false;
    const int64_t axis =
        *tensor.axis < 0 ? *tensor.axis + type.getRank() : *tensor.axis;
    auto agrees = [](int64_t size, int64_t wanted) {
      return ShapedType::isDynamic(size) || size == wanted;
    };
    if (!tensor.block)
      return shape.size() == 1 && agrees(type.getDimSize(axis), shape[0]);
    if (tensor.block < 1 || int64_t(shape.size()) != type.getRank())
      return false;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      const int64_t size = type.getDimSize(dim);
      if (ShapedType::isDynamic(size) ||
          shape[dim] !=
              (dim == axis ? llvm::divideCeil(size, tensor.block) : size))
        return false;
    }
    return true;
  }

  static std::optional<DenseElementsAttr>
  makeZeroPoint(const TensorPlan &tensor) {
    auto type = RankedTensorType::get(tensor.shape, tensor.type);
    if (auto element = dyn_cast<FloatType>(tensor.type)) {
      SmallVector<APFloat> zeros;
      for (int64_t zero : tensor.zeroPoint)
        zeros.push_back(toFloat(double(zero), element));
      return DenseElementsAttr::get(type, zeros);
    }
    auto element = cast<IntegerType>(tensor.type);
    SmallVector<APInt> zeros;
    for (int64_t zero : tensor.zeroPoint) {
      if (element.isUnsigned()
              ? zero < 0 || !llvm::isUIntN(element.getWidth(), zero)
              : !llvm::isIntN(element.getWidth(), zero))
        return std::nullopt;
      zeros.push_back(APInt(element.getWidth(), zero, !element.isUnsigned()));
    }
    return DenseElementsAttr::get(type, zeros);
  }

  static void setPlace(ImplicitLocOpBuilder &b, Value value) {
    b.setInsertionPointAfterValue(value);
    if (Operation *op = value.getDefiningOp())
      b.setLoc(op->getLoc());
  }

  LogicalResult quantize(const std::string &name, const TensorPlan &tensor) {
    FailureOr<Value> value = find(name);
    if (failed(value))
      return failure();
    ImplicitLocOpBuilder b(root->getLoc(), root->getContext());
    setPlace(b, *value);
    FailureOr<Parameters> made = makeParameters(b, name, tensor, *value);
    if (failed(made))
      return failure();
    parameters[name] = *made;
    insertPair(b, name, *value, *made);
    return success();
  }

  LogicalResult share(const std::string &name, const TensorPlan &tensor) {
    // One may take from one that takes, too.
    const std::string *source = &tensor.shares;
    for (size_t i = 0; i <= plan.tensors.size(); ++i) {
      if (auto found = parameters.find(*source); found != parameters.end())
        break;
      auto next = plan.tensors.find(*source);
      if (next == plan.tensors.end() || next->second.shares.empty())
        break;
      source = &next->second.shares;
    }
    auto found = plan.tensors.find(*source);
    if (found == plan.tensors.end() || !parameters.count(*source))
      return fail("tensor '" + name + "' takes the scale of '" + tensor.shares +
                  "', which has none");
    return quantize(name, found->second);
  }

  void insertPair(ImplicitLocOpBuilder &b, const std::string &name, Value value,
                  const Parameters &by) {
    WeightMath math(b);
    Value bytes = math.quantize(value, by.scale, by.zeroPoint, by.type, by.axis,
                                by.block);
    Value numbers =
        math.dequantize(bytes, by.scale, by.zeroPoint, by.axis, by.block);
    const bool isResult = llvm::any_of(value.getUsers(), [](Operation *user) {
      return isa<func::ReturnOp>(user);
    });
    value.replaceAllUsesExcept(numbers, bytes.getDefiningOp());
    // A result of the model has its name from the function.
    if (isResult && value.getDefiningOp())
      setResultName(value, name + "_QuantizeLinear_Input");
    setResultName(bytes, name + "_QuantizeLinear_Output");
    setResultName(numbers, name + "_DequantizeLinear_Output");
  }

  /// Biases are integers by the product of the scales of what they are added
  /// to. The quotients are computed in f64.
  LogicalResult quantizeBias(const std::string &name,
                             const TensorPlan &tensor) {
    if (!tensor.type)
      return success();
    FailureOr<Value> value = find(name);
    if (failed(value))
      return failure();
    ImplicitLocOpBuilder b(root->getLoc(), root->getContext());
    setPlace(b, *value);
    TensorPlan full = tensor;
    if (full.zeroPoint.empty())
      full.zeroPoint.assign(full.scale.size(), 0);
    FailureOr<Parameters> by = makeParameters(b, name, full, *value);
    if (failed(by))
      return failure();
    WeightMath math(b);
    Type f64 = b.getF64Type();
    SmallPtrSet<Operation *, 4> own;
    auto keep = [&](Value made) {
      own.insert(made.getDefiningOp());
      return made;
    };
    Value scaled = *value;
    if (tensor.beta != 1) {
      scaled = keep(
          math.binary<onnx::MulOp>(scaled, math.scalar(scaled, tensor.beta)));
      for (Operation *user : (*value).getUsers())
        if (auto gemm = dyn_cast<onnx::GemmOp>(user))
          gemm.setBetaAttr(b.getF32FloatAttr(1));
    }
    Value quotient = keep(math.binary<onnx::DivOp>(keep(math.cast(scaled, f64)),
                                                   math.cast(by->scale, f64)));
    Value whole =
        math.cast(clamp(b, math.unary<onnx::RoundOp>(quotient)), by->type);
    Value numbers =
        math.dequantize(whole, by->scale, by->zeroPoint, full.axis.value_or(0));
    setResultName(whole, name + "_quantized");
    setResultName(numbers, name + "_DequantizeLinear_Output");
    (*value).replaceAllUsesExcept(numbers, own);
    return success();
  }
  Value clamp(ImplicitLocOpBuilder &b, Value x) {
    WeightMath math(b);
    Value low = math.scalar(x, std::numeric_limits<int32_t>::min());
    Value high = math.scalar(x, std::numeric_limits<int32_t>::max());
    return onnx::ClipOp::create(b, x.getType(), x, low, high);
  }

  Operation *root;
  const QuantizationPlan &plan;
  llvm::StringMap<Value> values;
  std::map<std::string, Parameters> parameters;
};

} // namespace

LogicalResult sardonyx::quantizeByPlan(Operation *root,
                                       const QuantizationPlan &plan) {
  return PlanApplier(root, plan).run();
}
