//===- Experts.cpp - Mixtures of experts ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Quantized.h"

#include <map>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// The activation of the first projection, which swiglu splits in two unless
/// `gate`, the third projection, is one of them. `width` is that of `value`.
static Name activateExperts(Body &b, const Name &value, const Name &gate,
                            int64_t width, int elementType) {
  std::string type = b.getString("activation_type");
  if (type == "swiglu") {
    Name open = value, linear = gate;
    int64_t fusion = b.getInt("swiglu_fusion");
    auto every2nd = [&](int64_t first) {
      return b.op("Slice", {value, b.ints({first}), b.ints({INT64_MAX}),
                            b.ints({-1}), b.ints({2})});
    };
    if (gate.empty() && fusion == 1) {
      open = every2nd(0);
      linear = every2nd(1);
    } else if (gate.empty() && fusion == 2 && width > 0) {
      open = b.slice(value, 0, width / 2, -1);
      linear = b.slice(value, width / 2, width, -1);
    } else if (gate.empty() || fusion != 0) {
      b.refuse("swiglu_fusion is " + llvm::Twine(fusion) + ", " +
               (gate.empty() ? "without" : "with") +
               " weights of a third projection");
    }
    auto number = [&](float value) { return b.scalar(value, elementType); };
    if (b.given("swiglu_limit")) {
      float limit = b.getFloat("swiglu_limit");
      open = b.op("Min", {open, number(limit)});
      linear = b.op("Clip", {linear, number(-limit), number(limit)});
    }
    Name slope = b.mul(open, number(b.getFloat("activation_alpha")));
    return b.mul(b.mul(open, b.op("Sigmoid", {slope})),
                 b.add(linear, number(b.getFloat("activation_beta"))));
  }
  Name result;
  if (type == "relu")
    result = b.op("Relu", {value});
  else if (type == "gelu")
    result = b.op("Gelu", {value}, {{"approximate", "tanh"}});
  else if (type == "silu")
    result = b.mul(value, b.op("Sigmoid", {value}));
  else if (type == "identity")
    result = value;
  else
    b.refuse("activation '" + llvm::Twine(type) + "' is not supported");
  return gate.empty() ? result : b.mul(result, gate);
}

/// `values` [rows, k] of the experts `which` [rows, k] as [rows, experts], with
/// 0 for the others.
static Name spread(Body &b, const Name &which, const Name &values,
                   int elementType) {
  Name none = b.op("ConstantOfShape", {b.op("Shape", {b.in("router_probs")})});
  return b.op("ScatterElements", {b.cast(none, elementType), which, values},
              {{"axis", 1}});
}

//===----------------------------------------------------------------------===//
// MoE
//===----------------------------------------------------------------------===//

/// How much of each expert each row takes: [rows, experts], with the `k`
/// largest of the router's probabilities and 0 elsewhere.
static Name shares(Body &b, int64_t k) {
  Name all = b.op("Softmax", {b.in("router_probs")}, {{"axis", -1}});
  Names best = b.op(2, "TopK", {all, b.ints({k})}, {{"axis", -1}});
  Name values = best[0];
  if (b.getInt("normalize_routing_weights"))
    values = b.op("Div", {values, b.op("ReduceSum", {values, b.ints({-1})})});
  return spread(b, best[1], values, b.elementType("router_probs"));
}

