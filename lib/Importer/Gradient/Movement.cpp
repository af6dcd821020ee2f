//===- Movement.cpp - Derivatives of what moves elements ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Gradient/Gradient.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sardonyx::importer {
namespace {

//===----------------------------------------------------------------------===//
// Any operator that takes elements of its first input
//===----------------------------------------------------------------------===//

/// The node once more, on another first input; the results' names are new.
std::string repeat(Adjoint &a, const std::string &first) {
  NodeMaker::Names inputs(a.node.input().begin(), a.node.input().end());
  inputs[0] = first;
  std::string result = a.op(a.node.op_type(), inputs);
  *a.made.back().mutable_attribute() = a.node.attribute();
  return result;
}

/// The operator moves the positions of elements as it moves elements.
void move(Adjoint &a) {
  std::string positions = repeat(a, a.positionsOf(a.x()));
  a.give(0, a.scatter(a.dy(), positions, a.x()));
}

/// The derivative without the borders, or with zeros where the node crops.
/// Constants have that of what lies there: positions tell by a -1.
void pad(Adjoint &a) {
  if (a.stringOf("mode", "constant") != "constant")
    return move(a);
  NodeMaker::Names inputs(a.node.input().begin(), a.node.input().end());
  inputs.resize(4);
  if (a.wants(0))
    a.give(0, a.op("Pad", {a.dy(), a.op("Neg", {inputs[1]}), "", inputs[3]}));
  if (!a.wants(2))
    return;
  inputs[0] = a.positionsOf(a.x());
  inputs[2] = a.op("Squeeze", {a.ints({-1})});
  std::string positions = a.op("Pad", inputs);
  *a.made.back().mutable_attribute() = a.node.attribute();
  std::string zero = a.op("Squeeze", {a.ints({0})});
  std::string isPadding = a.op("Less", {positions, zero});
  std::string sum = a.op("ReduceSum", {a.where(isPadding, a.dy(), a.number(0))},
                         {{"keepdims", int64_t(0)}});
  a.give(2, a.reshapeTo(sum, a.shapeOf(a.x(2))));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

void reshape(Adjoint &a) { a.give(0, a.reshapeTo(a.dy(), a.shapeOf(a.x()))); }

void expand(Adjoint &a) { a.give(0, a.sumTo(a.dy(), a.y(), a.x())); }

void transpose(Adjoint &a) {
  const auto *perm = a.find("perm");
  if (!perm)
    return a.give(0, a.op("Transpose", {a.dy()}));
  std::vector<int64_t> inverse(perm->ints_size());
  for (int i = 0; i < perm->ints_size(); ++i)
    inverse[a.axis(perm->ints(i), perm->ints_size())] = i;
  a.give(0, a.op("Transpose", {a.dy()}, {{"perm", inverse}}));
}

void concat(Adjoint &a) {
  int64_t axis = a.axis(a.intOf("axis", 0), a.rank(a.x()));
  NodeMaker::Names sizes;
  for (const std::string &input : a.node.input())
    sizes.push_back(a.size(input, axis));
  std::string all = a.op("Concat", sizes, {{"axis", int64_t(0)}});
  int count = a.node.input_size();
  NodeMaker::Names parts =
      a.ops("Split", {a.dy(), all}, count, {{"axis", axis}});
  for (int i = 0; i < count; ++i)
    if (a.wants(i))
      a.give(i, parts[i]);
}

void split(Adjoint &a) {
  NodeMaker::Names parts;
  for (int i = 0; i < a.node.output_size(); ++i)
    parts.push_back(a.dy(i).empty() ? a.zerosLike(a.y(i)) : a.dy(i));
  a.give(0, a.op("Concat", parts, {{"axis", a.intOf("axis", 0)}}));
}

//===----------------------------------------------------------------------===//
// Elements put into others
//===----------------------------------------------------------------------===//

/// Where updates replace or are added to the data.
void scatterInto(Adjoint &a, StringRef gather,
                 const NodeMaker::Attributes &attributes) {
  std::string how = a.stringOf("reduction", "none");
  if (how != "none" && how != "add")
    a.refuse("reduction '" + how + "'");
  if (a.wants(0)) {
    std::string data = a.dy();
    if (how == "none")
      data = a.op(a.node.op_type(), {data, a.x(1), a.zerosLike(a.x(2))},
                  attributes);
    a.give(0, data);
  }
  if (a.wants(2))
    a.give(2, a.op(gather, {a.dy(), a.x(1)}, attributes));
}

void scatterElements(Adjoint &a) {
  scatterInto(a, "GatherElements", {{"axis", a.intOf("axis", 0)}});
}
void scatterND(Adjoint &a) { scatterInto(a, "GatherND", {}); }

void topK(Adjoint &a) {
  if (a.dy().empty())
    return;
  int64_t axis = a.intOf("axis", -1);
  a.give(0, a.op("ScatterElements", {a.zerosLike(a.x()), a.y(1), a.dy()},
                 {{"axis", axis}, {"reduction", std::string("add")}}));
}

void trilu(Adjoint &a) {
  a.give(0, a.op("Trilu", {a.dy(), a.x(1)}, {{"upper", a.intOf("upper", 1)}}));
}

} // namespace

ArrayRef<GradientRule> movementGradients() {
  static const GradientRule rules[] = {
      {"Compress", move},
      {"Concat", concat},
      {"DepthToSpace", move},
      {"Expand", expand},
      {"Flatten", reshape},
      {"Gather", move},
      {"GatherElements", move},
      {"GatherND", move},
      {"Pad", pad},
      {"Reshape", reshape},
      {"ReverseSequence", move},
      {"ScatterElements", scatterElements},
      {"ScatterND", scatterND},
      {"Slice", move},
      {"SpaceToDepth", move},
      {"Split", split},
      {"Squeeze", reshape},
      {"Tile", move},
      {"TopK", topK},
      {"Transpose", transpose},
      {"Trilu", trilu},
      {"Unsqueeze", reshape},
  };
  return rules;
}

} // namespace sardonyx::importer
