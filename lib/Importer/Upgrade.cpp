//===- Upgrade.cpp - Applying the table of operator changes ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Upgrade.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

#include <onnx/defs/schema.h>

using namespace llvm;

namespace sardonyx::importer {

using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::OpSchema;
using ::onnx::OpSchemaRegistry;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {

/// Rows by operator, in order of version. "*" stands for any operator.
class Table {
public:
  Table() {
    for (ArrayRef<UpgradeRow> rows :
         {elementwiseUpgrades(), tensorUpgrades(), reductionUpgrades(),
          nnUpgrades(), controlFlowUpgrades(), experimentalUpgrades()})
      for (const UpgradeRow &row : rows)
        byOp[key(row.domain, row.op)].push_back(&row);
    for (auto &entry : byOp)
      llvm::sort(entry.getValue(),
                 [](const UpgradeRow *a, const UpgradeRow *b) {
                   return a->version < b->version;
                 });
  }

  static const Table &get() {
    static const Table table;
    return table;
  }

  /// The first row for nodes of `version`; null if the form is the latest.
  const UpgradeRow *next(const NodeProto &node, int64_t version) const {
    auto it = byOp.find(key(node.domain(), node.op_type()));
    if (it == byOp.end())
      return nullptr;
    for (const UpgradeRow *row : it->getValue())
      if (row->version > version)
        return row;
    return nullptr;
  }

private:
  static std::string key(StringRef domain, StringRef op) {
    return (domain + ":" + op).str();
  }
  StringMap<SmallVector<const UpgradeRow *, 2>> byOp;
};

using Versions = StringMap<int64_t>;

Versions importedVersions(const ::onnx::ModelProto &model) {
  Versions versions;
  for (const auto &import : model.opset_import())
    versions[import.domain()] = import.version();
  return versions;
}

/// Version that the node was written for; removes the inliner's mark.
int64_t takeVersion(NodeProto &node, const Versions &versions) {
  const std::string op = node.op_type();
  size_t mark = op.rfind('@');
  if (mark != std::string::npos) {
    int64_t version = 0;
    StringRef(op).drop_front(mark + 1).getAsInteger(10, version);
    node.set_op_type(op.substr(0, mark));
    return version;
  }
  auto it = versions.find(node.domain());
  if (it == versions.end())
    failAt(node, "the model does not import domain '" + node.domain() + "'");
  return it->second;
}

bool needsTypes(const GraphProto &graph, const Versions &versions) {
  for (const NodeProto &node : graph.node()) {
    NodeProto key;
    key.set_domain(node.domain());
    key.set_op_type(node.op_type());
    int64_t version = takeVersion(key, versions);
    while (const UpgradeRow *row = Table::get().next(key, version)) {
      if (row->needsTypes)
        return true;
      version = row->version;
      if (version == INT64_MAX)
        break;
    }
    bool inside = false;
    forEachSubgraph(
        node, [&](const GraphProto &g) { inside |= needsTypes(g, versions); });
    if (inside)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// One graph
//===----------------------------------------------------------------------===//

class GraphUpgrade {
public:
  GraphUpgrade(const Versions &versions, const GraphProto &graph)
      : versions(versions), names(graph) {}

  void run(GraphProto &graph, const ValueScope *outer) {
    // The scope refers into the graph: nodes may only move, not change, while
    // it lives; they are taken out one by one.
    ValueScope scope(graph, outer);
    google::protobuf::RepeatedPtrField<NodeProto> nodes;
    nodes.Reserve(graph.node_size());
    for (NodeProto &node : *graph.mutable_node()) {
      forEachSubgraph(node, [&](GraphProto &g) { run(g, &scope); });
      upgrade(NodeProto(node), scope, nodes);
    }
    graph.mutable_node()->Swap(&nodes);
  }

private:
  void upgrade(NodeProto node, const ValueScope &scope,
               google::protobuf::RepeatedPtrField<NodeProto> &result) {
    int64_t version = takeVersion(node, versions);
    nameRequiredOutputs(node);
    // What ONNX has no schema for is checked when rows have made another node.
    bool isExperimental = hasRowsOnly(node, version);
    if (!isExperimental && !check(node, version)) {
      result.Add(std::move(node));
      return;
    }
    dropConsumedInputs(node, version);
    std::vector<NodeProto> before, after;
    while (const UpgradeRow *row = Table::get().next(node, version)) {
      NodeUpgrade step(node, version, scope, names, before);
      row->apply(step);
      llvm::append_range(before, step.before);
      // What a later row puts after the node comes before what an earlier did.
      step.after.insert(step.after.end(), after.begin(), after.end());
      after = std::move(step.after);
      if (row->version == INT64_MAX)
        break;
      version = row->version;
    }
    if (isExperimental)
      check(node, latestVersion(node));
    for (NodeProto &made : before)
      result.Add(std::move(made));
    result.Add(std::move(node));
    for (NodeProto &made : after)
      result.Add(std::move(made));
  }

  static int64_t latestVersion(const NodeProto &node) {
    const OpSchema *schema =
        OpSchemaRegistry::Schema(node.op_type(), node.domain());
    return schema ? schema->SinceVersion() : 0;
  }

  /// Whether the operator is one that ONNX does not have, or only later, and
  /// that is read nevertheless.
  static bool hasRowsOnly(const NodeProto &node, int64_t version) {
    if (readVersion(node.domain(), node.op_type(), version) != version)
      return true;
    return !latestVersion(node) && Table::get().next(node, version);
  }

  /// False for an operator that is none of ONNX's.
  bool check(const NodeProto &node, int64_t version) {
    const OpSchema *schema =
        OpSchemaRegistry::Schema(node.op_type(), version, node.domain());
    if (!schema) {
      const OpSchema *newer =
          OpSchemaRegistry::Schema(node.op_type(), node.domain());
      if (!newer)
        return false;
      int first = 0;
      for (int v = 1; v <= newer->SinceVersion() && !first; ++v)
        if (OpSchemaRegistry::Schema(node.op_type(), v, node.domain()))
          first = v;
      failAt(node, "the operator exists since version " + Twine(first) +
                       " of its domain, but the model imports version " +
                       Twine(version));
    }
    checkAxes(node);
    // Deprecated operators are taken in their last form.
    if (schema->Deprecated())
      schema = OpSchemaRegistry::Schema(
          node.op_type(), schema->SinceVersion() - 1, node.domain());
    try {
      if (schema)
        schema->Verify(node);
    } catch (const std::exception &error) {
      failAt(node, StringRef(error.what()).trim());
    }
    return true;
  }

  /// Inference in libonnx cuts axes down to 32 bits before it checks them.
  static void checkAxes(const NodeProto &node) {
    constexpr int64_t kMaxAxis = 1024;
    for (const auto &attribute : node.attribute()) {
      StringRef name = attribute.name();
      if (!name.contains("axis") && !name.contains("axes"))
        continue;
      auto check = [&](int64_t axis) {
        if (axis < -kMaxAxis || axis > kMaxAxis)
          failAt(node, "attribute '" + name + "' is " + Twine(axis) +
                           ", and no tensor has as many dimensions");
      };
      check(attribute.i());
      for_each(attribute.ints(), check);
    }
  }

  /// Until version 6 operators said which inputs they may overwrite.
  static void dropConsumedInputs(NodeProto &node, int64_t version) {
    if (version >= 6 || !node.domain().empty())
      return;
    auto *attributes = node.mutable_attribute();
    for (int i = attributes->size() - 1; i >= 0; --i)
      if (attributes->Get(i).name() == "consumed_inputs")
        attributes->DeleteSubrange(i, 1);
  }

  /// A result that an op must have gets a name, and through it a type.
  void nameRequiredOutputs(NodeProto &node) {
    const OpSchema *schema =
        OpSchemaRegistry::Schema(node.op_type(), node.domain());
    if (!schema || schema->outputs().empty())
      return;
    for (int i = 0; i < node.output_size(); ++i) {
      size_t last = schema->outputs().size() - 1;
      const auto &formal = schema->outputs()[std::min<size_t>(i, last)];
      if (!node.output(i).empty() || formal.GetOption() == OpSchema::Optional)
        continue;
      if (node.name().empty()) // messages would call it by its output
        node.set_name(displayName(node));
      node.set_output(i, names.make("unused"));
    }
  }

  const Versions &versions;
  FreshNames names;
};

bool anyNameStartsWith(const GraphProto &graph, StringRef prefix) {
  for (const NodeProto &node : graph.node()) {
    bool found = any_of(node.output(), [&](StringRef name) {
      return name.starts_with(prefix);
    });
    forEachSubgraph(node, [&](const GraphProto &g) {
      found |= anyNameStartsWith(g, prefix);
    });
    if (found)
      return true;
  }
  auto starts = [&](const auto &value) {
    return StringRef(value.name()).starts_with(prefix);
  };
  return any_of(graph.input(), starts) || any_of(graph.initializer(), starts);
}

} // namespace

FreshNames::FreshNames(const GraphProto &graph) {
  // Models that we exported have such names already.
  for (unsigned i = 1; anyNameStartsWith(graph, prefix); ++i)
    prefix = "sdx" + std::to_string(i) + ".";
}

int64_t readVersion(StringRef domain, StringRef op, int64_t version) {
  if (!domain.empty())
    return version;
  int64_t first = StringSwitch<int64_t>(op)
                      .Case("LayerNormalization", 17)
                      .Case("MeanVarianceNormalization", 9)
                      .Case("ThresholdedRelu", 10)
                      .Default(1);
  return std::max(version, first);
}

int64_t lastFormChange(StringRef domain, StringRef op) {
  NodeProto node;
  node.set_domain(domain.str());
  node.set_op_type(op.str());
  int64_t version = 0;
  while (const UpgradeRow *row = Table::get().next(node, version)) {
    if (row->version == INT64_MAX)
      break;
    version = row->version;
  }
  return version;
}

bool upgradeNeedsTypes(const ::onnx::ModelProto &model) {
  return needsTypes(model.graph(), importedVersions(model));
}

void upgradeModel(::onnx::ModelProto &model) {
  Versions versions = importedVersions(model);
  GraphUpgrade(versions, model.graph()).run(*model.mutable_graph(), nullptr);
  const auto &latest = OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (auto &import : *model.mutable_opset_import()) {
    auto range = latest.find(import.domain());
    if (range != latest.end())
      import.set_version(range->second.second);
  }
  // Rows make nodes of the main domain.
  if (!versions.count("")) {
    auto *import = model.add_opset_import();
    import->set_domain("");
    import->set_version(latest.at("").second);
  }
}

//===----------------------------------------------------------------------===//
// ValueScope
//===----------------------------------------------------------------------===//

ValueScope::ValueScope(const GraphProto &graph, const ValueScope *outer)
    : outer(outer) {
  auto add = [&](const auto &values) {
    for (const auto &value : values)
      if (value.has_type())
        types.try_emplace(value.name(), &value.type());
  };
  add(graph.output());
  add(graph.value_info());
  add(graph.input());
  for (const auto &tensor : graph.initializer())
    constants[tensor.name()] = &tensor;
  for (const NodeProto &node : graph.node())
    if (node.op_type() == "Constant" && node.domain().empty() &&
        node.output_size() == 1 && node.attribute_size() == 1 &&
        node.attribute(0).has_t())
      constants[node.output(0)] = &node.attribute(0).t();
  addUses(graph);
}

void ValueScope::addUses(const GraphProto &graph) {
  for (const auto &output : graph.output())
    used.insert(output.name());
  for (const NodeProto &node : graph.node()) {
    for (const std::string &input : node.input())
      used.insert(input);
    forEachSubgraph(node, [&](const GraphProto &g) { addUses(g); });
  }
}

const ::onnx::TypeProto *ValueScope::typeOf(StringRef name) const {
  for (const ValueScope *scope = this; scope; scope = scope->outer)
    if (const ::onnx::TypeProto *type = scope->types.lookup(name))
      return type;
  return nullptr;
}

const ::onnx::TensorProto *ValueScope::constant(StringRef name) const {
  for (const ValueScope *scope = this; scope; scope = scope->outer)
    if (const ::onnx::TensorProto *tensor = scope->constants.lookup(name))
      return tensor;
  return nullptr;
}

bool ValueScope::isUsed(StringRef name) const { return used.contains(name); }

} // namespace sardonyx::importer
