//===- ONNX.h - The onnx dialect, whole -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_ONNX_ONNX_H
#define SARDONYX_DIALECTS_ONNX_ONNX_H

#include "dialects/ONNX/ONNXSchema.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace sardonyx::onnx {

/// Infers result types by the schemas' own inference functions. The dialect
/// knows nobody who can; a library that links the onnx C++ library registers an
/// implementation:
///
///   registry.addExtension(+[](MLIRContext *, onnx::ONNXDialect *dialect) {
///     dialect->addInterfaces<MyInference>();
///   });
class OnnxInferenceDialectInterface
    : public mlir::DialectInterface::Base<OnnxInferenceDialectInterface> {
public:
  OnnxInferenceDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Infers the types of the results of `op` that are present from its operand
  /// types, attributes and constant operands, as precisely as they allow: a
  /// result type may be unranked or have dynamic sizes. Fails, without emitting
  /// a diagnostic, but with `error` saying why, if the op breaks a rule of its
  /// schema. An op about which nothing can be said keeps its types.
  virtual llvm::LogicalResult
  inferResultTypes(mlir::Operation *op,
                   llvm::SmallVectorImpl<mlir::Type> &types,
                   std::string &error) const = 0;
};

/// Tells which ops a conversion takes as they are. It is registered as the one
/// above, by the library of the conversion.
class OnnxLoweringDialectInterface
    : public mlir::DialectInterface::Base<OnnxLoweringDialectInterface> {
public:
  OnnxLoweringDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}

  /// Whether ops of a name ("onnx.Softmax") are converted, in all of their
  /// forms but those that are refused.
  virtual bool hasLowering(llvm::StringRef operationName) const = 0;
};

/// What an `onnx.Custom` op stands for.
struct CustomImplementation {
  enum Kind {
    Unknown, ///< Nothing, or nothing that fits these types.
    Call,    ///< Something that the runtime calls.
    Body,    ///< A function of MLIR's.
  };
  Kind kind = Unknown;
  /// Whether an operator of that name is known at all.
  bool isRegistered = false;
  /// Of a call: it may give something else each time.
  bool isStateful = false;
  /// A func.func on tensors; it belongs to no module of the model's.
  mlir::Operation *body = nullptr;
};

/// The operators that somebody has brought along: implemented where sessions
/// are, and asked by whoever meets an `onnx.Custom` op.
class CustomOpsDialectInterface
    : public mlir::DialectInterface::Base<CustomOpsDialectInterface> {
public:
  CustomOpsDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}

  virtual CustomImplementation find(mlir::Operation *op) const = 0;
  /// The same as OnnxInferenceDialectInterface::inferResultTypes.
  virtual llvm::LogicalResult
  inferResultTypes(mlir::Operation *op,
                   llvm::SmallVectorImpl<mlir::Type> &types,
                   std::string &error) const = 0;
  /// Notes a node that the code being made will call, and gives its number.
  virtual llvm::FailureOr<int64_t> addNode(mlir::Operation *op,
                                           std::string &error) = 0;
};

/// What `op`, an `onnx.Custom`, stands for.
CustomImplementation findCustomImplementation(mlir::Operation *op);

/// The result types of an `onnx.Custom`, as its implementation knows them.
/// Fails with a diagnostic.
llvm::LogicalResult inferCustomTypes(mlir::Operation *op,
                                     llvm::SmallVectorImpl<mlir::Type> &types);

// What is true of an operator, as traits (facts.py).
#include "dialects/ONNX/ONNXFacts.inc"

} // namespace sardonyx::onnx

#include "dialects/ONNX/ONNXDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.h.inc"

#include "dialects/ONNX/ONNXInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXOps.h.inc"

namespace sardonyx::onnx {

/// `onnx.Constant` with a tensor value.
ConstantOp createConstant(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::ElementsAttr value);

} // namespace sardonyx::onnx

#endif // SARDONYX_DIALECTS_ONNX_ONNX_H
