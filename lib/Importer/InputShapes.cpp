//===- InputShapes.cpp - Which shapes operators want ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ONNX's text says of the shapes of inputs and libonnx's inference does
// not check. Lowerings rely on it.
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/GuardedSchemas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <limits>

namespace sardonyx::importer {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();

struct RankRule {
  llvm::StringLiteral op;
  unsigned input;
  int least, most;
};

/// Sorted by operator. A single number may come as a list of one.
constexpr RankRule rules[] = {
    {"AffineGrid", 0, 3, 3},
    {"AffineGrid", 1, 1, 1},
    {"BatchNormalization", 0, 1, kAny},
    {"BatchNormalization", 1, 1, 1},
    {"BatchNormalization", 2, 1, 1},
    {"BatchNormalization", 3, 1, 1},
    {"BatchNormalization", 4, 1, 1},
    {"BlackmanWindow", 0, 0, 1},
    {"CenterCropPad", 1, 1, 1},
    {"Col2Im", 0, 2, 3},
    {"Col2Im", 1, 1, 1},
    {"Col2Im", 2, 1, 1},
    {"Compress", 1, 1, 1},
    {"Concat", 0, 1, kAny},
    {"ConstantOfShape", 0, 1, 1},
    {"Conv", 0, 3, kAny},
    {"Conv", 1, 3, kAny},
    {"Conv", 2, 1, 1},
    {"ConvInteger", 0, 3, kAny},
    {"ConvInteger", 1, 3, kAny},
    {"ConvTranspose", 0, 3, kAny},
    {"ConvTranspose", 1, 3, kAny},
    {"ConvTranspose", 2, 1, 1},
    {"CumProd", 1, 0, 1},
    {"CumSum", 1, 0, 1},
    {"DFT", 1, 0, 1},
    {"DFT", 2, 0, 1},
    {"DeformConv", 0, 3, kAny},
    {"DeformConv", 1, 3, kAny},
    {"DepthToSpace", 0, 4, 4},
    {"Det", 0, 2, kAny},
    {"Expand", 1, 1, 1},
    {"GRU", 0, 3, 3},
    {"GRU", 1, 3, 3},
    {"GRU", 2, 3, 3},
    {"GRU", 3, 2, 2},
    {"GRU", 4, 1, 1},
    {"GRU", 5, 3, 3},
    {"Gather", 0, 1, kAny},
    {"GatherElements", 0, 1, kAny},
    {"GatherElements", 1, 1, kAny},
    {"GatherND", 0, 1, kAny},
    {"GatherND", 1, 1, kAny},
    {"Gemm", 0, 2, 2},
    {"Gemm", 1, 2, 2},
    {"Gemm", 2, 0, 2},
    {"GlobalAveragePool", 0, 2, kAny},
    {"GlobalLpPool", 0, 2, kAny},
    {"GlobalMaxPool", 0, 2, kAny},
    {"GridSample", 0, 3, kAny},
    {"GridSample", 1, 3, kAny},
    {"GroupNormalization", 0, 2, kAny},
    {"GroupNormalization", 1, 1, 1},
    {"GroupNormalization", 2, 1, 1},
    {"HammingWindow", 0, 0, 1},
    {"HannWindow", 0, 0, 1},
    {"InstanceNormalization", 0, 2, kAny},
    {"InstanceNormalization", 1, 1, 1},
    {"InstanceNormalization", 2, 1, 1},
    {"LRN", 0, 2, kAny},
    {"LSTM", 0, 3, 3},
    {"LSTM", 1, 3, 3},
    {"LSTM", 2, 3, 3},
    {"LSTM", 3, 2, 2},
    {"LSTM", 4, 1, 1},
    {"LSTM", 5, 3, 3},
    {"LSTM", 6, 3, 3},
    {"LSTM", 7, 2, 2},
    {"Loop", 0, 0, 1},
    {"Loop", 1, 0, 1},
    {"MatMul", 0, 1, kAny},
    {"MatMul", 1, 1, kAny},
    {"MatMulInteger", 0, 1, kAny},
    {"MatMulInteger", 1, 1, kAny},
    {"MaxUnpool", 0, 3, kAny},
    {"MaxUnpool", 1, 3, kAny},
    {"MaxUnpool", 2, 1, 1},
    {"NegativeLogLikelihoodLoss", 0, 2, kAny},
    {"NegativeLogLikelihoodLoss", 1, 1, kAny},
    {"NegativeLogLikelihoodLoss", 2, 1, 1},
    {"OneHot", 1, 0, 1},
    {"OneHot", 2, 1, 1},
    {"Pad", 1, 1, 1},
    {"Pad", 2, 0, 1},
    {"Pad", 3, 1, 1},
    {"QLinearConv", 0, 3, kAny},
    {"QLinearConv", 3, 3, kAny},
    {"QLinearConv", 8, 1, 1},
    {"RNN", 0, 3, 3},
    {"RNN", 1, 3, 3},
    {"RNN", 2, 3, 3},
    {"RNN", 3, 2, 2},
    {"RNN", 4, 1, 1},
    {"RNN", 5, 3, 3},
    {"Range", 0, 0, 1},
    {"Range", 1, 0, 1},
    {"Range", 2, 0, 1},
    {"Reshape", 1, 1, 1},
    {"Resize", 1, 1, 1},
    {"Resize", 2, 1, 1},
    {"Resize", 3, 1, 1},
    {"ReverseSequence", 0, 2, kAny},
    {"ReverseSequence", 1, 1, 1},
    {"RoiAlign", 0, 4, 4},
    {"RoiAlign", 1, 2, 2},
    {"RoiAlign", 2, 1, 1},
    {"ScatterElements", 0, 1, kAny},
    {"ScatterElements", 1, 1, kAny},
    {"ScatterElements", 2, 1, kAny},
    {"ScatterND", 0, 1, kAny},
    {"ScatterND", 1, 1, kAny},
    {"Slice", 0, 1, kAny},
    {"Slice", 1, 1, 1},
    {"Slice", 2, 1, 1},
    {"Slice", 3, 1, 1},
    {"Slice", 4, 1, 1},
    {"SoftmaxCrossEntropyLoss", 0, 2, kAny},
    {"SoftmaxCrossEntropyLoss", 1, 1, kAny},
    {"SoftmaxCrossEntropyLoss", 2, 1, 1},
    {"SpaceToDepth", 0, 4, 4},
    {"Split", 0, 1, kAny},
    {"Split", 1, 1, 1},
    {"Squeeze", 1, 0, 1},
    {"Tile", 1, 1, 1},
    {"TopK", 0, 1, kAny},
    {"TopK", 1, 1, 1},
    {"Trilu", 0, 2, kAny},
    {"Trilu", 1, 0, 1},
    {"Unsqueeze", 1, 0, 1},
};

std::string describe(const RankRule &rule) {
  std::string least = std::to_string(rule.least);
  if (rule.most == kAny)
    return "at least " + least;
  return rule.least == rule.most ? least
                                 : least + " to " + std::to_string(rule.most);
}

/// Inputs whose sizes must all be the same.
struct SameShapeRule {
  llvm::StringLiteral op;
  unsigned first, second;
};

constexpr SameShapeRule sameShapes[] = {
    {"DequantizeLinear", 1, 2},
    {"MaxUnpool", 0, 1},
    {"QuantizeLinear", 1, 2},
    {"ScatterElements", 1, 2},
};

/// Inputs that must have as many dimensions as input 0.
constexpr std::pair<llvm::StringLiteral, unsigned> sameRanks[] = {
    {"GatherElements", 1},
    {"ScatterElements", 1},
};

/// Lists with one entry for each channel (dimension 1) of input 0.
constexpr std::pair<llvm::StringLiteral, unsigned> perChannel[] = {
    {"BatchNormalization", 1},    {"BatchNormalization", 2},
    {"BatchNormalization", 3},    {"BatchNormalization", 4},
    {"GroupNormalization", 1},    {"GroupNormalization", 2},
    {"InstanceNormalization", 1}, {"InstanceNormalization", 2},
};

/// Inputs that are broadcast to input 0 and do not make it larger.
constexpr std::pair<llvm::StringLiteral, unsigned> broadcast[] = {
    {"LayerNormalization", 1},
    {"LayerNormalization", 2},
    {"RMSNormalization", 1},
};

/// The square of a larger block is no size.
constexpr int64_t kMaxBlock = 1 << 20;

/// Checks the shapes of one node's inputs.
class ShapeCheck {
public:
  ShapeCheck(const ::onnx::OpSchema &schema, ::onnx::InferenceContext &context)
      : op(schema.Name()), version(schema.SinceVersion()), context(context) {}