/// Computes all experts for all rows: which ones a row takes is known when the
/// model runs only.
void buildMoE(Body &b) {
  b.refuseUnless("use_sparse_mixer", 0);
  int64_t k = b.getInt("k"), hidden = b.size("input", -1);
  if (k < 1 || hidden < 1)
    b.refuseUnknown("k or the width of the input is not known");
  // The matrices are [experts, outputs, inputs].
  auto project = [&](const Name &value, llvm::StringRef weights,
                     llvm::StringRef bias) {
    Name product =
        b.op("MatMul", {value, b.transpose(b.in(weights), {0, 2, 1})});
    return b.has(bias) ? b.add(product, b.unsqueeze(b.in(bias), {1})) : product;
  };
  Name rows = b.reshape(b.in("input"), {1, -1, hidden});
  Name inner = project(rows, "fc1_experts_weights", "fc1_experts_bias");
  Name gate = b.has("fc3_experts_weights")
                  ? project(rows, "fc3_experts_weights", "fc3_experts_bias")
                  : Name();
  inner = activateExperts(b, inner, gate, b.size("fc1_experts_weights", 1),
                          b.elementType("input"));
  Name each = project(inner, "fc2_experts_weights", "fc2_experts_bias");
  Name share = b.unsqueeze(b.transpose(shares(b, k), {1, 0}), {2});
  Name sum =
      b.op("ReduceSum", {b.mul(each, share), b.ints({0})}, {{"keepdims", 0}});
  b.give("output", b.op("Reshape", {sum, b.op("Shape", {b.in("input")})}));
}

//===----------------------------------------------------------------------===//
// QMoE
//===----------------------------------------------------------------------===//

namespace {

/// Goes through the experts, whose weights stay packed: those of one are made
/// floats at a time, and only where a row takes it.
class QuantizedExperts {
public:
  explicit QuantizedExperts(Body &b)
      : b(b), k(b.getInt("k")), hidden(b.size("input", -1)),
        block(std::max<int64_t>(b.getInt("block_size"), 0)) {
    if (b.getString("quant_type") != "int")
      b.refuse("quant_type '" + llvm::Twine(b.getString("quant_type")) +
               "' is not supported");
    for (const char *input :
         {"fc1_global_scale", "fc2_global_scale", "fc1_act_scale",
          "fc2_act_scale", "fc1_act_block_scale", "fc2_act_block_scale"})
      b.refuseInput(input);
    b.refuseUnless("use_sparse_mixer", 0);
    if (k < 1 || hidden < 1)
      b.refuseUnknown("k or the width of the input is not known");
  }

  void build() {
    Name rows =
        b.cast(b.reshape(b.in("input"), {-1, hidden}), TensorProto::FLOAT);
    Name share = b.unsqueeze(b.transpose(shares(), {1, 0}), {2});
    Names sequences = {share};
    bool hasGate = b.has("fc3_experts_weights");
    for (int number = 1; number <= (hasGate ? 3 : 2); ++number)
      takeProjection(number, sequences);
    Names sum = b.scan(
        {b.sub(rows, rows)}, sequences, /*backwards=*/false,
        [&](llvm::ArrayRef<Name> before, llvm::ArrayRef<Name> now) -> Names {
          Name isTaken =
              b.op("Greater", {b.op("ReduceMax", {now[0]}, {{"keepdims", 0}}),
                               b.scalar(0, TensorProto::FLOAT)});
          return b.branch(
              isTaken,
              [&]() -> Names {
                return {
                    b.add(before[0], b.mul(computeExpert(rows, now), now[0]))};
              },
              [&]() -> Names { return {before[0]}; });
        });
    Name result = b.cast(sum[0], b.elementType("input"));
    b.give("output", b.op("Reshape", {result, b.op("Shape", {b.in("input")})}));
  }

private:
  /// One matrix [outputs, inputs] for each expert, and the places of what
  /// belongs to it among the scanned sequences; 0 where it is left out.
  struct Projection {
    int64_t outputs, inputs, bits;
    size_t weights, scales, bias = 0, zeroPoints = 0;
  };

