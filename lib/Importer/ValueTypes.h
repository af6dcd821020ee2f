//===- ValueTypes.h - The types of a graph's values -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_VALUETYPES_H
#define SARDONYX_LIB_IMPORTER_VALUETYPES_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <onnx/onnx_pb.h>

namespace sardonyx::importer {

/// The types of a graph's values.
class ValueTypes {
public:
  explicit ValueTypes(const ::onnx::GraphProto &graph);
  /// Null where it is not known.
  const ::onnx::TypeProto *find(llvm::StringRef name) const;
  void set(llvm::StringRef name, const ::onnx::TypeProto &type) {
    types[name] = type;
  }

private:
  llvm::StringMap<::onnx::TypeProto> types;
};

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_VALUETYPES_H
