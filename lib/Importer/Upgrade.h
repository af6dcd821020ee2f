//===- Upgrade.h - Old operator forms to the latest -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row per operator and version in which its form or meaning changed; a row
// turns a node written for an older version into one for that version. The rows
// of an operator are applied in turn until the node is in its latest form.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_IMPORTER_UPGRADE_H
#define SARDONYX_LIB_IMPORTER_UPGRADE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

namespace sardonyx::importer {

/// Names and types of the values that nodes of a graph see.
class ValueScope {
public:
  ValueScope(const ::onnx::GraphProto &graph, const ValueScope *outer);
  const ::onnx::TypeProto *typeOf(llvm::StringRef name) const;
  /// The constant of that name, an initializer or a Constant node's; null if
  /// there is none.
  const ::onnx::TensorProto *constant(llvm::StringRef name) const;
  bool isUsed(llvm::StringRef name) const;

private:
  void addUses(const ::onnx::GraphProto &graph);
  const ValueScope *outer;
  llvm::StringMap<const ::onnx::TypeProto *> types;
  llvm::StringMap<const ::onnx::TensorProto *> constants;
  llvm::StringSet<> used;
};

/// Makes names that no value of the model has.
class FreshNames {
public:
  explicit FreshNames(const ::onnx::GraphProto &graph);
  std::string make(llvm::StringRef hint) {
    return prefix + hint.str() + "." + std::to_string(counter++);
  }

private:
  std::string prefix = "sdx.";
  unsigned counter = 0;
};

/// What a row works on: the node, and nodes that it puts before and after.
class NodeUpgrade {
public:
  /// `earlier` are the nodes that rows before this one have put before `node`.
  NodeUpgrade(::onnx::NodeProto &node, int64_t version, const ValueScope &scope,
              FreshNames &names, llvm::ArrayRef<::onnx::NodeProto> earlier)
      : node(node), version(version), scope(scope), names(names),
        earlier(earlier) {}

  ::onnx::NodeProto &node;
  /// The version that the node was written for.
  const int64_t version;
  std::vector<::onnx::NodeProto> before, after;

  // Attributes. take* remove the attribute.
  const ::onnx::AttributeProto *find(llvm::StringRef name) const;
  std::optional<::onnx::AttributeProto> take(llvm::StringRef name);
  int64_t takeInt(llvm::StringRef name, int64_t otherwise);
  float takeFloat(llvm::StringRef name, float otherwise);
  std::string takeString(llvm::StringRef name, llvm::StringRef otherwise);
  std::optional<std::vector<int64_t>> takeInts(llvm::StringRef name);
  void set(llvm::StringRef name, int64_t value);
  void set(llvm::StringRef name, float value);
  void set(llvm::StringRef name, llvm::StringRef value);
  void set(llvm::StringRef name, llvm::ArrayRef<int64_t> values);

  // Inputs and outputs.
  bool hasInput(int index) const;
  bool hasOutput(int index) const;
  /// Sets input `index`, filling up with absent ones.
  void setInput(int index, std::string name);
  /// Takes output `index` away from the node: returns a fresh name that the
  /// node now gives, so that a node after it can make the old one.
  std::string redirectOutput(int index);
  bool isUsed(llvm::StringRef name) const { return scope.isUsed(name); }

  // Types; as far as they are known.
  const ::onnx::TypeProto *typeOf(llvm::StringRef name) const {
    return scope.typeOf(name);
  }
  std::optional<int64_t> rank(llvm::StringRef name) const;
  /// Sizes, -1 where unknown.
  std::optional<std::vector<int64_t>> shape(llvm::StringRef name) const;
  int dataType(llvm::StringRef name) const;
  const ::onnx::TensorProto *constant(llvm::StringRef name) const;
  /// The elements of a constant; nothing where they are not known here.
  std::optional<std::vector<int64_t>> intValues(llvm::StringRef name) const;
  std::optional<std::vector<float>> floatValues(llvm::StringRef name) const;
  /// Rank of `name`, which must be known for this row.
  int64_t requireRank(llvm::StringRef name) const;

  // New nodes; each returns the name of its (first) output.
  std::string fresh(llvm::StringRef hint);
  std::string ints(llvm::ArrayRef<int64_t> values);
  std::string floats(llvm::ArrayRef<float> values);
  std::string scalar(int64_t value);
  std::string scalar(float value);
  /// A scalar of the element type of the value `like`.
  std::string scalarLike(float value, const std::string &like);
  std::string op(llvm::StringRef type, std::vector<std::string> inputs);
  ::onnx::NodeProto &addBefore(llvm::StringRef type,
                               std::vector<std::string> inputs,
                               std::vector<std::string> outputs);
  ::onnx::NodeProto &addAfter(llvm::StringRef type,
                              std::vector<std::string> inputs,
                              std::vector<std::string> outputs);

  [[noreturn]] void refuse(const llvm::Twine &why) const;

private:
  /// Names the node as messages call it: what a row puts around it has outputs
  /// of names that the model does not know.
  const std::string &nameNode();
  const ValueScope &scope;
  FreshNames &names;
  llvm::ArrayRef<::onnx::NodeProto> earlier;
};

/// Attribute helpers for nodes that rows make.
void setAttribute(::onnx::NodeProto &node, llvm::StringRef name, int64_t value);
void setAttribute(::onnx::NodeProto &node, llvm::StringRef name,
                  llvm::ArrayRef<int64_t> values);
void setAttribute(::onnx::NodeProto &node, llvm::StringRef name,
                  llvm::StringRef value);

/// Takes away axes that the constant input 1 names again: onnxruntime squeezes
/// and reduces them once.
void dropRepeatedAxes(NodeUpgrade &u);

/// For operators that dropped the integer types: computes an input of one of
/// them as `floatType`, and rounds the result towards zero.
void computeIntegersAs(NodeUpgrade &u, int64_t floatType);

struct UpgradeRow {
  llvm::StringLiteral domain;
  llvm::StringLiteral op;
  /// Applies to nodes of an older version than this.
  int64_t version;
  void (*apply)(NodeUpgrade &);
  /// Whether the rewrite looks at types or shapes.
  bool needsTypes = false;
};

// One function per file of rows.
llvm::ArrayRef<UpgradeRow> elementwiseUpgrades();
llvm::ArrayRef<UpgradeRow> tensorUpgrades();
llvm::ArrayRef<UpgradeRow> reductionUpgrades();
llvm::ArrayRef<UpgradeRow> nnUpgrades();
llvm::ArrayRef<UpgradeRow> controlFlowUpgrades();
llvm::ArrayRef<UpgradeRow> experimentalUpgrades();

/// The version that a node of an operator is read as in a model that imports
/// `version`. Some operators of ONNX were written into models before it had
/// them, by onnxruntime's tools or as experimental ones: those are read in
/// their first form.
int64_t readVersion(llvm::StringRef domain, llvm::StringRef op,
                    int64_t version);

/// Version of the operator's last row; 0 if its form never changed.
int64_t lastFormChange(llvm::StringRef domain, llvm::StringRef op);

/// Whether some row that looks at types applies to a node of the graph.
bool upgradeNeedsTypes(const ::onnx::ModelProto &model);

/// Brings every node of the model to its operator's latest form, and the
/// model's imports to the latest versions. Checks each node against the schema
/// of the version it was written for.
void upgradeModel(::onnx::ModelProto &model);

} // namespace sardonyx::importer

#endif // SARDONYX_LIB_IMPORTER_UPGRADE_H
