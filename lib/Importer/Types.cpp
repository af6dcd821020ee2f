//===- Types.cpp - ONNX types and MLIR types ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Types.h"
#include "dialects/ONNX/ONNX.h"
#include "lib/Importer/Error.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {

Type elementType(MLIRContext *context, int dataType) {
  return onnx::getElementType(context, dataType);
}

int dataTypeOf(Type type) {
  return onnx::getDataType(type).value_or(Tensor::UNDEFINED);
}

unsigned bitWidth(int dataType) {
  switch (dataType) {
  case Tensor::UINT2:
  case Tensor::INT2:
    return 2;
  case Tensor::UINT4:
  case Tensor::INT4:
  case Tensor::FLOAT4E2M1:
    return 4;
  case Tensor::FLOAT6E2M3:
  case Tensor::FLOAT6E3M2:
    return 6;
  case Tensor::UINT8:
  case Tensor::INT8:
  case Tensor::BOOL:
  case Tensor::FLOAT8E4M3FN:
  case Tensor::FLOAT8E4M3FNUZ:
  case Tensor::FLOAT8E5M2:
  case Tensor::FLOAT8E5M2FNUZ:
  case Tensor::FLOAT8E8M0:
    return 8;
  case Tensor::UINT16:
  case Tensor::INT16:
  case Tensor::FLOAT16:
  case Tensor::BFLOAT16:
    return 16;
  case Tensor::FLOAT:
  case Tensor::INT32:
  case Tensor::UINT32:
    return 32;
  case Tensor::DOUBLE:
  case Tensor::INT64:
  case Tensor::UINT64:
  case Tensor::COMPLEX64:
    return 64;
  case Tensor::COMPLEX128:
    return 128;
  default:
    return 0;
  }
}

std::string dataTypeName(int dataType) {
  static constexpr const char *names[] = {
      "undefined",      "float",        "uint8",          "int8",
      "uint16",         "int16",        "int32",          "int64",
      "string",         "bool",         "float16",        "double",
      "uint32",         "uint64",       "complex64",      "complex128",
      "bfloat16",       "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",        "int4",           "float4e2m1",
      "float8e8m0",     "uint2",        "int2",           "float6e2m3",
      "float6e3m2"};
  if (dataType < 0 || dataType >= int(std::size(names)))
    return "data type " + std::to_string(dataType);
  return names[dataType];
}

/// Element types and dims of tensor_type and sparse_tensor_type.
template <typename T>
static Type convertTensor(MLIRContext *context, const T &type) {
  Type element = elementType(context, type.elem_type());
  if (!element) {
    if (type.elem_type() == Tensor::UNDEFINED)
      return {};
    fail("unknown element type " + llvm::Twine(type.elem_type()) +
         " of a tensor");
  }
  if (!type.has_shape())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (const auto &dim : type.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() < -1)
      fail("negative dimension " + llvm::Twine(dim.dim_value()) +
           " in the type of a value");
    // Some exporters write -1 for what they do not know.
    bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    shape.push_back(known ? dim.dim_value() : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, element);
}

Type convertType(MLIRContext *context, const ::onnx::TypeProto &type) {
  switch (type.value_case()) {
  case ::onnx::TypeProto::kTensorType:
    return convertTensor(context, type.tensor_type());
  case ::onnx::TypeProto::kSparseTensorType: {
    Type dense = convertTensor(context, type.sparse_tensor_type());
    return dense ? onnx::SparseType::get(cast<TensorType>(dense)) : Type();
  }
  case ::onnx::TypeProto::kSequenceType: {
    Type element = convertType(context, type.sequence_type().elem_type());
    return element ? onnx::SeqType::get(element) : Type();
  }
  case ::onnx::TypeProto::kOptionalType: {
    Type element = convertType(context, type.optional_type().elem_type());
    return element ? onnx::OptType::get(element) : Type();
  }
  case ::onnx::TypeProto::kMapType: {
    Type key = elementType(context, type.map_type().key_type());
    Type value = convertType(context, type.map_type().value_type());
    if (!key || !value)
      return {};
    if (!isa<IntegerType, onnx::StringType>(key))
      fail("a map's keys must be integers or strings, found " +
           dataTypeName(type.map_type().key_type()));
    return onnx::MapType::get(key, value);
  }
  default:
    return {};
  }
}

