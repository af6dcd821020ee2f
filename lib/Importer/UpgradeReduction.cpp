//===- UpgradeReduction.cpp - Reductions and softmax ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {

void dropRepeatedAxes(NodeUpgrade &u) {
  if (!u.hasInput(1))
    return;
  std::optional<std::vector<int64_t>> axes = u.intValues(u.node.input(1));
  if (!axes)
    return;
  int64_t rank = u.rank(u.node.input(0)).value_or(0);
  std::vector<int64_t> once;
  for (int64_t axis : *axes) {
    axis = axis < 0 ? axis + rank : axis;
    if (!is_contained(once, axis))
      once.push_back(axis);
  }
  if (once.size() != axes->size())
    u.setInput(1, u.ints(once));
}

void computeIntegersAs(NodeUpgrade &u, int64_t floatType) {
  const std::string x = u.node.input(0);
  int type = u.dataType(x);
  if (!is_contained({Tensor::INT8, Tensor::INT16, Tensor::INT32, Tensor::INT64,
                     Tensor::UINT8, Tensor::UINT16, Tensor::UINT32,
                     Tensor::UINT64},
                    type))
    return;
  std::string cast = u.fresh("Cast");
  setAttribute(u.addBefore("Cast", {x}, {cast}), "to", floatType);
  u.node.set_input(0, cast);
  const std::string result = u.node.output(0);
  std::string wide = u.redirectOutput(0);
  setAttribute(u.addAfter("Cast", {wide}, {result}), "to", int64_t(type));
}

namespace {

/// Version 28 dropped the integer types.
void integersAsDoubles(NodeUpgrade &u) { computeIntegersAs(u, Tensor::DOUBLE); }

void axesInput(NodeUpgrade &u) {
  auto axes = u.takeInts("axes");
  if (axes && !axes->empty())
    u.setInput(1, u.ints(*axes));
}

/// Until version 12 these worked on the input made 2-D at `axis`.
void flattened(NodeUpgrade &u) {
  int64_t axis = u.takeInt("axis", 1);
  const std::string x = u.node.input(0);
  std::optional<std::vector<int64_t>> shape = u.shape(x);
  if (shape) {
    int64_t rank = shape->size();
    int64_t first = axis < 0 ? axis + rank : axis;
    bool oneAxis = first >= 0 && first < rank &&
                   all_of(
                       ArrayRef<int64_t>(*shape).drop_front(first + 1),
                       [](int64_t size) { return size == 1; });
    if (oneAxis) {
      u.set("axis", first);
      return;
    }
  }
  std::string flat = u.fresh("Flatten");
  setAttribute(u.addBefore("Flatten", {x}, {flat}), "axis", axis);
  bool known = shape && all_of(*shape, [](int64_t size) { return size >= 0; });
  std::string sizes = known ? u.ints(*shape) : u.op("Shape", {x});
  u.node.set_input(0, flat);
  u.set("axis", int64_t(-1));
  const std::string result = u.node.output(0);
  std::string y = u.redirectOutput(0);
  setAttribute(u.addAfter("Reshape", {y, sizes}, {result}), "allowzero",
               int64_t(1));
}

constexpr UpgradeRow kRows[] = {
    {"", "ReduceSum", 13, axesInput},
    {"", "ReduceL1", 18, axesInput},
    {"", "ReduceL2", 18, axesInput},
    {"", "ReduceLogSum", 18, axesInput},
    {"", "ReduceLogSumExp", 18, axesInput},
    {"", "ReduceMax", 18, axesInput},
    {"", "ReduceMean", 18, axesInput},
    {"", "ReduceMin", 18, axesInput},
    {"", "ReduceProd", 18, axesInput},
    {"", "ReduceSumSquare", 18, axesInput},
    {"", "ReduceLogSum", 28, integersAsDoubles, true},
    {"", "ReduceLogSumExp", 28, integersAsDoubles, true},
    {"", "ReduceL1", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceL2", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceLogSum", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceLogSumExp", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceMax", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceMean", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceMin", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceProd", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceSum", INT64_MAX, dropRepeatedAxes},
    {"", "ReduceSumSquare", INT64_MAX, dropRepeatedAxes},
    {"", "Softmax", 13, flattened, true},
    {"", "LogSoftmax", 13, flattened, true},
    {"", "Hardmax", 13, flattened, true},
};

} // namespace

ArrayRef<UpgradeRow> reductionUpgrades() { return kRows; }

} // namespace sardonyx::importer