  void run() {
    ranks();
    for (const SameShapeRule &rule : sameShapes)
      if (op == rule.op)
        sameShape(rule.first, rule.second);
    for (auto [name, input] : sameRanks)
      if (op == name && shape(0) && shape(input) &&
          shape(0)->dim_size() != shape(input)->dim_size())
        refuse("input " + llvm::Twine(input) + " has the rank " +
               llvm::Twine(shape(input)->dim_size()) + ", but input 0 has " +
               llvm::Twine(shape(0)->dim_size()));
    // Before, group normalisation had one entry for each group.
    if (op != "GroupNormalization" || version >= 21)
      for (auto [name, input] : perChannel)
        if (op == name)
          channels(input);
    for (auto [name, input] : broadcast)
      if (op == name)
        fits(input);
    if (op == "GatherND")
      batchDims();
    if (op == "GroupNormalization")
      groups();
    if (op == "ScatterND")
      updates();
    if (op == "DequantizeLinear" || op == "QuantizeLinear")
      scales();
    if (op == "DepthToSpace" || op == "SpaceToDepth")
      blocks();
    if (op == "RNN" || op == "GRU" || op == "LSTM")
      recurrentWeights();
    if (op == "Attention")
      heads();
  }

private:
  [[noreturn]] static void refuse(const llvm::Twine &why) {
    throw ::onnx::InferenceError(why.str());
  }

