//===- Experts.cpp - Mixtures of experts ----------------------------------===//

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// How much of each expert each row takes: [rows, experts], with the `k`
/// largest of the router's probabilities and 0 elsewhere.
static Name shares(Body &b, int64_t k) {
  Name all = b.op("Softmax", {b.in("router_probs")}, {{"axis", -1}});
  Names best = b.op(2, "TopK", {all, b.ints({k})}, {{"axis", -1}});
  Name values = best[0];
  if (b.getInt("normalize_routing_weights"))
    values = b.op("Div", {values, b.op("ReduceSum", {values, b.ints({-1})})});
  return b.op("ScatterElements", {b.sub(all, all), best[1], values},
              {{"axis", 1}});
}

static Name activateExperts(Body &b, const Name &value) {
  std::string type = b.getString("activation_type");
  if (type == "relu")
    return b.op("Relu", {value});
  if (type == "gelu")
    return b.op("Gelu", {value}, {{"approximate", "tanh"}});
  if (type == "silu")
    return b.mul(value, b.op("Sigmoid", {value}));
  if (type == "identity")
    return value;
  b.refuse("activation '" + llvm::Twine(type) + "' is not supported");
}

/// Computes all experts for all rows: which ones a row takes is known when the
/// model runs only.
void buildMoE(Body &b) {
  for (const char *attribute : {"use_sparse_mixer", "swiglu_fusion"})
    b.refuseUnless(attribute, 0);
  int64_t k = b.getInt("k"), hidden = b.size("input", -1);
  if (k < 1 || hidden < 1)
    b.refuse("k or the width of the input is not known");
  // The matrices are [experts, outputs, inputs].
  auto project = [&](const Name &value, llvm::StringRef weights,
                     llvm::StringRef bias) {
    Name product =
        b.op("MatMul", {value, b.transpose(b.in(weights), {0, 2, 1})});
    return b.has(bias) ? b.add(product, b.unsqueeze(b.in(bias), {1})) : product;
  };
  Name rows = b.reshape(b.in("input"), {1, -1, hidden});
  Name inner = activateExperts(
      b, project(rows, "fc1_experts_weights", "fc1_experts_bias"));
  if (b.has("fc3_experts_weights"))
    inner =
        b.mul(inner, project(rows, "fc3_experts_weights", "fc3_experts_bias"));
  Name each = project(inner, "fc2_experts_weights", "fc2_experts_bias");
  Name share = b.unsqueeze(b.transpose(shares(b, k), {1, 0}), {2});
  Name sum =
      b.op("ReduceSum", {b.mul(each, share), b.ints({0})}, {{"keepdims", 0}});
  b.give("output", b.op("Reshape", {sum, b.op("Shape", {b.in("input")})}));
}

} // namespace sardonyx::contrib
