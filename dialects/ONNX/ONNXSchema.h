//===- ONNXSchema.h - What ONNX's schemas say, as tables --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each generated op knows its schema: `ConvOp::getSchema()`. Verifier, parser,
// printer and importer work from it, so that nothing is written per op.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_ONNX_ONNXSCHEMA_H
#define SARDONYX_DIALECTS_ONNX_ONNXSCHEMA_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace sardonyx::onnx {

/// Bits of the types that a type parameter allows. Bit i of the first four is
/// the element type with the number i in ONNX's TensorProto.DataType; maps are
/// numbered by key (int64: 0, string: 4) plus value (string, float, int64,
/// double).
struct TypeSet {
  llvm::StringLiteral name; // "T"; empty for a type that is spelled out
  uint32_t tensor, seq, opt, optSeq, map, seqMap;

  bool contains(mlir::Type type) const;
  /// "a tensor of f32, f64 or a sequence", for diagnostics.
  std::string describe() const;
};

enum class ParamOption { Single, Optional, Variadic };

struct ParamInfo {
  llvm::StringLiteral name;
  ParamOption option;
  unsigned typeIndex; // into OpSchema::types
  bool homogeneous;
  unsigned minArity; // of a variadic one
};

enum class AttrKind {
  Int,
  Float,
  String,
  Ints,
  Floats,
  Strings,
  Tensor,
  SparseTensor,
  TypeProto,
  Graph
};

struct AttrInfo {
  llvm::StringLiteral name;
  AttrKind kind;
  bool required;
  bool hasDefault;
  // The default of an Int, Float or String attribute that has one.
  int64_t defaultInt;
  float defaultFloat;
  llvm::StringLiteral defaultString;
};

struct RegionInfo {
  llvm::StringLiteral name;
  bool required;
};

/// One operator in its latest version. Graph attributes are regions; the other
/// attributes are sorted by name.
struct OpSchema {
  llvm::StringLiteral mnemonic; // "onnx.ml.Scaler"
  llvm::StringLiteral domain;   // "ai.onnx.ml"; empty for ai.onnx
  llvm::StringLiteral opType;   // "Scaler"
  int sinceVersion;
  bool deprecated;
  llvm::ArrayRef<TypeSet> types;
  llvm::ArrayRef<ParamInfo> inputs, outputs;
  llvm::ArrayRef<AttrInfo> attributes;
  llvm::ArrayRef<RegionInfo> regions;

  const AttrInfo *findAttribute(llvm::StringRef name) const;
};

struct DomainVersion {
  llvm::StringLiteral domain;
  int version;
};

/// All operators, sorted by domain and type.
llvm::ArrayRef<OpSchema> getSchemas();

/// The opset that the dialect's ops are of, for each domain.
llvm::ArrayRef<DomainVersion> getDomainVersions();

/// The schema of an operator; null for one that is not ONNX's. The domain
/// "ai.onnx" is the same as the empty one.
const OpSchema *lookupSchema(llvm::StringRef domain, llvm::StringRef opType);

/// The schema of an op of this dialect; null for Yield and Custom.
const OpSchema *lookupSchema(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Building and taking apart any op by its schema
//===----------------------------------------------------------------------===//

/// Fills `state` (its name included) with an op of `schema`. `inputs` and
/// `outputs` go by position as in an ONNX node: a null entry is one left out,
/// trailing ones may be missing. Attributes are given as the ops want them; see
/// AttrKind in README.md. Adds as many empty regions as the schema has, unless
/// the state has regions already. Fails, with `error` set, if the number of
/// inputs or outputs does not fit.
llvm::LogicalResult buildSchemaOp(mlir::OperationState &state,
                                  const OpSchema &schema,
                                  llvm::ArrayRef<mlir::Value> inputs,
                                  llvm::ArrayRef<mlir::Type> outputs,
                                  llvm::ArrayRef<mlir::NamedAttribute> attrs,
                                  std::string &error);

/// The inputs by position, null where one is left out; trailing nulls dropped.
llvm::SmallVector<mlir::Value> getPositionalInputs(mlir::Operation *op);
/// The same for the results.
llvm::SmallVector<mlir::Value> getPositionalOutputs(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The TensorProto.DataType of an element type; nothing if ONNX has none.
std::optional<int> getDataType(mlir::Type elementType);
/// The element type of a TensorProto.DataType; null for an unknown number.
mlir::Type getElementType(mlir::MLIRContext *context, int dataType);
/// Whether the attributes of this name hold a TensorProto.DataType.
bool isDataTypeAttribute(llvm::StringRef name);
/// `type` with the shapes of all tensors in it unknown.
mlir::Type eraseShapes(mlir::Type type);
/// Whether `type` is a tensor of strings.
bool isStringTensor(mlir::Type type);

//===----------------------------------------------------------------------===//
// What the generated ops call
//===----------------------------------------------------------------------===//

llvm::LogicalResult verifySchema(mlir::Operation *op);
mlir::ParseResult parseSchemaOp(mlir::OpAsmParser &parser,
                                mlir::OperationState &result,
                                const OpSchema &schema);
void printSchemaOp(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   const OpSchema &schema);
llvm::LogicalResult
inferTypesFromSchema(mlir::Operation *op,
                     llvm::SmallVectorImpl<mlir::Type> &types);

} // namespace sardonyx::onnx

#endif // SARDONYX_DIALECTS_ONNX_ONNXSCHEMA_H
