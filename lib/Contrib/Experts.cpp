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

//===----------------------------------------------------------------------===//
// What rows take of experts
//===----------------------------------------------------------------------===//

/// `values` [rows, k] of the experts `which` [rows, k] as [experts, rows], with
/// 0 for the others.
static Name spread(Body &b, const Name &which, const Name &values,
                   int elementType) {
  Name none = b.op("ConstantOfShape", {b.op("Shape", {b.in("router_probs")})});
  Name all = b.op("ScatterElements", {b.cast(none, elementType), which, values},
                  {{"axis", 1}});
  return b.transpose(all, {1, 0});
}

/// The places of a list where it is positive.
static Name findPositive(Body &b, const Name &list, int elementType) {
  Name isPositive = b.op("Greater", {list, b.scalar(0, elementType)});
  return b.op("Squeeze", {b.op("NonZero", {isPositive}), b.ints({0})});
}

/// What experts make of `rows` [rows, hidden], by `shares` [experts, rows] of
/// each. `compute` gets the rows that take an expert, and its number: experts
/// that nobody takes are not computed.
static Name sumExperts(
    Body &b, const Name &rows, int64_t count, const Name &shares,
    int elementType,
    llvm::function_ref<Name(const Name &rows, const Name &expert)> compute) {
  Name largest = b.op("ReduceMax", {shares, b.ints({1})}, {{"keepdims", 0}});
  Name taken = findPositive(b, largest, elementType);
  Name none = b.op("ConstantOfShape", {b.op("Shape", {rows})});
  return b.scan(
      {b.cast(none, elementType)}, {taken}, /*backwards=*/false,
      [&](llvm::ArrayRef<Name> sum, llvm::ArrayRef<Name> expert) -> Names {
        Name share = b.op("Gather", {shares, expert[0]});
        if (count == 1)
          return {b.add(sum[0], b.mul(compute(rows, expert[0]),
                                      b.unsqueeze(share, {1})))};
        Name which = findPositive(b, share, elementType);
        Name made = compute(b.op("Gather", {rows, which}), expert[0]);
        made = b.mul(made, b.unsqueeze(b.op("Gather", {share, which}), {1}));
        return {b.op("ScatterND", {sum[0], b.unsqueeze(which, {1}), made},
                     {{"reduction", "add"}})};
      })[0];
}

/// How many rows an input has; -1 if not known.
static int64_t countRows(Body &b, llvm::StringRef input) {
  int64_t count = 1;
  for (int64_t axis = 0, end = b.requireRank(input) - 1; axis < end; ++axis) {
    int64_t size = b.size(input, axis);
    if (size < 0)
      return -1;
    count *= size;
  }
  return count;
}

//===----------------------------------------------------------------------===//
// MoE
//===----------------------------------------------------------------------===//

/// How much of each expert each row takes: [experts, rows], with the `k`
/// largest of the router's probabilities and 0 elsewhere.
static Name shares(Body &b, int64_t k) {
  Name all = b.op("Softmax", {b.in("router_probs")}, {{"axis", -1}});
  Names best = b.op(2, "TopK", {all, b.ints({k})}, {{"axis", -1}});
  Name values = best[0];
  if (b.getInt("normalize_routing_weights"))
    values = b.op("Div", {values, b.op("ReduceSum", {values, b.ints({-1})})});
  return spread(b, best[1], values, b.elementType("router_probs"));
}

void buildMoE(Body &b) {
  b.refuseUnless("use_sparse_mixer", 0);
  int64_t k = b.getInt("k"), hidden = b.size("input", -1);
  if (k < 1 || hidden < 1)
    b.refuseUnknown("k or the width of the input is not known");
  int type = b.elementType("input");
  // The matrices are [experts, outputs, inputs].
  auto project = [&](const std::string &fc, const Name &rows,
                     const Name &expert) {
    Name weights = b.op("Gather", {b.in(fc + "_experts_weights"), expert});
    Name bias = b.in(fc + "_experts_bias");
    if (!bias.empty())
      bias = b.op("Gather", {bias, expert});
    return b.op("Gemm", {rows, weights, bias}, {{"transB", 1}});
  };
  auto compute = [&](const Name &rows, const Name &expert) {
    Name gate =
        b.has("fc3_experts_weights") ? project("fc3", rows, expert) : Name();
    Name inner = activateExperts(b, project("fc1", rows, expert), gate,
                                 b.size("fc1_experts_weights", 1), type);
    return project("fc2", inner, expert);
  };
  Name rows = b.reshape(b.in("input"), {-1, hidden});
  Name sum =
      sumExperts(b, rows, countRows(b, "input"), shares(b, k), type, compute);
  b.give("output", b.op("Reshape", {sum, b.op("Shape", {b.in("input")})}));
}

