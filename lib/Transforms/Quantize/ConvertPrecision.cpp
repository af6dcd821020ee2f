//===- ConvertPrecision.cpp - Floats of 16 bits ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightMath.h"

#include "dialects/ONNX/ONNXSchema.h"
#include "sardonyx/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Verifier.h"

#include <cmath>

namespace sardonyx {
#define GEN_PASS_DEF_ONNXCONVERTPRECISION
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// What is computed in 16 bits.
enum class Place { Always, BesideOthers, Never };

/// Products and convolutions are why there are 16 bits. What moves numbers, or
/// computes each from a few, follows where its operands have 16 bits already.
/// Sums over many numbers, exponentials and quotients stay as they are.
Place getPlace(Operation *op) {
  if (isa<onnx::ConvOp, onnx::ConvTransposeOp, onnx::MatMulOp, onnx::GemmOp>(
          op))
    return Place::Always;
  if (op->hasTrait<OpTrait::ConstantLike>() || op->getNumRegions())
    return Place::Never;
  if (op->hasTrait<onnx::MovesData>() ||
      isa<onnx::AddOp, onnx::SubOp, onnx::MulOp, onnx::MaxOp, onnx::MinOp,
          onnx::NegOp, onnx::AbsOp, onnx::ReluOp, onnx::LeakyReluOp,
          onnx::ClipOp, onnx::SigmoidOp, onnx::TanhOp, onnx::HardSigmoidOp,
          onnx::HardSwishOp, onnx::GeluOp, onnx::MaxPoolOp,
          onnx::AveragePoolOp>(op))
    return Place::BesideOthers;
  return Place::Never;
}

class Converter {
public:
  Converter(FloatType narrow, ArrayRef<std::string> exclude,
            ArrayRef<std::string> excludedOps)
      : narrow(narrow), wide(Float32Type::get(narrow.getContext())),
        exclude(exclude), excludedOps(excludedOps) {}

  void convert(Operation *root) {
    SmallVector<Operation *> ops;
    root->walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (mayConvert(op))
        convertOp(op);
    // What nothing reads any more, the last first.
    for (Operation *cast : llvm::reverse(casts))
      if (cast->use_empty())
        cast->erase();
  }

private:
  bool isWide(Value value) {
    auto type = dyn_cast<TensorType>(value.getType());
    return type && type.getElementType() == wide;
  }
  /// What a value was before it became f32.
  Value getNarrow(Value value) {
    auto cast = value.getDefiningOp<onnx::CastOp>();
    auto type =
        cast ? dyn_cast<TensorType>(cast.getInput().getType()) : nullptr;
    return type && type.getElementType() == narrow ? cast.getInput() : nullptr;
  }

  bool mayConvert(Operation *op) {
    const Place place = getPlace(op);
    StringRef operation = op->getName().stripDialect();
    if (place == Place::Never || !isa<onnx::ONNXDialect>(op->getDialect()) ||
        isConstantOnlyOp(op) ||
        llvm::is_contained(exclude, getNameOfNode(op)) ||
        llvm::is_contained(excludedOps, operation) ||
        !llvm::any_of(op->getOperands(), [&](Value v) { return isWide(v); }) ||
        !llvm::any_of(op->getResults(), [&](Value v) { return isWide(v); }))
      return false;
    for (Value operand : op->getOperands()) {
      if (!isWide(operand))
        continue;
      if (isConstantOnly(operand)) {
        if (fits(operand))
          continue;
        remarkOn(op) << "stays f32: a constant operand has numbers beyond "
                     << narrow;
        return false;
      }
      if (place == Place::BesideOthers && !getNarrow(operand))
        return false;
    }
    return true;
  }
  static bool isConstantOnlyOp(Operation *op) {
    return op->getNumResults() && isConstantOnly(op->getResult(0));
  }

