//===- Reduction.cpp - Derivatives of reductions --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Gradient/Gradient.h"

using namespace llvm;

namespace sardonyx::importer {
namespace {

/// A reduction's value, or the derivative with respect to it, with the reduced
/// dimensions kept, so that it broadcasts to the input.
std::string kept(Adjoint &a, const std::string &value) {
  // Without axes all are reduced, or none: either broadcasts as it is.
  if (a.intOf("keepdims", 1) || a.x(1).empty())
    return value;
  return a.op("Unsqueeze", {value, a.x(1)});
}

/// The sum over the axes of the reduction, which are kept.
std::string sumKept(Adjoint &a, const std::string &x) {
  return a.op("ReduceSum", {x, a.x(1)},
              {{"keepdims", int64_t(1)},
               {"noop_with_empty_axes", a.intOf("noop_with_empty_axes", 0)}});
}

/// Gives dy times the slope, in the shape of the input.
void give(Adjoint &a, const std::string &slope) {
  a.give(0, a.mul(kept(a, a.dy()), slope));
}

void sum(Adjoint &a) {
  a.give(0, a.expandTo(kept(a, a.dy()), a.shapeOf(a.x())));
}

/// How many elements of the input make one of the result.
std::string countOf(Adjoint &a) {
  auto count = [&](const std::string &value) {
    return a.op("CastLike", {a.op("Size", {value}), a.x()});
  };
  return a.div(count(a.x()), count(a.y()));
}

void mean(Adjoint &a) {
  std::string share = a.div(kept(a, a.dy()), countOf(a));
  a.give(0, a.expandTo(share, a.shapeOf(a.x())));
}

/// Elements that are equally extreme share.
void extreme(Adjoint &a) {
  std::string is = a.indicator(a.op("Equal", {a.x(), kept(a, a.y())}));
  give(a, a.div(is, sumKept(a, is)));
}

/// The product of all others: where one element is zero, that of the rest;
/// where two are, it is zero.
void product(Adjoint &a) {
  std::string zero = a.number(0), one = a.number(1);
  std::string isZero = a.op("Equal", {a.x(), zero});
  std::string rest = a.where(isZero, one, a.x());
  std::string restProduct =
      a.op("ReduceProd", {rest, a.x(1)},
           {{"keepdims", int64_t(1)},
            {"noop_with_empty_axes", a.intOf("noop_with_empty_axes", 0)}});
  std::string flags = a.indicator(isZero);
  std::string othersZero = a.sub(sumKept(a, flags), flags);
  std::string others = a.div(restProduct, rest);
  give(a, a.where(a.op("Greater", {othersZero, zero}), zero, others));
}

void sumSquare(Adjoint &a) { give(a, a.mul(a.number(2), a.x())); }
void l1(Adjoint &a) { give(a, a.op("Sign", {a.x()})); }
void l2(Adjoint &a) {
  // At the origin, where there is none, 0 is as good as any.
  std::string norm = kept(a, a.y());
  std::string isZero = a.op("Equal", {norm, a.number(0)});
  give(a, a.div(a.x(), a.where(isZero, a.number(1), norm)));
}
void logSum(Adjoint &a) {
  std::string slope = a.op("Reciprocal", {a.op("Exp", {kept(a, a.y())})});
  a.give(0, a.expandTo(a.mul(kept(a, a.dy()), slope), a.shapeOf(a.x())));
}
void logSumExp(Adjoint &a) {
  give(a, a.op("Exp", {a.sub(a.x(), kept(a, a.y()))}));
}

//===----------------------------------------------------------------------===//
// Along one axis
//===----------------------------------------------------------------------===//

std::string sumAlong(Adjoint &a, const std::string &x, int64_t axis) {
  return a.op("ReduceSum", {x, a.ints({axis})}, {{"keepdims", int64_t(1)}});
}

void softmax(Adjoint &a) {
  std::string product = a.mul(a.dy(), a.y());
  std::string sum = sumAlong(a, product, a.intOf("axis", -1));
  a.give(0, a.sub(product, a.mul(a.y(), sum)));
}

void logSoftmax(Adjoint &a) {
  std::string sum = sumAlong(a, a.dy(), a.intOf("axis", -1));
  a.give(0, a.sub(a.dy(), a.mul(a.op("Exp", {a.y()}), sum)));
}

void cumSum(Adjoint &a) {
  a.give(0, a.op("CumSum", {a.dy(), a.x(1)},
                 {{"exclusive", a.intOf("exclusive", 0)},
                  {"reverse", int64_t(!a.intOf("reverse", 0))}}));
}

/// start + i * delta: where it ends is a step.
void range(Adjoint &a) {
  NodeMaker::Attributes toScalar{{"keepdims", int64_t(0)}};
  if (a.wants(0))
    a.give(0, a.op("ReduceSum", {a.dy()}, toScalar));
  if (!a.wants(2))
    return;
  auto integer = [&](int64_t value) {
    return a.op("Squeeze", {a.ints({value})});
  };
  std::string steps =
      a.op("Range", {integer(0), a.op("Size", {a.y()}), integer(1)});
  steps = a.op("CastLike", {steps, a.dy()});
  a.give(2, a.op("ReduceSum", {a.mul(a.dy(), steps)}, toScalar));
}

void constant(Adjoint &) {}

} // namespace

ArrayRef<GradientRule> reductionGradients() {
  static const GradientRule rules[] = {
      {"CumSum", cumSum},         {"Hardmax", constant},
      {"LogSoftmax", logSoftmax}, {"Range", range},
      {"ReduceL1", l1},           {"ReduceL2", l2},
      {"ReduceLogSum", logSum},   {"ReduceLogSumExp", logSumExp},
      {"ReduceMax", extreme},     {"ReduceMean", mean},
      {"ReduceMin", extreme},     {"ReduceProd", product},
      {"ReduceSum", sum},         {"ReduceSumSquare", sumSquare},
      {"Softmax", softmax},
  };
  return rules;
}

} // namespace sardonyx::importer
