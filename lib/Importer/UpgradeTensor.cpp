//===- UpgradeTensor.cpp - Shapes, indexing and data movement -------------===//
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

void concatDefaultAxis(NodeUpgrade &u) {
  if (!u.find("axis"))
    u.set("axis", int64_t(1));
}

void reshapeShape(NodeUpgrade &u) {
  std::optional<std::vector<int64_t>> shape = u.takeInts("shape");
  if (!shape)
    u.refuse("attribute 'shape' is missing");
  u.setInput(1, u.ints(*shape));
}

void sliceBounds(NodeUpgrade &u) {
  auto starts = u.takeInts("starts"), ends = u.takeInts("ends");
  auto axes = u.takeInts("axes");
  u.setInput(1, u.ints(*starts));
  u.setInput(2, u.ints(*ends));
  if (axes)
    u.setInput(3, u.ints(*axes));
}

void padPaddings(NodeUpgrade &u) {
  auto pads = u.takeInts("paddings");
  u.set("pads", ArrayRef<int64_t>(*pads));
}

void padInputs(NodeUpgrade &u) {
  const std::string x = u.node.input(0);
  auto pads = u.takeInts("pads");
  float value = u.takeFloat("value", 0.0f);
  u.setInput(1, u.ints(*pads));
  // Negative zero is a value of its own.
  if (value != 0.0f || std::signbit(value))
    u.setInput(2, u.scalarLike(value, x));
}

/// Version 1 took the sizes as an input or an attribute, and had no default.
void splitVersion1(NodeUpgrade &u) {
  if (!u.find("axis"))
    u.set("axis", int64_t(0));
  // The sizes had the type of the data.
  if (u.hasInput(1)) {
    std::string sizes = u.fresh("Cast");
    setAttribute(u.addBefore("Cast", {u.node.input(1)}, {sizes}), "to",
                 int64_t(Tensor::INT64));
    u.node.set_input(1, sizes);
  }
}

void splitSizes(NodeUpgrade &u) {
  auto sizes = u.takeInts("split");
  if (sizes && !u.hasInput(1))
    u.setInput(1, u.ints(*sizes));
}

void splitOutputs(NodeUpgrade &u) {
  if (!u.hasInput(1) && !u.find("num_outputs"))
    u.set("num_outputs", int64_t(u.node.output_size()));
}

/// An empty list of sizes says as little as none.
void splitEmptySizes(NodeUpgrade &u) {
  if (!u.hasInput(1))
    return;
  std::optional<std::vector<int64_t>> shape = u.shape(u.node.input(1));
  if (!shape || *shape != std::vector<int64_t>{0})
    return;
  u.setInput(1, "");
  splitOutputs(u);
}

void axesInput(NodeUpgrade &u) {
  if (auto axes = u.takeInts("axes"))
    u.setInput(1, u.ints(*axes));
}

/// Tile-1 repeated along one axis; both numbers were inputs.
void tileRepeats(NodeUpgrade &u) {
  const std::string x = u.node.input(0);
  const std::string tiles = u.node.input(1), axis = u.node.input(2);
  auto list = [&](const std::string &name) {
    std::string cast = u.fresh("Cast");
    setAttribute(u.addBefore("Cast", {name}, {cast}), "to",
                 int64_t(Tensor::INT64));
    return u.op("Reshape", {cast, u.ints({1})});
  };
  std::vector<int64_t> ones(u.requireRank(x), 1);
  std::string repeats =
      u.op("ScatterElements", {u.ints(ones), list(axis), list(tiles)});
  u.setInput(2, "");
  u.setInput(1, repeats);
}

void scatterRename(NodeUpgrade &u) { u.node.set_op_type("ScatterElements"); }

/// Indices outside of [0, depth) gave "off" everywhere; since 11 negative ones
/// count from the end.
void oneHotNegative(NodeUpgrade &u) {
  const std::string indices = u.node.input(0);
  std::string zero = u.op("CastLike", {u.scalar(int64_t(0)), indices});
  std::string depth = u.op("CastLike", {u.node.input(1), indices});
  std::string scalar = u.op("Reshape", {depth, u.ints({})});
  u.setInput(0,
             u.op("Where", {u.op("Less", {indices, zero}), scalar, indices}));
}

void topKInput(NodeUpgrade &u) { u.setInput(1, u.ints({u.takeInt("k", 0)})); }

/// Upsample-1 scaled the two last of four dimensions.
void upsampleHeightWidth(NodeUpgrade &u) {
  float height = u.takeFloat("height_scale", 1.0f);
  float width = u.takeFloat("width_scale", 1.0f);
  auto *scales = u.node.add_attribute();
  scales->set_name("scales");
  scales->set_type(::onnx::AttributeProto::FLOATS);
  for (float scale : {1.0f, 1.0f, height, width})
    scales->add_floats(scale);
}

void upsampleScales(NodeUpgrade &u) {
  auto scales = u.take("scales");
  u.setInput(1, u.floats(std::vector<float>(scales->floats().begin(),
                                            scales->floats().end())));
}

/// From version 10 on Upsample is Resize-10.
void upsampleRename(NodeUpgrade &u) {
  std::string mode = u.takeString("mode", "nearest");
  u.set("mode", StringRef(mode == "bilinear" ? "linear" : mode));
  u.node.set_op_type("Resize");
}

