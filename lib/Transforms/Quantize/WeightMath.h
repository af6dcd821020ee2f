//===- WeightMath.h - Operators on weights ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that change weights write what they do as operators on constants: they
// look at no weight. onnx-materialize-constants computes them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TRANSFORMS_QUANTIZE_WEIGHTMATH_H
#define SARDONYX_LIB_TRANSFORMS_QUANTIZE_WEIGHTMATH_H

#include "dialects/ONNX/ONNX.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "sardonyx/Transforms/ConstantOnly.h"

#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// The type of a weight: `value` if it follows from constants, has a static
/// shape and elements of a float type of 16 to 64 bits; null otherwise.
mlir::RankedTensorType getWeightType(mlir::Value value);

/// The matrix that a Conv, a ConvTranspose, a MatMul or a Gemm multiplies its
/// input by, which follows from constants. Its dimensions are, in this order,
/// [outer..., depth, window...] or the other way round.
struct WeightedOp {
  mlir::Operation *op;
  mlir::OpOperand *weight;
  mlir::RankedTensorType type;
  /// The dimension of the weight along which the output's channels lie, and
  /// that along which sums run over the input's channels (of a group).
  int64_t outputDim, depthDim;
  /// Along the first dimension of the weight lie as many groups.
  int64_t groups = 1;

  /// Nothing for other operators, and where the weight is no matrix.
  static std::optional<WeightedOp> get(mlir::Operation *op);
  /// The bias; null if there is none.
  mlir::Value getBias() const;
  int64_t countOutputs() const;
};

/// Emits operators whose operands have known types.
class WeightMath {
public:
  explicit WeightMath(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  /// A number for operands of the element type of `like`.
  mlir::Value scalar(mlir::Value like, double value);
  mlir::Value integers(llvm::ArrayRef<int64_t> values);
  mlir::Value zeros(mlir::Type element, llvm::ArrayRef<int64_t> shape);

  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> order);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  template <typename OpT> mlir::Value unary(mlir::Value x) {
    return OpT::create(b, x.getType(), x);
  }
  /// Of operands that are broadcast.
  template <typename OpT> mlir::Value binary(mlir::Value x, mlir::Value y) {
    return OpT::create(b, broadcast(x, y, nullptr), x, y);
  }
  mlir::Value larger(mlir::Value x, mlir::Value y);
  mlir::Value isPositive(mlir::Value x);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Along `axes`, whose sizes become 1.
  template <typename OpT>
  mlir::Value reduce(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return OpT::create(b, reduced(x, axes), x, integers(axes));
  }
  /// The largest magnitudes along `axes`, whose sizes become 1.
  mlir::Value largest(mlir::Value x, llvm::ArrayRef<int64_t> axes);
  /// 1 where one of the `count` largest along `axis` is, 0 elsewhere.
  mlir::Value markLargest(mlir::Value x, int64_t count, int64_t axis);
  mlir::Value quantize(mlir::Value x, mlir::Value scale, mlir::Value zeroPoint,
                       mlir::Type integer, int64_t axis, int64_t block = 0);
  mlir::Value dequantize(mlir::Value x, mlir::Value scale,
                         mlir::Value zeroPoint, int64_t axis,
                         int64_t block = 0);

private:
  /// The type of a result; `element` is that of the operands if it is null.
  mlir::RankedTensorType broadcast(mlir::Value x, mlir::Value y,
                                   mlir::Type element);
  mlir::RankedTensorType reduced(mlir::Value x, llvm::ArrayRef<int64_t> axes);

  mlir::ImplicitLocOpBuilder &b;
};

/// `value`, rounded to the nearest number of a type.
llvm::APFloat toFloat(double value, mlir::FloatType type);

/// All dimensions below `rank` but those in `without`.
llvm::SmallVector<int64_t> getOtherDims(int64_t rank,
                                        llvm::ArrayRef<int64_t> without);

/// The names of a function's values: of nodes' results and of inputs.
llvm::StringMap<mlir::Value> getNamedValues(mlir::Operation *root);

/// The name of a node, which is that of its first result where it has none.
std::string getNameOfNode(mlir::Operation *op);

/// A remark that begins with "node 'fc' (MatMul) ".
mlir::InFlightDiagnostic remarkOn(mlir::Operation *op);

/// Takes the name of a result, so that the exporter writes it.
void setResultName(mlir::Value value, llvm::StringRef name);
llvm::StringRef getResultName(mlir::Value value);

/// Fails with an error if one of `names` is no node's.
mlir::LogicalResult checkNodeNames(mlir::Operation *root,
                                   llvm::ArrayRef<std::string> names,
                                   llvm::StringRef option);

} // namespace sardonyx

#endif // SARDONYX_LIB_TRANSFORMS_QUANTIZE_WEIGHTMATH_H