  void takeProjection(int number, Names &sequences) {
    std::string fc = "fc" + std::to_string(number);
    std::string weights = fc + "_experts_weights";
    Projection p;
    p.bits =
        b.getInt(fc + "_expert_weight_bits", b.getInt("expert_weight_bits"));
    if (p.bits != 2 && p.bits != 4 && p.bits != 8)
      b.refuse("weights of " + llvm::Twine(p.bits) + " bits are not supported");
    p.outputs = b.size(weights, 1);
    int64_t bytes = b.size(weights, 2);
    constexpr int64_t limit = int64_t(1) << 31;
    if (b.requireRank(weights) != 3 || p.outputs < 1 || bytes < 1 ||
        p.outputs > limit || bytes > limit)
      b.refuseUnknown("the sizes of input '" + llvm::Twine(weights) +
                      "' are not known");
    p.inputs = bytes * (8 / p.bits);
    if (block > 0 && p.inputs % block)
      b.refuse("block_size does not divide the width of input '" +
               llvm::Twine(weights) + "'");
    auto take = [&](const std::string &input) -> size_t {
      if (!b.has(input))
        return 0;
      sequences.push_back(b.in(input));
      return sequences.size() - 1;
    };
    p.weights = take(weights);
    p.scales = take(fc + "_scales");
    if (!p.scales)
      b.refuse("input '" + llvm::Twine(fc) + "_scales' is missing");
    p.bias = take(fc + "_experts_bias");
    p.zeroPoints = take(fc + "_zero_points");
    projections[number] = p;
  }

  /// The k best of the router's, by the softmax of these alone. Weights that
  /// are given instead count where they are positive.
  Name shares() {
    Name scores = b.cast(b.in("router_probs"), TensorProto::FLOAT);
    Names best = b.op(2, "TopK", {scores, b.ints({k})}, {{"axis", -1}});
    Name values = b.op("Softmax", {best[0]}, {{"axis", -1}});
    if (b.has("router_weights")) {
      Name given = b.cast(b.in("router_weights"), TensorProto::FLOAT);
      values = b.op("GatherElements", {given, best[1]}, {{"axis", 1}});
      if (b.getInt("normalize_routing_weights"))
        values =
            b.op("Div", {values, b.op("ReduceSum", {values, b.ints({-1})})});
      values = b.op("Relu", {values});
    }
    return spread(b, best[1], values, TensorProto::FLOAT);
  }

  /// Of one expert, as floats [outputs, inputs].
  Name weightsOf(const Projection &p, llvm::ArrayRef<Name> now) {
    int64_t blocks = block > 0 ? p.inputs / block : 1;
    Name numbers =
        b.cast(unpack(b, now[p.weights], p.bits, 2), TensorProto::FLOAT);
    Name zero = b.scalar(1 << (p.bits - 1), TensorProto::FLOAT);
    if (p.zeroPoints) {
      // Without blocks, those of all outputs are one packed row.
      Name bytes = now[p.zeroPoints];
      int64_t count = blocks;
      if (block == 0) {
        bytes = b.reshape(bytes, {1, -1});
        count = p.outputs;
      }
      Name all = b.slice(unpack(b, bytes, p.bits, 2), 0, count, 1);
      zero = b.reshape(b.cast(all, TensorProto::FLOAT), {p.outputs, blocks, 1});
    }
    Name scale = b.reshape(b.cast(now[p.scales], TensorProto::FLOAT),
                           {p.outputs, blocks, 1});
    Name parts = b.reshape(numbers, {p.outputs, blocks, p.inputs / blocks});
    return b.reshape(b.mul(b.sub(parts, zero), scale), {p.outputs, p.inputs});
  }

  Name project(int number, const Name &rows, llvm::ArrayRef<Name> now) {
    const Projection &p = projections.at(number);
    Name bias = p.bias ? b.cast(now[p.bias], TensorProto::FLOAT) : Name();
    return b.op("Gemm", {rows, weightsOf(p, now), bias}, {{"transB", 1}});
  }

  Name computeExpert(const Name &rows, llvm::ArrayRef<Name> now) {
    Name gate = projections.count(3) ? project(3, rows, now) : Name();
    Name inner = activateExperts(b, project(1, rows, now), gate,
                                 projections.at(1).outputs, TensorProto::FLOAT);
    return project(2, inner, now);
  }

  Body &b;
  int64_t k, hidden, block;
  std::map<int, Projection> projections;
};

} // namespace

void buildQMoE(Body &b) { QuantizedExperts(b).build(); }

} // namespace sardonyx::contrib
