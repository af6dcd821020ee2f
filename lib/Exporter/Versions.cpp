//===- Versions.cpp - The oldest version of an operator -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Exporter/Versions.h"

#include "lib/Importer/Types.h"
#include "lib/Importer/Upgrade.h"

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>

using namespace mlir;

namespace sardonyx::exporter {

using ::onnx::OpSchema;
using ::onnx::OpSchemaRegistry;
using ::onnx::TensorProto;

int64_t irVersionOf(int64_t opset) {
  static constexpr int64_t versions[] = {4, 5, 6,  7,  7,  7,  8,  8,  8,  8,
                                         9, 9, 10, 10, 11, 12, 13, 13, 13, 14};
  if (opset < 9)
    return 4;
  return versions[std::min<size_t>(opset - 9, std::size(versions) - 1)];
}

int64_t irVersionOfType(int dataType) {
  switch (dataType) {
  case TensorProto::FLOAT8E4M3FN:
  case TensorProto::FLOAT8E4M3FNUZ:
  case TensorProto::FLOAT8E5M2:
  case TensorProto::FLOAT8E5M2FNUZ:
    return 9;
  case TensorProto::INT4:
  case TensorProto::UINT4:
    return 10;
  case TensorProto::FLOAT4E2M1:
    return 11;
  case TensorProto::FLOAT8E8M0:
    return 12;
  case TensorProto::INT2:
  case TensorProto::UINT2:
    return 13;
  case TensorProto::FLOAT6E2M3:
  case TensorProto::FLOAT6E3M2:
    return 14;
  default:
    return 8;
  }
}

/// Versions below this gain nothing: everybody reads it.
constexpr int64_t kFloor = 17;

/// Whether each value has a type that the formal parameter at its place allows.
static bool allows(const std::vector<OpSchema::FormalParameter> &formals,
                   ArrayRef<Type> types) {
  for (auto [i, given] : llvm::enumerate(types)) {
    if (!given)
      continue;
    if (formals.empty())
      return false;
    ::onnx::TypeProto type;
    if (!importer::convertType(given, type))
      return false;
    const auto &formal = formals[std::min(i, formals.size() - 1)];
    if (!formal.GetTypes().count(::onnx::Utils::DataTypeUtils::ToType(type)))
      return false;
  }
  return true;
}

static bool means(const OpSchema &schema, const ::onnx::NodeProto &node,
                  ArrayRef<Type> inputs, ArrayRef<Type> outputs) {
  try {
    schema.Verify(node);
    return allows(schema.inputs(), inputs) && allows(schema.outputs(), outputs);
  } catch (const std::exception &) {
    return false;
  }
}

int64_t oldestVersion(const ::onnx::NodeProto &node, ArrayRef<Type> inputs,
                      ArrayRef<Type> outputs) {
  const OpSchema *latest =
      OpSchemaRegistry::Schema(node.op_type(), node.domain());
  if (!latest)
    return 1;
  int64_t version = latest->SinceVersion();
  int64_t changed = importer::lastFormChange(node.domain(), node.op_type());
  while (version > std::max(kFloor, changed)) {
    const OpSchema *older =
        OpSchemaRegistry::Schema(node.op_type(), version - 1, node.domain());
    if (!older || older->SinceVersion() >= version ||
        !means(*older, node, inputs, outputs))
      break;
    version = older->SinceVersion();
  }
  // Between two versions of a schema any opset will do.
  return std::max(version, std::min<int64_t>(kFloor, latest->SinceVersion()));
}

} // namespace sardonyx::exporter