template <typename T> static bool setTensor(TensorType type, T &result) {
  int dataType = dataTypeOf(type.getElementType());
  if (dataType == Tensor::UNDEFINED)
    return false;
  result.set_elem_type(dataType);
  if (!type.hasRank())
    return true;
  auto *shape = result.mutable_shape();
  for (int64_t size : type.getShape()) {
    auto *dim = shape->add_dim();
    if (!ShapedType::isDynamic(size))
      dim->set_dim_value(size);
  }
  return true;
}

bool convertType(Type type, ::onnx::TypeProto &result) {
  return llvm::TypeSwitch<Type, bool>(type)
      .Case([&](TensorType t) {
        return setTensor(t, *result.mutable_tensor_type());
      })
      .Case([&](onnx::SparseType t) {
        return setTensor(t.getDenseType(),
                         *result.mutable_sparse_tensor_type());
      })
      .Case([&](onnx::SeqType t) {
        return convertType(
            t.getElementType(),
            *result.mutable_sequence_type()->mutable_elem_type());
      })
      .Case([&](onnx::OptType t) {
        return convertType(
            t.getElementType(),
            *result.mutable_optional_type()->mutable_elem_type());
      })
      .Case([&](onnx::MapType t) {
        result.mutable_map_type()->set_key_type(dataTypeOf(t.getKeyType()));
        return convertType(t.getValueType(),
                           *result.mutable_map_type()->mutable_value_type());
      })
      .Default([](Type) { return false; });
}

/// The shape of a tensor, also inside a sequence or an optional.
static const ::onnx::TensorShapeProto *shapeOf(const ::onnx::TypeProto &type) {
  switch (type.value_case()) {
  case ::onnx::TypeProto::kTensorType:
    return type.tensor_type().has_shape() ? &type.tensor_type().shape()
                                          : nullptr;
  case ::onnx::TypeProto::kSequenceType:
    return shapeOf(type.sequence_type().elem_type());
  case ::onnx::TypeProto::kOptionalType:
    return shapeOf(type.optional_type().elem_type());
  default:
    return nullptr;
  }
}

ArrayAttr dimNames(MLIRContext *context, const ::onnx::TypeProto &type) {
  // Elements of a sequence may differ in size: names mean nothing there.
  if (!type.has_tensor_type())
    return {};
  const ::onnx::TensorShapeProto *shape = shapeOf(type);
  if (!shape)
    return {};
  bool any = false;
  SmallVector<Attribute> names;
  for (const auto &dim : shape->dim()) {
    StringRef name = dim.has_dim_param() ? StringRef(dim.dim_param()) : "";
    any |= !name.empty();
    names.push_back(StringAttr::get(context, llvm::json::fixUTF8(name)));
  }
  return any ? ArrayAttr::get(context, names) : ArrayAttr();
}

void setDimNames(ArrayAttr names, ::onnx::TypeProto &type) {
  if (!names || !type.has_tensor_type() || !type.tensor_type().has_shape())
    return;
  auto *shape = type.mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < shape->dim_size() && i < int(names.size()); ++i) {
    auto name = dyn_cast<StringAttr>(names[i]);
    auto *dim = shape->mutable_dim(i);
    if (name && !name.empty() && !dim->has_dim_value())
      dim->set_dim_param(name.str());
  }
}

std::optional<int64_t> elementCount(ArrayRef<int64_t> dims) {
  // A zero makes every other size harmless, but still not negative.
  int64_t count = 1;
  bool overflow = false, zero = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return std::nullopt;
    zero |= dim == 0;
    overflow |= bool(llvm::MulOverflow(count, dim, count));
  }
  if (zero)
    return 0;
  if (overflow)
    return std::nullopt;
  return count;
}

} // namespace sardonyx::importer