  /// Null where the rank is not known.
  const ::onnx::TensorShapeProto *shape(unsigned input) const {
    const ::onnx::TypeProto *type =
        input < context.getNumInputs() ? context.getInputType(input) : nullptr;
    return type && type->has_tensor_type() && type->tensor_type().has_shape()
               ? &type->tensor_type().shape()
               : nullptr;
  }

  /// -1 where the size is not known.
  int64_t size(unsigned input, int dim) const {
    const ::onnx::TensorShapeProto *known = shape(input);
    return known && dim < known->dim_size() && known->dim(dim).has_dim_value()
               ? known->dim(dim).dim_value()
               : -1;
  }

  /// Whether an input of known rank may be a single number.
  bool mayBeSingle(unsigned input) const {
    int rank = shape(input)->dim_size();
    return rank == 0 ||
           (rank == 1 && (size(input, 0) == 1 || size(input, 0) < 0));
  }

  int64_t attribute(const char *name, int64_t otherwise) const {
    const ::onnx::AttributeProto *given = context.getAttribute(name);
    return given ? given->i() : otherwise;
  }

  void ranks() const {
    auto less = [](const RankRule &rule, llvm::StringRef name) {
      return rule.op < name;
    };
    for (const RankRule *rule = llvm::lower_bound(rules, op, less);
         rule != std::end(rules) && rule->op == op; ++rule) {
      const ::onnx::TensorShapeProto *known = shape(rule->input);
      if (known &&
          (known->dim_size() < rule->least || known->dim_size() > rule->most))
        refuse("input " + llvm::Twine(rule->input) + " has the rank " +
               llvm::Twine(known->dim_size()) + ", but must have " +
               describe(*rule));
    }
  }

  void sameShape(unsigned first, unsigned second) const {
    const ::onnx::TensorShapeProto *a = shape(first), *b = shape(second);
    if (!a || !b)
      return;
    // A single number may come as a list of one.
    if (mayBeSingle(first) && mayBeSingle(second))
      return;
    bool same = a->dim_size() == b->dim_size();
    for (int i = 0; same && i < a->dim_size(); ++i)
      same = size(first, i) < 0 || size(second, i) < 0 ||
             size(first, i) == size(second, i);
    if (!same)
      refuse("inputs " + llvm::Twine(first) + " and " + llvm::Twine(second) +
             " must have the same shape");
  }

