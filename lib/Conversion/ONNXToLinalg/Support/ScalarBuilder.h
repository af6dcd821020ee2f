//===- ScalarBuilder.h - Scalar arithmetic over ONNX types ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the body of an elementwise op. One method serves floats, signed and
// unsigned integers: which of them is meant follows from the operands' type and
// from the original element type.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SCALARBUILDER_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SCALARBUILDER_H

#include "Support/Common.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx {

class ScalarBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;

  /// `onnxType` is the original element type of the operands that decide on the
  /// kind of arithmetic.
  ScalarBuilder(mlir::OpBuilder &b, mlir::Location loc, Type onnxType)
      : ImplicitLocOpBuilder(loc, b), onnxType(onnxType),
        type(getComputeType(onnxType)) {}

  Type getOnnxType() const { return onnxType; }
  Type getType() const { return type; }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type); }
  bool isUnsigned() const { return isUnsignedType(onnxType); }
  bool isBool() const { return isBoolType(onnxType); }

  /// A constant of the operands' type.
  Value constant(double value);
  Value integer(int64_t value);
  Value boolean(bool value);

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// x * y + z; on f32 and f64 in one instruction where the processor has it.
  Value mulAdd(Value x, Value y, Value z);
  /// Integers truncate; a zero divisor gives 0.
  Value div(Value x, Value y);
  /// The remainder with the sign of the dividend (as C's fmod and %).
  Value rem(Value x, Value y);
  /// The remainder with the sign of the divisor (as Python's %).
  Value mod(Value x, Value y);
  /// NaN if either is.
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value neg(Value x);
  Value abs(Value x);

  Value eq(Value x, Value y);
  Value ne(Value x, Value y);
  Value lt(Value x, Value y);
  Value le(Value x, Value y);
  Value gt(Value x, Value y) { return lt(y, x); }
  Value ge(Value x, Value y) { return le(y, x); }
  Value select(Value condition, Value x, Value y);
  Value logicalNot(Value x);
  /// x, raised to `low` and lowered to `high`; NaN stays NaN. This form of
  /// comparison and select is what targets match to one instruction.
  Value atLeast(Value x, Value low) { return select(lt(x, low), low, x); }
  Value atMost(Value x, Value high) { return select(lt(high, x), high, x); }

  Value exp(Value x);
  Value log(Value x);
  Value tanh(Value x);
  Value sqrt(Value x);
  Value sigmoid(Value x);
  Value softplus(Value x);
  /// x ^ y on the same float type; constant exponents become products.
  Value pow(Value x, Value y);

private:
  Value guardDivisor(Value x, Value y, Value &isZero);

  Type onnxType, type;
};

/// The value of a float attribute.
double toDouble(llvm::APFloat value);

/// The constant behind a computed scalar, if it is one.
std::optional<double> getConstantScalar(mlir::Value value);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SCALARBUILDER_H
