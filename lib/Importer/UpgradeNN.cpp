//===- UpgradeNN.cpp - Normalisation, pooling, recurrence, dropout --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Upgrade.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace llvm;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {
namespace {

//===----------------------------------------------------------------------===//
// BatchNormalization
//===----------------------------------------------------------------------===//

/// Takes away trailing outputs that nobody reads.
void dropUnusedOutputs(NodeUpgrade &u, int first, const Twine &why) {
  for (int i = first; i < u.node.output_size(); ++i)
    if (u.hasOutput(i) && u.isUsed(u.node.output(i)))
      u.refuse("output '" + u.node.output(i) + "' " + why);
  while (u.node.output_size() > first)
    u.node.mutable_output()->RemoveLast();
}

void batchNormTest(NodeUpgrade &u) {
  if (u.takeInt("is_test", 0))
    dropUnusedOutputs(u, 1,
                      "is made in training mode only, but is_test is set");
}

/// Without `spatial`, statistics are of single activations: the other inputs
/// have the shape of X but for the batch.
void batchNormSpatial(NodeUpgrade &u) {
  if (u.takeInt("spatial", 1))
    return;
  dropUnusedOutputs(u, 1, "is not supported when spatial is 0");
  const std::string x = u.node.input(0), scale = u.node.input(1),
                    bias = u.node.input(2), mean = u.node.input(3),
                    var = u.node.input(4);
  float epsilon = u.takeFloat("epsilon", 1e-5f);
  std::string deviation =
      u.op("Sqrt", {u.op("Add", {var, u.scalarLike(epsilon, x)})});
  std::string normal = u.op("Div", {u.op("Sub", {x, mean}), deviation});
  std::string scaled = u.op("Mul", {normal, scale});
  u.node.set_op_type("Add");
  u.node.clear_input();
  u.node.add_input(scaled);
  u.node.add_input(bias);
  u.node.clear_attribute();
}

/// Before 14 the number of outputs told training from inference.
void batchNormTraining(NodeUpgrade &u) {
  if (u.node.op_type() != "BatchNormalization")
    return;
  bool training = false;
  for (int i = 1; i < u.node.output_size(); ++i)
    training |= u.hasOutput(i);
  if (!training) {
    while (u.node.output_size() > 1)
      u.node.mutable_output()->RemoveLast();
    return;
  }
  dropUnusedOutputs(u, 3,
                    "is the batch's statistic, which version 14 of the "
                    "operator no longer gives");
  u.set("training_mode", int64_t(1));
  for (int i = 1; i < 3; ++i) {
    if (i >= u.node.output_size())
      u.node.add_output("");
    if (!u.hasOutput(i))
      u.node.set_output(i, u.fresh("statistic"));
  }
}

//===----------------------------------------------------------------------===//
// GroupNormalization
//===----------------------------------------------------------------------===//

/// Version 18 had one scale and bias a group, 21 has one a channel.
void groupNormChannels(NodeUpgrade &u) {
  // A deprecated operator without an earlier form is verified by nobody else.
  if (!u.find("num_groups"))
    u.refuse("the attribute num_groups is required");
  if (!u.hasInput(0) || !u.hasInput(1) || !u.hasInput(2) ||
      u.node.input_size() > 3 || u.node.output_size() != 1)
    u.refuse("it takes three inputs and gives one output");
  const std::string x = u.node.input(0);
  int64_t groups = u.find("num_groups")->i();
  if (groups <= 0)
    u.refuse("num_groups must be positive, found " + Twine(groups));
  std::optional<std::vector<int64_t>> shape = u.shape(x);
  std::string each;
  if (shape && shape->size() > 1 && (*shape)[1] >= 0) {
    each = u.ints({1, (*shape)[1] / groups});
  } else {
    std::string channels = u.fresh("Shape");
    auto &node = u.addBefore("Shape", {x}, {channels});
    setAttribute(node, "start", int64_t(1));
    setAttribute(node, "end", int64_t(2));
    std::string size = u.op("Div", {channels, u.ints({groups})});
    std::string one = u.ints({1});
    each = u.fresh("Concat");
    setAttribute(u.addBefore("Concat", {one, size}, {each}), "axis",
                 int64_t(0));
  }
  for (int i : {1, 2}) {
    std::string column = u.op("Unsqueeze", {u.node.input(i), u.ints({1})});
    std::string wide = u.op("Expand", {column, each});
    u.node.set_input(i, u.op("Reshape", {wide, u.ints({-1})}));
  }
  // The statistics were computed in the type of X.
  int type = u.dataType(x);
  if (type && type != Tensor::FLOAT)
    u.set("stash_type", int64_t(type));
}

//===----------------------------------------------------------------------===//
// MeanVarianceNormalization
//===----------------------------------------------------------------------===//

/// Before version 9 it was experimental, with flags for the axes and for the
/// division, and meant for [N,C,H,W].
void meanVarianceAxes(NodeUpgrade &u) {
  const std::string x = u.node.input(0);
  bool acrossChannels = u.takeInt("across_channels", 0);
  bool divides = u.takeInt("normalize_variance", 1);
  std::optional<std::vector<int64_t>> axes = u.takeInts("axes");
  if (!axes) {
    axes = acrossChannels ? std::vector<int64_t>{0, 1, 2, 3}
                          : std::vector<int64_t>{0, 2, 3};
    if (std::optional<int64_t> rank = u.rank(x))
      erase_if(*axes, [&](int64_t axis) { return axis >= *rank; });
  }
  if (divides) {
    u.set("axes", ArrayRef<int64_t>(*axes));
    return;
  }
  std::string mean = u.op("ReduceMean", {x, u.ints(*axes)});
  u.node.set_op_type("Sub");
  u.setInput(1, mean);
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// is_test is gone since 7, when dropping became what training does.
void dropoutInputs(NodeUpgrade &u) {
  bool training = u.version < 7 && !u.takeInt("is_test", 0);
  float ratio = u.takeFloat("ratio", 0.5f);
  if (training) {
    u.setInput(1, u.scalar(ratio));
    std::string flag = u.fresh("Cast");
    setAttribute(u.addBefore("Cast", {u.scalar(int64_t(1))}, {flag}), "to",
                 int64_t(Tensor::BOOL));
    u.setInput(2, flag);
  }
  if (!u.hasOutput(1))
    return;
  if (!u.isUsed(u.node.output(1))) {
    u.node.mutable_output()->RemoveLast();
    return;
  }
  // The mask had the type of the data until version 10.
  if (u.version < 10) {
    const std::string mask = u.node.output(1);
    std::string flags = u.redirectOutput(1);
    u.addAfter("CastLike", {flags, u.node.input(0)}, {mask});
  }
}

//===----------------------------------------------------------------------===//
// Pooling and regions
//===----------------------------------------------------------------------===//

void integerNorm(NodeUpgrade &u) {
  float p = u.takeFloat("p", 2.0f);
  if (p != std::floor(p) || std::abs(p) > 1e6f)
    u.refuse("p must be an integer since version 2, found " +
             Twine(std::to_string(p)));
  u.set("p", int64_t(p));
}

void roiAlignHalfPixel(NodeUpgrade &u) {
  u.set("coordinate_transformation_mode", StringRef("output_half_pixel"));
}

//===----------------------------------------------------------------------===//
// Recurrence
//===----------------------------------------------------------------------===//

/// The default direction was misspelt in GRU-1.
void recurrentDirection(NodeUpgrade &u) {
  if (const auto *direction = u.find("direction"))
    if (direction->s() == "foward")
      u.set("direction", StringRef("forward"));
}

/// Whether Y is wanted is told by its name alone since 7.
void recurrentSequence(NodeUpgrade &u) { u.take("output_sequence"); }

//===----------------------------------------------------------------------===//
// ai.onnx.ml
//===----------------------------------------------------------------------===//

/// Version 1 mapped between a list of strings and its positions, either way.
void labelEncoderClasses(NodeUpgrade &u) {
  auto classes = u.take("classes_strings");
  std::vector<std::string> strings;
  if (classes)
    strings.assign(classes->strings().begin(), classes->strings().end());
  bool fromStrings = u.dataType(u.node.input(0)) == Tensor::STRING;
  auto list = [&](StringRef name) {
    auto *attribute = u.node.add_attribute();
    attribute->set_name(name.str());
    return attribute;
  };
  auto *keys = list(fromStrings ? "keys_strings" : "keys_int64s");
  auto *values = list(fromStrings ? "values_int64s" : "values_strings");
  auto *words = fromStrings ? keys : values;
  auto *numbers = fromStrings ? values : keys;
  words->set_type(::onnx::AttributeProto::STRINGS);
  numbers->set_type(::onnx::AttributeProto::INTS);
  for (size_t i = 0; i < strings.size(); ++i) {
    words->add_strings(strings[i]);
    numbers->add_ints(i);
  }
}

constexpr UpgradeRow kRows[] = {
    {"", "BatchNormalization", 7, batchNormTest},
    {"", "BatchNormalization", 9, batchNormSpatial, true},
    {"", "BatchNormalization", 14, batchNormTraining},
    {"", "GroupNormalization", 21, groupNormChannels, true},
    {"", "MeanVarianceNormalization", 9, meanVarianceAxes, true},
    {"", "Dropout", 12, dropoutInputs},
    {"", "LpPool", 2, integerNorm},
    {"", "GlobalLpPool", 2, integerNorm},
    {"", "RoiAlign", 16, roiAlignHalfPixel},
    {"", "GRU", 3, recurrentDirection},
    {"", "GRU", 7, recurrentSequence},
    {"", "LSTM", 7, recurrentSequence},
    {"", "RNN", 7, recurrentSequence},
    {"ai.onnx.ml", "LabelEncoder", 2, labelEncoderClasses, true},
};

} // namespace

ArrayRef<UpgradeRow> nnUpgrades() { return kRows; }

} // namespace sardonyx::importer