  void fits(unsigned input) const {
    const ::onnx::TensorShapeProto *data = shape(0), *given = shape(input);
    if (!data || !given)
      return;
    int extra = data->dim_size() - given->dim_size();
    bool fits = extra >= 0;
    for (int i = 0; fits && i < given->dim_size(); ++i) {
      int64_t a = size(input, i), b = size(0, i + extra);
      fits = a == 1 || a < 0 || b < 0 || a == b;
    }
    if (!fits)
      refuse("input " + llvm::Twine(input) +
             " does not broadcast to the shape of input 0");
  }

  void channels(unsigned input) const {
    int64_t wanted = size(0, 1), given = size(input, 0);
    if (shape(0) && shape(0)->dim_size() == 1)
      wanted = 1;
    if (wanted >= 0 && given >= 0 && wanted != given)
      refuse("input " + llvm::Twine(input) + " has " + llvm::Twine(given) +
             " entries for " + llvm::Twine(wanted) + " channels");
  }

  /// libonnx counts the data's dimensions from here on, whatever it is.
  void batchDims() const {
    int64_t given = attribute("batch_dims", 0);
    auto isInside = [&](unsigned input) {
      return !shape(input) || given < shape(input)->dim_size();
    };
    if (given < 0 || !isInside(0) || !isInside(1))
      refuse("batch_dims is " + llvm::Twine(given) +
             ", which must be less than the ranks of both inputs");
  }

  /// A row of indices chooses a part of the data, which is updated as a whole.
  void updates() const {
    const ::onnx::TensorShapeProto *data = shape(0), *rows = shape(1);
    const ::onnx::TensorShapeProto *given = shape(2);
    if (!data || !rows || !given)
      return;
    int64_t length = size(1, rows->dim_size() - 1);
    int64_t wanted = rows->dim_size() - 1 + data->dim_size() - length;
    if (length >= 0 && length <= data->dim_size() &&
        given->dim_size() != wanted)
      refuse("input 2 has the rank " + llvm::Twine(given->dim_size()) +
             ", but must have " + llvm::Twine(wanted));
  }

  void groups() const {
    int64_t count = attribute("num_groups", 0), total = size(0, 1);
    if (count < 1 || (total >= 0 && total % count != 0))
      refuse("num_groups is " + llvm::Twine(count) +
             (total < 0 ? llvm::Twine(", which cannot be")
                        : ", which does not divide the " + llvm::Twine(total) +
                              " channels"));
  }

  /// One scale for all, for each index of an axis, or for each block of it.
  void scales() const {
    const ::onnx::TensorShapeProto *data = shape(0), *scale = shape(1);
    if (!data || !scale || mayBeSingle(1))
      return;
    int64_t rank = data->dim_size();
    int64_t axis = attribute("axis", 1), block = attribute("block_size", 0);
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      refuse("axis is " + llvm::Twine(axis) + ", but input 0 has the rank " +
             llvm::Twine(rank));
    if (block < 0)
      refuse("block_size is " + llvm::Twine(block) + ", which cannot be");
    if (scale->dim_size() == 1 && block == 0) {
      fit(size(1, 0), size(0, at), at);
      return;
    }
    if (block == 0)
      refuse("the scale has the rank " + llvm::Twine(scale->dim_size()) +
             ", but there is no block_size");
    if (scale->dim_size() != rank)
      refuse("the scale has the rank " + llvm::Twine(scale->dim_size()) +
             ", but input 0 has " + llvm::Twine(rank));
    for (int i = 0; i < rank; ++i) {
      int64_t wanted = size(0, i);
      if (i == at && wanted >= 0)
        wanted = wanted / block + (wanted % block != 0);
      fit(size(1, i), wanted, i);
    }
  }

  /// Depths are those of whole blocks, and pictures consist of such.
  void blocks() const {
    int64_t block = attribute("blocksize", 0);
    if (block < 1 || block > kMaxBlock)
      refuse("blocksize is " + llvm::Twine(block) + ", which cannot be");
    bool isDepth = op == "DepthToSpace";
    for (int dim = isDepth ? 1 : 2, last = isDepth ? 1 : 3; dim <= last;
         ++dim) {
      int64_t given = size(0, dim), part = isDepth ? block * block : block;
      if (given >= 0 && given % part != 0)
        refuse("dimension " + llvm::Twine(dim) + " of input 0 has the size " +
               llvm::Twine(given) + ", which is no multiple of " +
               llvm::Twine(part));
    }
  }