  /// Whether no number of a constant becomes infinite. Of constants that are
  /// yet to be computed nothing is known.
  bool fits(Value constant) {
    auto op = constant.getDefiningOp<onnx::ConstantOp>();
    if (!op || !narrow.isF16())
      return true;
    constexpr float kMost = 65504;
    auto isSmall = [&](float number) {
      return !std::isfinite(number) || std::abs(number) <= kMost;
    };
    Attribute value = op->getAttr("value");
    if (auto dense = dyn_cast_or_null<DenseElementsAttr>(value))
      return llvm::all_of(dense.getValues<float>(), isSmall);
    auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value);
    AsmResourceBlob *blob =
        resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob)
      return true;
    return llvm::all_of(blob->getDataAs<float>(), isSmall);
  }

  Value cast(ImplicitLocOpBuilder &b, Value value, Type element) {
    auto type = llvm::cast<TensorType>(value.getType());
    Value result = onnx::CastOp::create(b, type.clone(element), value, "up", 1,
                                        *onnx::getDataType(element));
    casts.push_back(result.getDefiningOp());
    return result;
  }

  void convertOp(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (isWide(operand)) {
        Value there = getNarrow(operand);
        if (!there) {
          // One cast serves all readers.
          Value &made = narrowed[operand];
          if (!made) {
            OpBuilder::InsertionGuard guard(b);
            b.setInsertionPointAfterValue(operand);
            made = cast(b, operand, narrow);
          }
          there = made;
        }
        operand = there;
      }
    SmallVector<Type> types;
    for (Value result : op->getResults())
      types.push_back(
          isWide(result)
              ? llvm::cast<TensorType>(result.getType()).clone(narrow)
              : result.getType());
    OperationState state(op->getLoc(), op->getName(), operands, types,
                         op->getAttrs());
    Operation *converted = b.create(state);
    // The operator may not know the type.
    ScopedDiagnosticHandler quiet(op->getContext(),
                                  [](Diagnostic &) { return success(); });
    if (failed(verify(converted))) {
      converted->erase();
      return;
    }
    for (auto [old, result] :
         llvm::zip_equal(op->getResults(), converted->getResults())) {
      Value replacement = result;
      if (isWide(old)) {
        replacement = cast(b, result, wide);
        if (std::string name = getResultName(old).str(); !name.empty()) {
          setResultName(replacement, name);
          setResultName(result, name + suffix());
        }
      }
      old.replaceAllUsesWith(replacement);
    }
    op->erase();
  }
  std::string suffix() const { return narrow.isF16() ? "_to_f16" : "_to_bf16"; }

  FloatType narrow;
  Type wide;
  ArrayRef<std::string> exclude, excludedOps;
  llvm::DenseMap<Value, Value> narrowed;
  SmallVector<Operation *> casts;
};

struct OnnxConvertPrecisionPass
    : sardonyx::impl::OnnxConvertPrecisionBase<OnnxConvertPrecisionPass> {
  using OnnxConvertPrecisionBase::OnnxConvertPrecisionBase;

  void runOnOperation() override {
    Builder b(&getContext());
    FloatType narrow = type == "f16"    ? FloatType(b.getF16Type())
                       : type == "bf16" ? FloatType(b.getBF16Type())
                                        : FloatType();
    if (!narrow) {
      emitError(getOperation().getLoc(), "onnx-convert-precision: type=")
          << type << ": must be f16 or bf16";
      return signalPassFailure();
    }
    if (failed(checkNodeNames(getOperation(), exclude, "exclude")))
      return signalPassFailure();
    Converter(narrow, exclude, excludeOps).convert(getOperation());
    if (!keepIo)
      convertBorder(narrow);
  }

private:
  /// Inputs and results of the model take 16 bits.
  void convertBorder(FloatType narrow) {
    getOperation().walk([&](func::FuncOp function) {
      if (!function.isPublic() || function.isDeclaration())
        return;
      Type wide = Float32Type::get(&getContext());
      auto toNarrow = [&](Type type) -> Type {
        auto tensor = dyn_cast<TensorType>(type);
        return tensor && tensor.getElementType() == wide ? tensor.clone(narrow)
                                                         : type;
      };
      ImplicitLocOpBuilder b(function.getLoc(), &getContext());
      b.setInsertionPointToStart(&function.getBody().front());
      for (BlockArgument argument : function.getArguments()) {
        Type from = argument.getType(), to = toNarrow(from);
        if (from == to)
          continue;
        // Readers of 16 bits take the input itself.
        SmallVector<OpOperand *> others;
        SmallVector<Operation *> casts;
        for (OpOperand &use : argument.getUses())
          if (isa<onnx::CastOp>(use.getOwner()) &&
              use.getOwner()->getResult(0).getType() == to)
            casts.push_back(use.getOwner());
          else
            others.push_back(&use);
        argument.setType(to);
        if (!others.empty()) {
          Value whole = onnx::CastOp::create(b, from, argument, "up", 1, 1);
          for (OpOperand *use : others)
            use->set(whole);
        }
        for (Operation *reader : casts) {
          reader->getResult(0).replaceAllUsesWith(argument);
          reader->erase();
        }
      }
      SmallVector<Type> results;
      function.walk([&](func::ReturnOp end) {
        b.setInsertionPoint(end);
        for (OpOperand &operand : end->getOpOperands()) {
          Value value = operand.get();
          Type to = toNarrow(value.getType());
          if (to != value.getType()) {
            auto cast = value.getDefiningOp<onnx::CastOp>();
            operand.set(cast && cast.getInput().getType() == to
                            ? cast.getInput()
                            : onnx::CastOp::create(b, to, value, "up", 1,
                                                   *onnx::getDataType(narrow)));
            if (cast && cast->use_empty())
              cast->erase();
          }
          results.push_back(to);
        }
      });
      function.setType(FunctionType::get(
          &getContext(), function.getBody().front().getArgumentTypes(),
          results));
    });
  }
};

} // namespace
