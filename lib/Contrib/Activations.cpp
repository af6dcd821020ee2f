//===- Activations.cpp - Gelu and its kin ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Activations.h"

#include "llvm/ADT/STLExtras.h"

namespace sardonyx::contrib {

void buildFastGelu(Body &b) {
  Name x = b.addIfThere(b.in("X"), b.in("bias"));
  b.give("Y", b.op("Gelu", {x}, {{"approximate", "tanh"}}));
}

void buildQuickGelu(Body &b) {
  Name x = b.in("X");
  Name scaled = b.mul(x, b.scalarLike(b.getFloat("alpha"), "X"));
  b.give("Y", b.mul(x, b.op("Sigmoid", {scaled})));
}

namespace {
/// An activation that an ONNX operator is, and the attributes that its
/// parameters are.
struct Activation {
  llvm::StringLiteral name;
  std::vector<const char *> params;
};
} // namespace

Name activate(Body &b, const Name &value, llvm::ArrayRef<float> params,
              int elementType) {
  static const Activation known[] = {
      {"Relu", {}},
      {"Sigmoid", {}},
      {"Tanh", {}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"LeakyRelu", {"alpha"}},
      {"Elu", {"alpha"}},
      {"ThresholdedRelu", {"alpha"}},
      {"Celu", {"alpha"}},
      {"HardSigmoid", {"alpha", "beta"}},
      {"Selu", {"alpha", "gamma"}},
  };
  std::string activation = b.getString("activation");
  if (activation.empty())
    return value;
  if (activation == "Clip" && params.size() == 2)
    return b.op("Clip", {value, b.scalar(params[0], elementType),
                         b.scalar(params[1], elementType)});
  auto it = llvm::find_if(
      known, [&](const Activation &a) { return a.name == activation; });
  if (it == std::end(known) || params.size() > it->params.size())
    b.refuse("activation '" + llvm::Twine(activation) + "' with " +
             llvm::Twine(params.size()) + " parameters is not supported");
  Attrs attrs;
  for (auto [name, param] : llvm::zip(it->params, params))
    attrs.emplace_back(name, param);
  return b.op(activation, {value}, attrs);
}

} // namespace sardonyx::contrib
