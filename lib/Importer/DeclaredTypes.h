//===- DeclaredTypes.h - What a model says of its values --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model may say in value_info, in its outputs and in the inputs and outputs
// of inner graphs what types values have. Nobody checks it, and programs that
// change a model leave it behind as it was. So it is a hint: element types and
// ranks count where inference finds none, and sizes do not count at all. What
// the nodes make of the inputs, whose types do count, is what a run gives.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_DECLAREDTYPES_H
#define SARDONYX_LIB_IMPORTER_DECLAREDTYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace sardonyx::importer {

class DeclaredTypes {
public:
  /// Takes the sizes out of all declarations in the graph and in inner ones but
  /// those of the graph's inputs. An output without a type gets the one that
  /// value_info has for it. Loops keep the sizes of scan results in an
  /// attribute of their own, `kScanSizes`.
  explicit DeclaredTypes(::onnx::GraphProto &graph);

  /// One sentence for each value of the graph whose type, which inference has
  /// found by now, has other sizes than it was declared with.
  std::vector<std::string>
  contradictions(const ::onnx::GraphProto &graph) const;

  /// The type that callers are told of the graph's output of this number, whose
  /// type is `known`: open sizes are the declared ones, where there are any.
  mlir::Type shown(int output, mlir::Type known) const;

private:
  std::vector<::onnx::TypeProto> outputs;
  llvm::StringMap<::onnx::TypeProto> values; // of the graph, outputs included
};

/// The attribute of a Loop that holds the declared sizes of each scan result's
/// elements, for the loop that makes none: for each its rank, -1 if that is
/// open, and then its sizes, -1 where they are. Nodes may have attributes with
/// such a prefix beside those of the schema; operators have it as
/// `sdx.scan_sizes`.
inline constexpr const char *kScanSizes = "__scan_sizes";

/// The ranks that values are declared with, while inference looks for them.
class DeclaredRanks {
public:
  /// Takes the shapes out of all declarations but those of the graph's inputs.
  explicit DeclaredRanks(::onnx::GraphProto &graph);
  /// Puts back, into the same graph, element types, ranks and names of
  /// dimensions that inference has not found.
  void restore();

private:
  /// Declarations of one graph, in their order.
  struct Declarations {
    std::vector<::onnx::TypeProto> inputs, outputs, values;
  };
  ::onnx::GraphProto &graph;
  std::vector<Declarations> all; // in the order in which graphs are walked
};

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_DECLAREDTYPES_H
