//===- Network.cpp - Derivatives of products and layers -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Gradient/Gradient.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sardonyx::importer {
namespace {

using Ints = std::vector<int64_t>;

std::string swapLast(Adjoint &a, const std::string &x, int64_t rank) {
  Ints perm;
  for (int64_t i = 0; i < rank; ++i)
    perm.push_back(i);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return a.op("Transpose", {x}, {{"perm", perm}});
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// The derivative, which has the dimensions `rank` of a product's operand and
/// more before them, summed over what broadcasting repeated of them. The last
/// two are the operand's.
std::string sumBatch(Adjoint &a, const std::string &derivative,
                     const std::string &operand, int64_t rank,
                     int64_t productRank) {
  // Batch dimensions are those of the product; all may have to be summed.
  bool isSame = rank == productRank;
  for (int64_t i = 0; isSame && i < rank - 2; ++i) {
    int64_t mine = a.knownSize(operand, i), all = a.knownSize(a.y(), i);
    isSame = mine == all && mine >= 0;
  }
  if (isSame || productRank <= 2)
    return derivative;
  Ints axes;
  NodeMaker::Names split;
  int64_t lead = productRank - rank;
  for (int64_t i = 0; i < productRank - 2; ++i) {
    std::string all = a.size(derivative, i);
    if (i < lead) {
      axes.push_back(split.size());
      split.push_back(all);
      continue;
    }
    std::string mine = a.size(operand, i - lead);
    split.push_back(mine);
    axes.push_back(split.size());
    split.push_back(a.div(all, a.op("Max", {mine, a.ints({1})})));
  }
  split.push_back(a.size(derivative, productRank - 2));
  split.push_back(a.size(derivative, productRank - 1));
  std::string shaped =
      a.reshapeTo(derivative, a.op("Concat", split, {{"axis", int64_t(0)}}));
  return a.op("ReduceSum", {shaped, a.ints(axes)}, {{"keepdims", int64_t(0)}});
}

void matMul(Adjoint &a) {
  int64_t left = a.rank(a.x(0)), right = a.rank(a.x(1));
  std::string x = a.x(0), w = a.x(1), dy = a.dy();
  // Lists are rows on the left and columns on the right.
  if (right == 1)
    dy = a.op("Unsqueeze", {dy, a.ints({-1})});
  if (left == 1)
    dy = a.op("Unsqueeze", {dy, a.ints({-2})});
  if (left == 1)
    x = a.op("Unsqueeze", {x, a.ints({0})});
  if (right == 1)
    w = a.op("Unsqueeze", {w, a.ints({1})});
  int64_t leftRank = std::max<int64_t>(left, 2);
  int64_t rightRank = std::max<int64_t>(right, 2);
  int64_t rank = std::max(leftRank, rightRank);
  auto give = [&](int i, const std::string &product, int64_t operandRank) {
    std::string sum = sumBatch(a, product, a.x(i), operandRank, rank);
    a.give(i, a.reshapeTo(sum, a.shapeOf(a.x(i))));
  };
  if (a.wants(0))
    give(0, a.op("MatMul", {dy, swapLast(a, w, rightRank)}), leftRank);
  if (a.wants(1))
    give(1, a.op("MatMul", {swapLast(a, x, leftRank), dy}), rightRank);
}

void gemm(Adjoint &a) {
  bool flipsA = a.intOf("transA", 0), flipsB = a.intOf("transB", 0);
  auto flip = [&](const std::string &x, bool flips) {
    return flips ? swapLast(a, x, 2) : x;
  };
  double alpha = a.floatOf("alpha", 1), beta = a.floatOf("beta", 1);
  auto scale = [&](const std::string &x, double by) {
    return by == 1 ? x : a.mul(x, a.number(by));
  };
  std::string dy = scale(a.dy(), alpha);
  // Of A' B', where ' stands for the transposition that the node asks for.
  if (a.wants(0))
    a.give(0, flip(a.op("MatMul", {dy, flip(a.x(1), !flipsB)}), flipsA));
  if (a.wants(1))
    a.give(1, flip(a.op("MatMul", {flip(a.x(0), !flipsA), dy}), flipsB));
  if (a.wants(2))
    a.give(2, a.sumTo(scale(a.dy(), beta), a.y(), a.x(2)));
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// How a window moves over the spatial dimensions.
struct Window {
  int64_t dims;
  Ints strides, dilations, begins, ends;
  int64_t group;
};

Window readWindow(Adjoint &a) {
  std::string pad = a.stringOf("auto_pad", "NOTSET");
  Window w;
  w.dims = a.rank(a.x()) - 2;
  if (w.dims < 1)
    a.refuse("the input has no spatial dimensions");
  w.strides = a.intsOf("strides", w.dims, 1);
  w.dilations = a.intsOf("dilations", w.dims, 1);
  w.group = a.intOf("group", 1);
  if (pad != "NOTSET" && pad != "VALID")
    a.refuse("auto_pad " + pad);
  Ints pads = a.intsOf("pads", 2 * w.dims, 0);
  w.begins.assign(pads.begin(), pads.begin() + w.dims);
  w.ends.assign(pads.begin() + w.dims, pads.end());
  return w;
}

std::string spatialSizes(Adjoint &a, const std::string &x, const Window &w) {
  return a.op("Shape", {x}, {{"start", int64_t(2)}, {"end", w.dims + 2}});
}

/// The part of the spatial dimensions of `full` that begins at `begins` and has
/// the sizes of `like`'s. Zeros stand for what `full` has not.
std::string crop(Adjoint &a, const std::string &full, const Window &w,
                 const Ints &begins, const std::string &like) {
  std::string wanted = spatialSizes(a, like, w);
  std::string from = a.ints(begins), to = a.add(from, wanted);
  std::string has = spatialSizes(a, full, w);
  std::string missing = a.op("Max", {a.sub(to, has), a.ints({0})});
  std::string pads = a.op("Concat", {a.ints(Ints(w.dims + 4, 0)), missing},
                          {{"axis", int64_t(0)}});
  std::string padded = a.op("Pad", {full, pads});
  return a.op("Slice", {padded, from, to, a.ints(upTo(2, w.dims + 2))});
}

/// What a convolution's windows with `weights` spread over its input of the
/// shape of `like`.
std::string spread(Adjoint &a, const std::string &dy,
                   const std::string &weights, const Window &w, int64_t group,
                   const std::string &like) {
  std::string full = a.op(
      "ConvTranspose", {dy, weights},
      {{"strides", w.strides}, {"dilations", w.dilations}, {"group", group}});
  return crop(a, full, w, w.begins, like);
}

/// The derivative with respect to the weights of a convolution of `image` whose
/// result has the derivative `dy`: a convolution of each channel of the one
/// with each of the other.
std::string overWeights(Adjoint &a, const std::string &image,
                        const std::string &dy, const Window &w,
                        const std::string &weights) {
  Ints perm = upTo(0, w.dims + 2);
  std::swap(perm[0], perm[1]);
  auto flip = [&](const std::string &x) {
    return a.op("Transpose", {x}, {{"perm", perm}});
  };
  std::string x = image;
  if (w.group == 1) {
    x = flip(x);
  } else {
    // [N, g C, ...] -> [N, g, C, ...] -> [C, g, N, ...] -> [C, g N, ...]
    std::string n = a.size(x, 0), space = spatialSizes(a, x, w);
    std::string g = a.ints({w.group});
    std::string c = a.div(a.size(x, 1), g);
    auto shape = [&](NodeMaker::Names parts) {
      return a.op("Concat", std::move(parts), {{"axis", int64_t(0)}});
    };
    Ints swapped = upTo(0, w.dims + 3);
    std::swap(swapped[0], swapped[2]);
    x = a.reshapeTo(x, shape({n, g, c, space}));
    x = a.op("Transpose", {x}, {{"perm", swapped}});
    x = a.reshapeTo(x, shape({c, a.mul(g, n), space}));
  }
  Ints pads = w.begins;
  pads.insert(pads.end(), w.ends.begin(), w.ends.end());
  std::string product = a.op("Conv", {x, flip(dy)},
                             {{"strides", w.dilations},
                              {"dilations", w.strides},
                              {"group", w.group},
                              {"pads", pads}});
  // The last positions of the image may be no window's.
  return crop(a, flip(product), w, Ints(w.dims, 0), weights);
}

std::string sumOverChannels(Adjoint &a, const Window &w) {
  Ints axes = upTo(1, w.dims + 2);
  axes[0] = 0;
  for (int64_t i = 1; i <= w.dims; ++i)
    axes[i] = i + 1;
  return a.op("ReduceSum", {a.dy(), a.ints(axes)}, {{"keepdims", int64_t(0)}});
}

void conv(Adjoint &a) {
  Window w = readWindow(a);
  if (a.wants(0))
    a.give(0, spread(a, a.dy(), a.x(1), w, w.group, a.x()));
  if (a.wants(1))
    a.give(1, overWeights(a, a.x(), a.dy(), w, a.x(1)));
  if (a.wants(2))
    a.give(2, sumOverChannels(a, w));
}

void convTranspose(Adjoint &a) {
  Window w = readWindow(a);
  if (a.find("output_shape"))
    a.refuse("output_shape");
  Ints pads = w.begins;
  pads.insert(pads.end(), w.ends.begin(), w.ends.end());
  if (a.wants(0)) {
    std::string all = a.op("Conv", {a.dy(), a.x(1)},
                           {{"strides", w.strides},
                            {"dilations", w.dilations},
                            {"group", w.group},
                            {"pads", pads}});
    a.give(0, crop(a, all, w, Ints(w.dims, 0), a.x()));
  }
  // As the convolution whose transpose it is: from the result to the input.
  if (a.wants(1))
    a.give(1, overWeights(a, a.dy(), a.x(), w, a.x(1)));
  if (a.wants(2))
    a.give(2, sumOverChannels(a, w));
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

void maxPool(Adjoint &a) {
  if (a.intOf("storage_order", 0) != 0)
    a.refuse("storage_order 1");
  NodeMaker::Names both = a.ops("MaxPool", {a.x()}, 2);
  *a.made.back().mutable_attribute() = a.node.attribute();
  a.give(0, a.scatter(a.dy(), both[1], a.x()));
}

/// How many elements each mean of an average pool is of, over [1, 1, ...]:
/// windows over an image of ones, wherever elements count.
std::string countInWindows(Adjoint &a, const Window &w,
                           const std::string &ones) {
  std::string space = spatialSizes(a, a.x(), w);
  std::string image =
      a.expandTo(a.number(1), a.op("Concat", {a.ints({1, 1}), space},
                                   {{"axis", int64_t(0)}}));
  // Rounded up, the last window may begin within the last step.
  Ints begins = w.begins, ends = w.ends;
  if (a.intOf("count_include_pad", 0)) {
    Ints pads = {0, 0};
    pads.insert(pads.end(), begins.begin(), begins.end());
    pads.insert(pads.end(), {0, 0});
    pads.insert(pads.end(), ends.begin(), ends.end());
    image = a.op("Pad", {image, a.ints(pads), a.number(1)});
    begins.assign(w.dims, 0);
    ends.assign(w.dims, 0);
  }
  for (int64_t i = 0; i < w.dims; ++i)
    ends[i] += w.strides[i] - 1;
  begins.insert(begins.end(), ends.begin(), ends.end());
  std::string counts = a.op(
      "Conv", {image, ones},
      {{"strides", w.strides}, {"dilations", w.dilations}, {"pads", begins}});
  return crop(a, counts, w, Ints(w.dims, 0), a.dy());
}

void averagePool(Adjoint &a) {
  Window w = readWindow(a);
  Ints kernel = a.intsOf("kernel_shape", w.dims, 1);
  Ints unit(w.dims + 2, 1);
  std::copy(kernel.begin(), kernel.end(), unit.begin() + 2);
  std::string ones = a.expandTo(a.number(1), a.ints(unit));
  std::string share = a.div(a.dy(), countInWindows(a, w, ones));
  // Each channel is an image of its own.
  std::string images = a.mul(a.size(share, 0), a.size(share, 1));
  std::string apart = a.reshapeTo(
      share, a.op("Concat", {images, a.ints({1}), spatialSizes(a, share, w)},
                  {{"axis", int64_t(0)}}));
  std::string parts = spread(a, apart, ones, w, 1, a.x());
  a.give(0, a.reshapeTo(parts, a.shapeOf(a.x())));
}

std::string spatialAxes(Adjoint &a) { return a.ints(upTo(2, a.rank(a.x()))); }

void globalAveragePool(Adjoint &a) {
  auto count = [&](const std::string &value) {
    return a.op("CastLike", {a.op("Size", {value}), a.x()});
  };
  std::string share = a.div(a.dy(), a.div(count(a.x()), count(a.y())));
  a.give(0, a.expandTo(share, a.shapeOf(a.x())));
}

void globalMaxPool(Adjoint &a) {
  std::string is = a.indicator(a.op("Equal", {a.x(), a.y()}));
  std::string count = a.op("ReduceSum", {is, spatialAxes(a)});
  a.give(0, a.mul(is, a.div(a.dy(), count)));
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// The labels of the dimensions of the operands, and of the result behind them.
std::vector<std::string> readEquation(Adjoint &a) {
  std::string text = a.stringOf("equation", "");
  llvm::erase(text, ' ');
  auto [left, right] = StringRef(text).split("->");
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  parts.push_back(right);
  if (!StringRef(text).contains("->") || StringRef(text).contains('.') ||
      int(parts.size()) != a.node.input_size() + 1)
    a.refuse("equation '" + text + "'");
  std::vector<std::string> terms;
  for (StringRef part : parts) {
    for (char label : part)
      if (part.count(label) > 1)
        a.refuse("a diagonal, in equation '" + text + "'");
    terms.push_back(part.str());
  }
  return terms;
}

/// The product of the derivative and all other operands, summed over what the
/// operand has not, and repeated over what only the operand has.
void einsum(Adjoint &a) {
  std::vector<std::string> terms = readEquation(a);
  int count = a.node.input_size();
  for (int i = 0; i < count; ++i) {
    if (!a.wants(i))
      continue;
    std::string equation = terms[count], seen = terms[count], result;
    NodeMaker::Names operands = {a.dy()};
    for (int j = 0; j < count; ++j)
      if (j != i) {
        equation += "," + terms[j];
        seen += terms[j];
        operands.push_back(a.x(j));
      }
    Ints missing;
    for (auto [dim, label] : enumerate(terms[i])) {
      if (StringRef(seen).contains(label))
        result += label;
      else
        missing.push_back(dim);
    }
    std::string product =
        a.op("Einsum", operands, {{"equation", equation + "->" + result}});
    if (!missing.empty())
      product = a.op("Unsqueeze", {product, a.ints(missing)});
    a.give(i, a.expandTo(product, a.shapeOf(a.x(i))));
  }
}

} // namespace

ArrayRef<GradientRule> networkGradients() {
  static const GradientRule rules[] = {
      {"AveragePool", averagePool},
      {"Conv", conv},
      {"ConvTranspose", convTranspose},
      {"Einsum", einsum},
      {"Gemm", gemm},
      {"GlobalAveragePool", globalAveragePool},
      {"GlobalMaxPool", globalMaxPool},
      {"MatMul", matMul},
      {"MaxPool", maxPool},
  };
  return rules;
}

} // namespace sardonyx::importer
