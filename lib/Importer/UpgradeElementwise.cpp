//===- UpgradeElementwise.cpp - Arithmetic, comparisons, activations ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

#include <limits>
#include <numeric>

using namespace llvm;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {
namespace {

/// Before version 7, B was broadcast only if asked for, its dimensions lining
/// up with those of A from `axis` on (the last ones by default).
void broadcastAttribute(NodeUpgrade &u) {
  int64_t broadcast = u.takeInt("broadcast", 0);
  auto attribute = u.take("axis");
  if (!broadcast || !attribute)
    return;
  const std::string b = u.node.input(1);
  int64_t rankA = u.requireRank(u.node.input(0)), rankB = u.requireRank(b);
  int64_t axis = attribute->i() < 0 ? attribute->i() + rankA : attribute->i();
  int64_t trailing = rankA - rankB - axis;
  if (axis < 0 || trailing < 0)
    u.refuse("axis " + Twine(attribute->i()) +
             " does not fit operands of rank " + Twine(rankA) + " and " +
             Twine(rankB));
  if (trailing == 0)
    return;
  std::vector<int64_t> axes(trailing);
  std::iota(axes.begin(), axes.end(), rankB);
  u.setInput(1, u.op("Unsqueeze", {b, u.ints(axes)}));
}

/// A slope of one dimension stood for the channels, dimension 1 of X.
void channelSlope(NodeUpgrade &u) {
  const std::string slope = u.node.input(1);
  std::optional<std::vector<int64_t>> shape = u.shape(slope);
  if (!shape)
    u.refuse("the shape of the slope must be known to read version 6 of the "
             "operator");
  if (shape->size() != 1 || shape->front() == 1)
    return;
  int64_t trailing = u.requireRank(u.node.input(0)) - 2;
  if (trailing <= 0)
    return;
  std::vector<int64_t> axes(trailing);
  std::iota(axes.begin(), axes.end(), 1);
  u.setInput(1, u.op("Unsqueeze", {slope, u.ints(axes)}));
}

void clipBounds(NodeUpgrade &u) {
  const std::string x = u.node.input(0);
  // A missing bound was the last finite number, not none: infinities became
  // that.
  float last = u.dataType(x) == Tensor::FLOAT16
                   ? 65504.0f
                   : std::numeric_limits<float>::max();
  u.setInput(1, u.scalarLike(u.takeFloat("min", -last), x));
  u.setInput(2, u.scalarLike(u.takeFloat("max", last), x));
}

/// Types had names before they had numbers.
void castToName(NodeUpgrade &u) {
  std::string name = u.takeString("to", "");
  int type = StringSwitch<int>(name)
                 .Case("FLOAT", Tensor::FLOAT)
                 .Case("UINT8", Tensor::UINT8)
                 .Case("INT8", Tensor::INT8)
                 .Case("UINT16", Tensor::UINT16)
                 .Case("INT16", Tensor::INT16)
                 .Case("INT32", Tensor::INT32)
                 .Case("INT64", Tensor::INT64)
                 .Case("BOOL", Tensor::BOOL)
                 .Case("FLOAT16", Tensor::FLOAT16)
                 .Case("DOUBLE", Tensor::DOUBLE)
                 .Case("UINT32", Tensor::UINT32)
                 .Case("UINT64", Tensor::UINT64)
                 .Default(Tensor::UNDEFINED);
  if (type == Tensor::UNDEFINED)
    u.refuse("'" + name + "' names no type that can be cast to");
  u.set("to", int64_t(type));
}

/// Version 13 dropped the integer types, which onnx.reference computes in
/// single precision.
void integersAsFloats(NodeUpgrade &u) { computeIntegersAs(u, Tensor::FLOAT); }

/// Version 1 gave fewer digits of the default constants.
void seluDefaults(NodeUpgrade &u) {
  if (!u.find("alpha"))
    u.set("alpha", 1.6732f);
  if (!u.find("gamma"))
    u.set("gamma", 1.0507f);
}

/// Gemm's C took part only in plain addition; since 7 it is broadcast.
void dropBroadcast(NodeUpgrade &u) { u.take("broadcast"); }

constexpr UpgradeRow kRows[] = {
    {"", "Add", 7, broadcastAttribute, true},
    {"", "Sub", 7, broadcastAttribute, true},
    {"", "Mul", 7, broadcastAttribute, true},
    {"", "Div", 7, broadcastAttribute, true},
    {"", "Pow", 7, broadcastAttribute, true},
    {"", "And", 7, broadcastAttribute, true},
    {"", "Or", 7, broadcastAttribute, true},
    {"", "Xor", 7, broadcastAttribute, true},
    {"", "Equal", 7, broadcastAttribute, true},
    {"", "Greater", 7, broadcastAttribute, true},
    {"", "Less", 7, broadcastAttribute, true},
    {"", "PRelu", 7, channelSlope, true},
    {"", "Clip", 11, clipBounds, true},
    {"", "Cast", 6, castToName},
    {"", "Erf", 13, integersAsFloats, true},
    {"", "Selu", 6, seluDefaults},
    {"", "Gemm", 7, dropBroadcast},
};

} // namespace

ArrayRef<UpgradeRow> elementwiseUpgrades() { return kRows; }

} // namespace sardonyx::importer
