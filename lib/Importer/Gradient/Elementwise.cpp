//===- Elementwise.cpp - Derivatives of elementwise operators -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Gradient/Gradient.h"

#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace llvm;

namespace sardonyx::importer {
namespace {

//===----------------------------------------------------------------------===//
// Of one input: the derivative at each element times dy
//===----------------------------------------------------------------------===//

/// A rule for f'(x), which `slope` makes.
template <std::string (*slope)(Adjoint &)> void unary(Adjoint &a) {
  a.give(0, a.mul(a.dy(), slope(a)));
}

std::string square(Adjoint &a, const std::string &x) { return a.mul(x, x); }
std::string reciprocal(Adjoint &a, const std::string &x) {
  return a.op("Reciprocal", {x});
}
std::string rootOf(Adjoint &a, const std::string &x) {
  return a.op("Sqrt", {x});
}
std::string onePlus(Adjoint &a, const std::string &x) {
  return a.add(a.number(1), x);
}
std::string oneMinus(Adjoint &a, const std::string &x) {
  return a.sub(a.number(1), x);
}

std::string negSlope(Adjoint &a) { return a.number(-1); }
std::string absSlope(Adjoint &a) { return a.op("Sign", {a.x()}); }
std::string expSlope(Adjoint &a) { return a.y(); }
std::string logSlope(Adjoint &a) { return reciprocal(a, a.x()); }
std::string sqrtSlope(Adjoint &a) { return a.div(a.number(0.5), a.y()); }
std::string reciprocalSlope(Adjoint &a) {
  return a.op("Neg", {square(a, a.y())});
}
std::string sinSlope(Adjoint &a) { return a.op("Cos", {a.x()}); }
std::string cosSlope(Adjoint &a) { return a.op("Neg", {a.op("Sin", {a.x()})}); }
std::string tanSlope(Adjoint &a) { return onePlus(a, square(a, a.y())); }
std::string asinSlope(Adjoint &a) {
  return reciprocal(a, rootOf(a, oneMinus(a, square(a, a.x()))));
}
std::string acosSlope(Adjoint &a) { return a.op("Neg", {asinSlope(a)}); }
std::string atanSlope(Adjoint &a) {
  return reciprocal(a, onePlus(a, square(a, a.x())));
}
std::string sinhSlope(Adjoint &a) { return a.op("Cosh", {a.x()}); }
std::string coshSlope(Adjoint &a) { return a.op("Sinh", {a.x()}); }
std::string tanhSlope(Adjoint &a) { return oneMinus(a, square(a, a.y())); }
std::string asinhSlope(Adjoint &a) {
  return reciprocal(a, rootOf(a, onePlus(a, square(a, a.x()))));
}
std::string acoshSlope(Adjoint &a) {
  return reciprocal(a, rootOf(a, a.sub(square(a, a.x()), a.number(1))));
}
std::string atanhSlope(Adjoint &a) {
  return reciprocal(a, oneMinus(a, square(a, a.x())));
}
std::string sigmoidSlope(Adjoint &a) {
  return a.mul(a.y(), oneMinus(a, a.y()));
}
std::string erfSlope(Adjoint &a) {
  std::string bell = a.op("Exp", {a.op("Neg", {square(a, a.x())})});
  return a.mul(a.number(2 / std::sqrt(M_PI)), bell);
}
std::string softplusSlope(Adjoint &a) { return a.op("Sigmoid", {a.x()}); }
std::string softsignSlope(Adjoint &a) {
  return reciprocal(a, square(a, onePlus(a, a.op("Abs", {a.x()}))));
}

//===----------------------------------------------------------------------===//
// Of one input: pieces
//===----------------------------------------------------------------------===//

std::string isPositive(Adjoint &a, const std::string &x) {
  return a.op("Greater", {x, a.number(0)});
}

/// dy where the condition holds, else dy times `slope`.
void giveWhere(Adjoint &a, const std::string &condition,
               const std::string &slope) {
  a.give(0, a.where(condition, a.dy(), a.mul(a.dy(), slope)));
}

void relu(Adjoint &a) {
  a.give(0, a.where(isPositive(a, a.x()), a.dy(), a.number(0)));
}
void leakyRelu(Adjoint &a) {
  giveWhere(a, isPositive(a, a.x()), a.number(a.floatOf("alpha", 0.01)));
}
void elu(Adjoint &a) {
  // Below zero, y = alpha * (exp(x) - 1).
  giveWhere(a, isPositive(a, a.x()),
            a.add(a.y(), a.number(a.floatOf("alpha", 1))));
}
void selu(Adjoint &a) {
  double alpha = a.floatOf("alpha", 1.67326319217681884765625);
  double gamma = a.floatOf("gamma", 1.05070102214813232421875);
  std::string below = a.add(a.y(), a.number(alpha * gamma));
  a.give(0,
         a.mul(a.dy(), a.where(isPositive(a, a.x()), a.number(gamma), below)));
}
void celu(Adjoint &a) {
  double alpha = a.floatOf("alpha", 1);
  std::string slope = a.op("Exp", {a.div(a.x(), a.number(alpha))});
  giveWhere(a, isPositive(a, a.x()), slope);
}
void hardSigmoid(Adjoint &a) {
  std::string inside =
      a.op("And", {isPositive(a, a.y()), a.op("Less", {a.y(), a.number(1)})});
  std::string slope = a.mul(a.dy(), a.number(a.floatOf("alpha", 0.2)));
  a.give(0, a.where(inside, slope, a.number(0)));
}
void thresholdedRelu(Adjoint &a) {
  std::string above = a.op("Greater", {a.x(), a.number(a.floatOf("alpha", 1))});
  a.give(0, a.where(above, a.dy(), a.number(0)));
}

void clip(Adjoint &a) {
  std::string zero = a.number(0), inside;
  auto below = [&] { return a.op("Less", {a.x(), a.x(1)}); };
  auto above = [&] { return a.op("Greater", {a.x(), a.x(2)}); };
  std::string dx = a.dy();
  if (!a.x(1).empty())
    dx = a.where(below(), zero, dx);
  if (!a.x(2).empty())
    dx = a.where(above(), zero, dx);
  a.give(0, dx);
  auto sum = [&](const std::string &x) {
    return a.op("ReduceSum", {x}, {{"keepdims", int64_t(0)}});
  };
  // The maximum wins where the two bounds cross.
  if (a.wants(1)) {
    std::string part = a.where(below(), a.dy(), zero);
    if (!a.x(2).empty())
      part = a.where(a.op("Greater", {a.x(1), a.x(2)}), zero, part);
    a.give(1, a.reshapeTo(sum(part), a.shapeOf(a.x(1))));
  }
  if (a.wants(2)) {
    std::string high = above();
    if (!a.x(1).empty())
      high = a.op("Or", {high, a.op("Greater", {a.x(1), a.x(2)})});
    a.give(2, a.reshapeTo(sum(a.where(high, a.dy(), zero)), a.shapeOf(a.x(2))));
  }
}

//===----------------------------------------------------------------------===//
// Of several inputs, which broadcast
//===----------------------------------------------------------------------===//

/// The derivative with respect to input `i`, of the shape of the result.
void giveSum(Adjoint &a, int i, const std::string &derivative) {
  a.give(i, a.sumTo(derivative, a.y(), a.x(i)));
}

void add(Adjoint &a) {
  for (int i = 0; i < a.node.input_size(); ++i)
    if (a.wants(i))
      giveSum(a, i, a.dy());
}
void sub(Adjoint &a) {
  if (a.wants(0))
    giveSum(a, 0, a.dy());
  if (a.wants(1))
    giveSum(a, 1, a.op("Neg", {a.dy()}));
}
void mul(Adjoint &a) {
  if (a.wants(0))
    giveSum(a, 0, a.mul(a.dy(), a.x(1)));
  if (a.wants(1))
    giveSum(a, 1, a.mul(a.dy(), a.x(0)));
}
void div(Adjoint &a) {
  std::string quotient = a.div(a.dy(), a.x(1));
  if (a.wants(0))
    giveSum(a, 0, quotient);
  if (a.wants(1))
    giveSum(a, 1, a.op("Neg", {a.mul(quotient, a.y())}));
}
/// a - b * trunc(a / b): numbers have the remainder of C.
void mod(Adjoint &a) {
  if (a.wants(0))
    giveSum(a, 0, a.dy());
  if (!a.wants(1))
    return;
  std::string multiple = a.div(a.sub(a.y(), a.x(0)), a.x(1));
  giveSum(a, 1, a.mul(a.dy(), a.op("Round", {multiple})));
}
void mean(Adjoint &a) {
  std::string share = a.div(a.dy(), a.number(a.node.input_size()));
  for (int i = 0; i < a.node.input_size(); ++i)
    if (a.wants(i))
      giveSum(a, i, share);
}

/// Max, Min: inputs that are equally extreme share.
void extreme(Adjoint &a) {
  Adjoint::Names is;
  for (int i = 0; i < a.node.input_size(); ++i)
    is.push_back(a.indicator(a.op("Equal", {a.x(i), a.y()})));
  std::string share = a.div(a.dy(), a.op("Sum", is));
  for (int i = 0; i < a.node.input_size(); ++i)
    if (a.wants(i))
      giveSum(a, i, a.mul(share, is[i]));
}

void pow(Adjoint &a) {
  std::string zero = a.number(0);
  std::string exponent = a.op("CastLike", {a.x(1), a.x()});
  if (a.wants(0)) {
    // x^0 is constant, at 0 as well.
    std::string slope =
        a.mul(exponent, a.op("Pow", {a.x(), a.sub(exponent, a.number(1))}));
    slope = a.where(a.op("Equal", {exponent, zero}), zero, slope);
    giveSum(a, 0, a.mul(a.dy(), slope));
  }
  if (a.wants(1)) {
    // Powers of 0 are constant for positive exponents.
    std::string isZero =
        a.op("And", {a.op("Equal", {a.x(), zero}),
                     a.op("GreaterOrEqual", {exponent, zero})});
    std::string log = a.op("Log", {a.where(isZero, a.number(1), a.x())});
    std::string sum = a.sumTo(a.mul(a.dy(), a.mul(a.y(), log)), a.y(), a.x(1));
    a.give(1, a.op("CastLike", {sum, a.x(1)}));
  }
}

void prelu(Adjoint &a) {
  std::string positive = isPositive(a, a.x());
  if (a.wants(0))
    a.give(0, a.where(positive, a.dy(), a.mul(a.dy(), a.x(1))));
  if (a.wants(1))
    giveSum(a, 1, a.where(positive, a.number(0), a.mul(a.dy(), a.x())));
}

void where(Adjoint &a) {
  // The element type is that of the branches.
  std::string zero = a.numberLike(0, a.x(1));
  if (a.wants(1))
    giveSum(a, 1, a.where(a.x(), a.dy(), zero));
  if (a.wants(2))
    giveSum(a, 2, a.where(a.x(), zero, a.dy()));
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

void identity(Adjoint &a) { a.give(0, a.dy()); }
void cast(Adjoint &a) { a.give(0, a.op("CastLike", {a.dy(), a.x()})); }
/// Steps: nothing is given.
void constant(Adjoint &) {}

void dropout(Adjoint &a) {
  if (!a.x(2).empty())
    a.refuse("it may be in training mode, where it draws random numbers");
  a.give(0, a.dy());
}

} // namespace

ArrayRef<GradientRule> elementwiseGradients() {
  static const GradientRule rules[] = {
      {"Abs", unary<absSlope>},
      {"Acos", unary<acosSlope>},
      {"Acosh", unary<acoshSlope>},
      {"Add", add},
      {"Asin", unary<asinSlope>},
      {"Asinh", unary<asinhSlope>},
      {"Atan", unary<atanSlope>},
      {"Atanh", unary<atanhSlope>},
      {"Cast", cast},
      {"CastLike", cast},
      {"Ceil", constant},
      {"Celu", celu},
      {"Clip", clip},
      {"Cos", unary<cosSlope>},
      {"Cosh", unary<coshSlope>},
      {"Div", div},
      {"Dropout", dropout},
      {"Elu", elu},
      {"Erf", unary<erfSlope>},
      {"Exp", unary<expSlope>},
      {"Floor", constant},
      {"HardSigmoid", hardSigmoid},
      {"Identity", identity},
      {"LeakyRelu", leakyRelu},
      {"Log", unary<logSlope>},
      {"Max", extreme},
      {"Mean", mean},
      {"Min", extreme},
      {"Mod", mod},
      {"Mul", mul},
      {"Neg", unary<negSlope>},
      {"PRelu", prelu},
      {"Pow", pow},
      {"Reciprocal", unary<reciprocalSlope>},
      {"Relu", relu},
      {"Round", constant},
      {"Selu", selu},
      {"Sigmoid", unary<sigmoidSlope>},
      {"Sign", constant},
      {"Sin", unary<sinSlope>},
      {"Sinh", unary<sinhSlope>},
      {"Softplus", unary<softplusSlope>},
      {"Softsign", unary<softsignSlope>},
      {"Sqrt", unary<sqrtSlope>},
      {"Sub", sub},
      {"Sum", add},
      {"Tan", unary<tanSlope>},
      {"Tanh", unary<tanhSlope>},
      {"ThresholdedRelu", thresholdedRelu},
      {"Where", where},
  };
  return rules;
}

} // namespace sardonyx::importer
