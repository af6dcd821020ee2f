//===- Normalization.cpp - Derivatives of normalisations ------------------===//
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

using Ints = std::vector<int64_t>;

/// A list with an element for each channel, as it broadcasts over `x`.
std::string perChannel(Adjoint &a, const std::string &list) {
  return a.op("Unsqueeze", {list, a.ints(upTo(1, a.rank(a.x()) - 1))});
}

Ints allButChannels(Adjoint &a) {
  Ints axes = {0};
  for (int64_t i = 2; i < a.rank(a.x()); ++i)
    axes.push_back(i);
  return axes;
}

void batchNormalization(Adjoint &a) {
  if (a.intOf("training_mode", 0))
    a.refuse("training_mode");
  std::string epsilon = a.number(a.floatOf("epsilon", 1e-5));
  auto as = [&](const std::string &list) {
    return a.op("CastLike", {list, a.x()});
  };
  std::string rate =
      a.op("Reciprocal", {a.op("Sqrt", {a.add(as(a.x(4)), epsilon)})});
  std::string scale = as(a.x(1));
  auto total = [&](const std::string &x) {
    return a.op("ReduceSum", {x, a.ints(allButChannels(a))},
                {{"keepdims", int64_t(0)}});
  };
  auto give = [&](int i, const std::string &x) {
    a.give(i, a.op("CastLike", {x, a.x(i)}));
  };
  std::string centred = a.sub(a.x(), perChannel(a, as(a.x(3))));
  if (a.wants(0))
    a.give(0, a.mul(a.dy(), perChannel(a, a.mul(scale, rate))));
  if (a.wants(1))
    give(1, a.mul(total(a.mul(a.dy(), centred)), rate));
  if (a.wants(2))
    give(2, total(a.dy()));
  if (a.wants(3))
    give(3, a.op("Neg", {a.mul(total(a.dy()), a.mul(scale, rate))}));
  if (a.wants(4)) {
    std::string cube = a.mul(rate, a.mul(rate, rate));
    std::string slope = a.mul(a.number(-0.5), a.mul(scale, cube));
    give(4, a.mul(total(a.mul(a.dy(), centred)), slope));
  }
}

void instanceNormalization(Adjoint &a) {
  std::string axes = a.ints(upTo(2, a.rank(a.x())));
  auto mean = [&](const std::string &x) {
    return a.op("ReduceMean", {x, axes});
  };
  std::string epsilon = a.number(a.floatOf("epsilon", 1e-5));
  std::string centred = a.sub(a.x(), mean(a.x()));
  std::string variance = mean(a.mul(centred, centred));
  std::string rate =
      a.op("Reciprocal", {a.op("Sqrt", {a.add(variance, epsilon)})});
  std::string normal = a.mul(centred, rate);
  if (a.wants(0)) {
    std::string d = a.mul(a.dy(), perChannel(a, a.x(1)));
    std::string inner =
        a.sub(a.sub(d, mean(d)), a.mul(normal, mean(a.mul(d, normal))));
    a.give(0, a.mul(rate, inner));
  }
  auto total = [&](const std::string &x) {
    return a.op("ReduceSum", {x, a.ints(allButChannels(a))},
                {{"keepdims", int64_t(0)}});
  };
  if (a.wants(1))
    a.give(1, total(a.mul(a.dy(), normal)));
  if (a.wants(2))
    a.give(2, total(a.dy()));
}

/// The root mean square of what the result was divided by stays constant.
void rmsNormalization(Adjoint &a) {
  int64_t rank = a.rank(a.x());
  std::string axes = a.ints(upTo(a.axis(a.intOf("axis", -1), rank), rank));
  auto mean = [&](const std::string &x) {
    return a.op("ReduceMean", {x, axes});
  };
  std::string epsilon = a.number(a.floatOf("epsilon", 1e-5));
  std::string rate =
      a.op("Reciprocal",
           {a.op("Sqrt", {a.add(mean(a.mul(a.x(), a.x())), epsilon)})});
  std::string normal = a.mul(a.x(), rate);
  if (a.wants(0)) {
    std::string d = a.mul(a.dy(), a.op("CastLike", {a.x(1), a.x()}));
    a.give(0, a.mul(rate, a.sub(d, a.mul(normal, mean(a.mul(d, normal))))));
  }
  if (a.wants(1)) {
    std::string sum = a.sumTo(a.mul(a.dy(), normal), a.x(), a.x(1));
    a.give(1, a.op("CastLike", {sum, a.x(1)}));
  }
}

void lpNormalization(Adjoint &a) {
  bool isL1 = a.intOf("p", 2) == 1;
  std::string axis = a.ints({a.intOf("axis", -1)});
  std::string norm = a.op(isL1 ? "ReduceL1" : "ReduceL2", {a.x(), axis});
  // Rows of zeros stay as they are.
  std::string isZero = a.op("Equal", {norm, a.number(0)});
  norm = a.where(isZero, a.number(1), norm);
  std::string direction = isL1 ? a.op("Sign", {a.x()}) : a.y();
  std::string along = a.op("ReduceSum", {a.mul(a.dy(), a.y()), axis});
  std::string slope = a.div(a.sub(a.dy(), a.mul(direction, along)), norm);
  a.give(0, a.where(isZero, a.number(0), slope));
}

} // namespace

ArrayRef<GradientRule> normalizationGradients() {
  static const GradientRule rules[] = {
      {"BatchNormalization", batchNormalization},
      {"InstanceNormalization", instanceNormalization},
      {"LpNormalization", lpNormalization},
      {"RMSNormalization", rmsNormalization},
  };
  return rules;
}

} // namespace sardonyx::importer
