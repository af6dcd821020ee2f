//===- UpgradeControlFlow.cpp - Scan --------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sardonyx::importer {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;

/// Declares a value of the type of `like` without its batch dimension.
void declareUnbatched(::onnx::ValueInfoProto &value, const std::string &name,
                      const ::onnx::TypeProto *like) {
  value.set_name(name);
  if (!like || !like->has_tensor_type())
    return;
  auto *type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(like->tensor_type().elem_type());
  if (!like->tensor_type().has_shape())
    return;
  auto *shape = type->mutable_shape();
  for (int i = 1; i < like->tensor_type().shape().dim_size(); ++i)
    *shape->add_dim() = like->tensor_type().shape().dim(i);
}

/// Scan-8 ran over batches: a Scan over the batch whose body is the Scan
/// proper.
void scanBatch(NodeUpgrade &u) {
  if (u.hasInput(0))
    u.refuse("sequence_lens of Scan version 8 are not supported");
  auto body = u.take("body");
  auto directions = u.take("directions");
  auto scans = u.take("num_scan_inputs");
  int total = u.node.input_size() - 1;
  if (scans->i() < 1 || scans->i() > total)
    u.refuse("num_scan_inputs is " + Twine(scans->i()) + ", but the node has " +
             Twine(total) + " inputs beside sequence_lens");

  NodeProto inner;
  inner.set_op_type("Scan");
  inner.set_name(displayName(u.node));
  *inner.add_attribute() = *body;
  *inner.add_attribute() = *scans;
  if (directions) {
    directions->set_name("scan_input_directions");
    *inner.add_attribute() = *directions;
  }
  GraphProto outer;
  outer.set_name(u.fresh("batch"));
  for (int i = 1; i <= total; ++i) {
    std::string name = u.fresh("element");
    inner.add_input(name);
    declareUnbatched(*outer.add_input(), name, u.typeOf(u.node.input(i)));
  }
  for (const std::string &output : u.node.output()) {
    std::string name = output.empty() ? "" : u.fresh("result");
    if (name.empty())
      u.refuse("every output of Scan version 8 must be named");
    inner.add_output(name);
    declareUnbatched(*outer.add_output(), name, u.typeOf(output));
  }
  *outer.add_node() = std::move(inner);

  u.node.mutable_input()->DeleteSubrange(0, 1);
  u.set("num_scan_inputs", int64_t(total));
  auto *attribute = u.node.add_attribute();
  attribute->set_name("body");
  attribute->set_type(AttributeProto::GRAPH);
  *attribute->mutable_g() = std::move(outer);
}

constexpr UpgradeRow kRows[] = {
    {"", "Scan", 9, scanBatch},
};

} // namespace

ArrayRef<UpgradeRow> controlFlowUpgrades() { return kRows; }

} // namespace sardonyx::importer