//===----------------------------------------------------------------------===//
// QMoE
//===----------------------------------------------------------------------===//

namespace {

/// Multiplies by the weights of experts as MatMulNBits does, which reads them
/// packed.
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
    if (b.getInt("weights_prepacked") == 1)
      b.refuse("its weights are packed for another library");
    if (k < 1 || hidden < 1)
      b.refuseUnknown("k or the width of the input is not known");
  }

  void build() {
    Name rows =
        b.cast(b.reshape(b.in("input"), {-1, hidden}), TensorProto::FLOAT);
    bool hasGate = b.has("fc3_experts_weights");
    for (int number = 1; number <= (hasGate ? 3 : 2); ++number)
      takeProjection(number);
    Name sum =
        sumExperts(b, rows, countRows(b, "input"), shares(), TensorProto::FLOAT,
                   [&](const Name &rows, const Name &expert) {
                     return computeExpert(rows, expert);
                   });
    Name result = b.cast(sum, b.elementType("input"));
    b.give("output", b.op("Reshape", {result, b.op("Shape", {b.in("input")})}));
  }

private:
  /// A matrix [outputs, inputs] for each expert, with scales [experts, outputs,
  /// blocks], biases [experts, outputs] and zero points, packed as
  /// MatMulNBits has them; the last two may be missing.
  struct Projection {
    int64_t outputs, inputs, bits, block;
    Name weights, scales, bias, zeroPoints;
  };

  void takeProjection(int number) {
    std::string fc = "fc" + std::to_string(number);
    std::string weights = fc + "_experts_weights";
    Projection p;
    p.bits =
        b.getInt(fc + "_expert_weight_bits", b.getInt("expert_weight_bits"));
    if (p.bits != 2 && p.bits != 4 && p.bits != 8)
      b.refuse("weights of " + llvm::Twine(p.bits) + " bits are not supported");
    if (b.elementType(weights) != TensorProto::UINT8)
      b.refuse("input '" + llvm::Twine(weights) + "' is not of uint8");
    p.outputs = b.size(weights, 1);
    int64_t bytes = b.size(weights, 2);
    constexpr int64_t limit = int64_t(1) << 28;
    if (b.requireRank(weights) != 3 || p.outputs < 1 || bytes < 1 ||
        p.outputs > limit || bytes > limit)
      b.refuseUnknown("the sizes of input '" + llvm::Twine(weights) +
                      "' are not known");
    p.inputs = bytes * (8 / p.bits);
    p.block = block > 0 ? block : p.inputs;
    if (p.inputs % p.block)
      b.refuse("block_size does not divide the width of input '" +
               llvm::Twine(weights) + "'");
    if (p.block * p.bits % 8)
      b.refuse("blocks of input '" + llvm::Twine(weights) +
               "' are no whole bytes");
    if (!b.has(fc + "_scales"))
      b.refuse("input '" + llvm::Twine(fc) + "_scales' is missing");
    p.weights = b.in(weights);
    p.scales = b.reshape(b.cast(b.in(fc + "_scales"), TensorProto::FLOAT),
                         {-1, p.outputs, p.inputs / p.block});
    if (b.has(fc + "_experts_bias"))
      p.bias = b.cast(b.in(fc + "_experts_bias"), TensorProto::FLOAT);
    p.zeroPoints = b.in(fc + "_zero_points");
    // Without blocks, those of all outputs are one packed row.
    if (!p.zeroPoints.empty() && block == 0)
      p.zeroPoints = b.unsqueeze(
          b.slice(unpack(b, p.zeroPoints, p.bits, 2), 0, p.outputs, 1), {2});
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

  Name project(int number, const Name &rows, const Name &expert) {
    const Projection &p = projections.at(number);
    auto choose = [&](const Name &all) {
      return all.empty() ? all : b.op("Gather", {all, expert});
    };
    Attrs attrs = {{"K", p.inputs},
                   {"N", p.outputs},
                   {"bits", p.bits},
                   {"block_size", p.block}};
    b.pass(attrs, {"accuracy_level"});
    return b.ownOp("MatMulNBits",
                   {rows, choose(p.weights), choose(p.scales),
                    choose(p.zeroPoints), Name(), choose(p.bias)},
                   attrs);
  }

  Name computeExpert(const Name &rows, const Name &expert) {
    Name gate = projections.count(3) ? project(3, rows, expert) : Name();
    Name inner = activateExperts(b, project(1, rows, expert), gate,
                                 projections.at(1).outputs, TensorProto::FLOAT);
    return project(2, inner, expert);
  }

  Body &b;
  int64_t k, hidden, block;
  std::map<int, Projection> projections;
};

} // namespace

void buildQMoE(Body &b) { QuantizedExperts(b).build(); }

} // namespace sardonyx::contrib