  /// Refuses a dimension of an input that has another size than is wanted.
  void want(unsigned input, int dim, int64_t wanted,
            const llvm::Twine &why) const {
    int64_t given = size(input, dim);
    if (given >= 0 && wanted >= 0 && given != wanted)
      refuse("dimension " + llvm::Twine(dim) + " of input " +
             llvm::Twine(input) + " has the size " + llvm::Twine(given) +
             ", but " + why + " want " + llvm::Twine(wanted));
  }

  /// W is [directions, gates * hidden, input], R [directions, gates * hidden,
  /// hidden].
  void recurrentWeights() const {
    int64_t gates = op == "RNN" ? 1 : op == "GRU" ? 3 : 4;
    const ::onnx::AttributeProto *given = context.getAttribute("hidden_size");
    int64_t hidden = given ? given->i() : size(2, 2);
    // Rows of a size that overflows are refused elsewhere.
    if (hidden < 1 || hidden > std::numeric_limits<int32_t>::max())
      return;
    for (unsigned weights : {1u, 2u})
      want(weights, 1, gates * hidden,
           llvm::Twine(gates) + (gates == 1 ? " gate of " : " gates of ") +
               llvm::Twine(hidden) + " hidden numbers");
    want(2, 2, hidden, llvm::Twine(hidden) + " hidden numbers");
  }

  /// Queries, keys and values are [batch, heads, length, size] each, or
  /// [batch, length, heads * size] and attributes say how many heads.
  void heads() const {
    if (!shape(0) || !shape(1) || !shape(2))
      return;
    int rank = shape(0)->dim_size();
    for (unsigned input : {1u, 2u})
      if (shape(input)->dim_size() != rank)
        refuse("input " + llvm::Twine(input) + " has the rank " +
               llvm::Twine(shape(input)->dim_size()) + ", but input 0 has " +
               llvm::Twine(rank));
    if (rank != 3 && rank != 4)
      refuse("input 0 has the rank " + llvm::Twine(rank) +
             ", but must have 3 to 4");
    want(1, 0, size(0, 0), "the batches of input 0");
    want(2, 0, size(0, 0), "the batches of input 0");
    want(2, rank - 2, size(1, rank - 2), "the keys of input 1");
    int64_t queries = size(0, 1), keys = size(1, 1);
    if (rank == 4) {
      want(1, 3, size(0, 3), "the queries of input 0");
      want(2, 1, keys, "the heads of input 1");
    } else {
      queries = attribute("q_num_heads", 0);
      keys = attribute("kv_num_heads", 0);
      if (queries < 1 || keys < 1)
        refuse("inputs of rank 3 need q_num_heads and kv_num_heads");
      int64_t query = headSize(0, queries), key = headSize(1, keys);
      (void)headSize(2, keys);
      if (query >= 0 && key >= 0 && query != key)
        refuse("the heads of input 1 have the size " + llvm::Twine(key) +
               ", but those of input 0 have " + llvm::Twine(query));
    }
    if (queries >= 0 && keys > 0 && queries % keys != 0)
      refuse(llvm::Twine(queries) + " heads of queries are no multiple of " +
             llvm::Twine(keys) + " heads of keys");
  }

  /// The size of each of `count` heads in [batch, length, all]; -1 where it is
  /// not known.
  int64_t headSize(unsigned input, int64_t count) const {
    int64_t all = size(input, 2);
    if (all >= 0 && all % count != 0)
      refuse("dimension 2 of input " + llvm::Twine(input) + " has the size " +
             llvm::Twine(all) + ", which is no multiple of " +
             llvm::Twine(count) + " heads");
    return all < 0 ? -1 : all / count;
  }

  static void fit(int64_t given, int64_t wanted, int64_t dim) {
    if (given >= 0 && wanted >= 0 && given != wanted)
      refuse("the scale has the size " + llvm::Twine(given) +
             " where dimension " + llvm::Twine(dim) + " of input 0 wants " +
             llvm::Twine(wanted));
  }

  llvm::StringRef op;
  int version;
  ::onnx::InferenceContext &context;
};

} // namespace

void checkShapes(const ::onnx::OpSchema &schema,
                 ::onnx::InferenceContext &context) {
  if (schema.domain().empty())
    ShapeCheck(schema, context).run();
}

} // namespace sardonyx::importer
