//===- Types.h - ONNX types and MLIR types ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_TYPES_H
#define SARDONYX_LIB_IMPORTER_TYPES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <onnx/onnx_pb.h>

#include <optional>

namespace sardonyx::importer {

/// Type of an element of `dataType` (TensorProto::DataType); null if there is
/// no such data type.
mlir::Type elementType(mlir::MLIRContext *context, int dataType);
/// The inverse; TensorProto::UNDEFINED for a type that ONNX lacks.
int dataTypeOf(mlir::Type elementType);
/// Bits that an element takes in raw_data; 0 for strings and unknown types.
unsigned bitWidth(int dataType);
/// "float", "int64", ... for messages.
std::string dataTypeName(int dataType);

/// Null if `type` is not set or says nothing about the elements.
mlir::Type convertType(mlir::MLIRContext *context,
                       const ::onnx::TypeProto &type);
/// False if ONNX has no such type (onnx.unknown among them).
bool convertType(mlir::Type type, ::onnx::TypeProto &result);

/// Names of the dynamic dimensions of a tensor: one entry per dimension, ""
/// where the size is known or has no name. Null if there is no name at all.
mlir::ArrayAttr dimNames(mlir::MLIRContext *context,
                         const ::onnx::TypeProto &type);
/// Writes such names onto the dimensions of `type` that have no value.
void setDimNames(mlir::ArrayAttr names, ::onnx::TypeProto &type);

/// Number of elements of a static shape; nullopt for a negative dimension or
/// when it does not fit in 63 bits.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> dims);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_TYPES_H