/// The two halves of scales: those that make an axis smaller, and those that
/// make one larger; 1 stands for the others. An empty name is a half that does
/// nothing.
std::pair<std::string, std::string> splitScales(NodeUpgrade &u,
                                                const std::string &scales) {
  std::optional<std::vector<float>> known = u.floatValues(scales);
  if (!known) {
    std::string one = u.scalar(1.0f);
    return {u.op("Min", {scales, one}), u.op("Max", {scales, one})};
  }
  bool shrinks = any_of(*known, [](float scale) { return scale < 1; });
  bool grows = any_of(*known, [](float scale) { return scale > 1; });
  if (!shrinks || !grows)
    return {shrinks ? scales : "", shrinks ? "" : scales};
  std::vector<float> smaller(*known), larger(*known);
  for (float &scale : smaller)
    scale = std::min(scale, 1.0f);
  for (float &scale : larger)
    scale = std::max(scale, 1.0f);
  return {u.floats(smaller), u.floats(larger)};
}

/// Resize-10 knew one way to map coordinates, and its nearest pixel is the next
/// one up where an axis gets smaller, and the next one down where it gets
/// larger.
void resizeInputs(NodeUpgrade &u) {
  const std::string scales = u.node.input_size() > 1 ? u.node.input(1) : "";
  u.setInput(2, scales);
  u.setInput(1, "");
  u.set("coordinate_transformation_mode", StringRef("asymmetric"));
  u.set("nearest_mode", StringRef("floor"));
  const auto *mode = u.find("mode");
  if (scales.empty() || (mode && mode->s() != "nearest"))
    return;
  auto [smaller, larger] = splitScales(u, scales);
  if (larger.empty()) {
    u.set("nearest_mode", StringRef("ceil"));
    return;
  }
  u.setInput(2, larger);
  if (smaller.empty())
    return;
  // Axes do not know each other, so they may be resized one after the other.
  std::string shrunk = u.fresh("Resize");
  auto &first = u.addBefore("Resize", {u.node.input(0), "", smaller}, {shrunk});
  setAttribute(first, "mode", StringRef("nearest"));
  setAttribute(first, "coordinate_transformation_mode",
               StringRef("asymmetric"));
  setAttribute(first, "nearest_mode", StringRef("ceil"));
  u.node.set_input(0, shrunk);
}

/// Models go on to use Upsample after it was deprecated.
void upsampleDeprecated(NodeUpgrade &u) {
  upsampleRename(u);
  resizeInputs(u);
}

void resizeTensorflow(NodeUpgrade &u) {
  const auto *transform = u.find("coordinate_transformation_mode");
  if (!transform || transform->s() != "tf_half_pixel_for_nn")
    return;
  // floor((x + 0.5) / s) is half_pixel with halves rounded up.
  const auto *nearest = u.find("nearest_mode");
  const auto *mode = u.find("mode");
  bool isNearest = !mode || mode->s() == "nearest";
  if (!isNearest || !nearest || nearest->s() != "floor")
    u.refuse("coordinate_transformation_mode 'tf_half_pixel_for_nn' is "
             "supported with nearest_mode 'floor' only");
  u.set("coordinate_transformation_mode", StringRef("half_pixel"));
  u.set("nearest_mode", StringRef("round_prefer_ceil"));
}

/// An input may be left out, but exporters still pass empty tensors for it, as
/// they had to until version 13.
void resizeEmptyInputs(NodeUpgrade &u) {
  const auto *transform = u.find("coordinate_transformation_mode");
  bool crop = transform && transform->s() == "tf_crop_and_resize";
  if (u.hasInput(1) && !crop)
    u.node.set_input(1, "");
  if (u.hasInput(2) && u.hasInput(3)) {
    std::optional<std::vector<int64_t>> shape = u.shape(u.node.input(2));
    if (u.version < 13 || (shape && *shape == std::vector<int64_t>{0}))
      u.node.set_input(2, "");
  }
}

/// Exporters go on to write what left ONNX with version 13.
void resizeLatest(NodeUpgrade &u) {
  resizeTensorflow(u);
  resizeEmptyInputs(u);
}

void dftAxis(NodeUpgrade &u) { u.setInput(2, u.scalar(u.takeInt("axis", 1))); }

void gridSampleModes(NodeUpgrade &u) {
  std::string mode = u.takeString("mode", "bilinear");
  u.set("mode", StringRef(mode == "bilinear"  ? "linear"
                          : mode == "bicubic" ? "cubic"
                                              : mode));
}

constexpr UpgradeRow kRows[] = {
    {"", "Concat", 4, concatDefaultAxis},
    {"", "Reshape", 5, reshapeShape},
    {"", "Slice", 10, sliceBounds},
    {"", "Pad", 2, padPaddings},
    {"", "Pad", 11, padInputs, true},
    {"", "Split", 2, splitVersion1},
    {"", "Split", 13, splitSizes},
    {"", "Split", 18, splitOutputs},
    {"", "Split", INT64_MAX, splitEmptySizes},
    {"", "Squeeze", 13, axesInput},
    {"", "Squeeze", INT64_MAX, dropRepeatedAxes},
    {"", "Unsqueeze", 13, axesInput},
    {"", "Tile", 6, tileRepeats, true},
    {"", "Scatter", 11, scatterRename},
    {"", "Scatter", INT64_MAX, scatterRename},
    {"", "OneHot", 11, oneHotNegative},
    {"", "TopK", 10, topKInput},
    {"", "Upsample", 7, upsampleHeightWidth},
    {"", "Upsample", 9, upsampleScales},
    {"", "Upsample", 10, upsampleRename},
    {"", "Upsample", INT64_MAX, upsampleDeprecated},
    {"", "Resize", 11, resizeInputs},
    {"", "Resize", 13, resizeTensorflow},
    {"", "Resize", INT64_MAX, resizeLatest, true},
    {"", "DFT", 20, dftAxis},
    {"", "GridSample", 20, gridSampleModes},
};

} // namespace

ArrayRef<UpgradeRow> tensorUpgrades() { return kRows; }

} // namespace sardonyx::importer
