//===- QuantizationPlan.cpp - What a quantisation decides -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizationPlan.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace mlir;
using namespace sardonyx;
namespace json = llvm::json;

static llvm::Error complain(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

/// The numbers of nested lists, and the lists' shape.
static bool readNumbers(const json::Value &value, unsigned depth,
                        SmallVectorImpl<int64_t> &shape,
                        std::vector<double> &numbers) {
  constexpr unsigned kMostDims = 8;
  if (std::optional<double> number = value.getAsNumber()) {
    numbers.push_back(*number);
    return depth == shape.size();
  }
  const json::Array *list = value.getAsArray();
  if (!list || depth >= kMostDims)
    return false;
  if (depth == shape.size()) {
    if (!numbers.empty())
      return false;
    shape.push_back(list->size());
  }
  return int64_t(list->size()) == shape[depth] &&
         llvm::all_of(*list, [&](const json::Value &item) {
           return readNumbers(item, depth + 1, shape, numbers);
         });
}

namespace {

/// Reads one tensor's entry.
class TensorReader {
public:
  TensorReader(StringRef name, const json::Object &entry, MLIRContext *context)
      : name(name), entry(entry), b(context) {}

  llvm::Expected<TensorPlan> read() {
    if (entry.get("convert"))
      return fail("has a second type ('convert'), which onnx-quantize does not "
                  "know");
    if (!readRole() || !readTypes())
      return fail(wrong);
    if (const json::Value *scale = entry.get("scale");
        scale && !readNumbers(*scale, 0, plan.shape, plan.scale))
      return fail("has a 'scale' that is no number and no list of numbers");
    for (double scale : plan.scale)
      if (!(scale > 0) || !std::isfinite(scale))
        return fail("has a scale that is no positive number");
    if (const json::Value *zero = entry.get("zero_point")) {
      SmallVector<int64_t> shape;
      std::vector<double> numbers;
      if (!readNumbers(*zero, 0, shape, numbers) ||
          (!plan.scale.empty() && shape != plan.shape))
        return fail("has a 'zero_point' that is not of the scale's shape");
      for (double number : numbers) {
        if (std::floor(number) != number || std::abs(number) > 1LL << 32)
          return fail("has a zero point that is no integer");
        plan.zeroPoint.push_back(int64_t(number));
      }
    }
    plan.beta = entry.getNumber("beta").value_or(1);
    plan.axis = entry.getInteger("axis");
    plan.block = entry.getInteger("block").value_or(0);
    if (const json::Array *shares = entry.getArray("shares")) {
      if (shares->size() != 2 || !(*shares)[0].getAsString())
        return fail("has a 'shares' that is no tensor and no node");
      plan.shares = (*shares)[0].getAsString()->str();
    }
    return std::move(plan);
  }

private:
  llvm::Error fail(StringRef what) {
    return complain("tensor '" + name + "' of the plan " + what);
  }
  bool readRole() {
    using Role = TensorPlan::Role;
    auto role = llvm::StringSwitch<std::optional<Role>>(
                    entry.getString("role").value_or(""))
                    .Case("activation", Role::Activation)
                    .Case("weight", Role::Weight)
                    .Case("bias", Role::Bias)
                    .Default(std::nullopt);
    wrong = "has no 'role' (activation, weight or bias)";
    plan.role = role.value_or(Role::Activation);
    return role.has_value();
  }
  bool readTypes() {
    const StringRef type = entry.getString("type").value_or("");
    auto integer = [&](unsigned width, bool isSigned) -> Type {
      return isSigned ? b.getIntegerType(width)
                      : b.getIntegerType(width, /*isSigned=*/false);
    };
    plan.type = llvm::StringSwitch<Type>(type)
                    .Case("INT2", integer(2, true))
                    .Case("UINT2", integer(2, false))
                    .Case("INT4", integer(4, true))
                    .Case("UINT4", integer(4, false))
                    .Case("INT8", integer(8, true))
                    .Case("UINT8", integer(8, false))
                    .Case("INT16", integer(16, true))
                    .Case("UINT16", integer(16, false))
                    .Case("INT32", integer(32, true))
                    .Case("FLOAT8E4M3FN", Float8E4M3FNType::get(b.getContext()))
                    .Case("FLOAT8E5M2", Float8E5M2Type::get(b.getContext()))
                    .Default(Type());
    wrong = "has a 'type' that onnx-quantize does not know";
    if (!plan.type && type != "UNDEFINED" && type != "FLOAT")
      return false;
    plan.floatType = llvm::StringSwitch<FloatType>(
                         entry.getString("float_type").value_or("float32"))
                         .Case("float32", b.getF32Type())
                         .Case("float16", b.getF16Type())
                         .Case("bfloat16", b.getBF16Type())
                         .Default(FloatType());
    wrong = "has a 'float_type' that onnx-quantize does not know";
    return plan.floatType != nullptr;
  }

  StringRef name, wrong;
  const json::Object &entry;
  Builder b;
  TensorPlan plan;
};

} // namespace

llvm::Expected<QuantizationPlan> QuantizationPlan::parse(StringRef text,
                                                         MLIRContext *context) {
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return parsed.takeError();
  const json::Object *top = parsed->getAsObject();
  if (!top)
    return complain("a plan is a JSON object");
  if (top->getInteger("version") != 1)
    return complain("the plan is not of version 1");
  if (StringRef format = top->getString("format").value_or(""); format != "QDQ")
    return complain("the plan's format is '" + format +
                    "'; onnx-quantize writes QDQ");
  const json::Object *tensors = top->getObject("tensors");
  if (!tensors)
    return complain("the plan has no 'tensors'");
  QuantizationPlan plan;
  for (const auto &[name, value] : *tensors) {
    const json::Object *entry = value.getAsObject();
    if (!entry)
      return complain("tensor '" + name.str() + "' of the plan is no object");
    llvm::Expected<TensorPlan> tensor =
        TensorReader(name, *entry, context).read();
    if (!tensor)
      return tensor.takeError();
    plan.tensors.emplace(name.str(), std::move(*tensor));
  }
  if (const json::Object *nodes = top->getObject("nodes"))
    for (const auto &[name, value] : *nodes)
      if (const json::Object *node = value.getAsObject();
          node && node->getString("precision") == "removed")
        plan.removed.push_back(name.str());
  llvm::sort(plan.removed);
  return plan;
}

llvm::Expected<QuantizationPlan> QuantizationPlan::load(StringRef path,
                                                        MLIRContext *context) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return complain("cannot read '" + path + "': " + file.getError().message());
  llvm::Expected<QuantizationPlan> plan = parse((*file)->getBuffer(), context);
  if (!plan)
    return complain(path + ": " + llvm::toString(plan.takeError()));
  return plan;
}
