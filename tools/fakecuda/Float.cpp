//===- Float.cpp - Arithmetic of floats -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

template <class T> static T add(T a, T b) { return a + b; }
template <class T> static T subtract(T a, T b) { return a - b; }
template <class T> static T multiply(T a, T b) { return a * b; }
template <class T> static T divide(T a, T b) { return a / b; }
template <class T> static T fused(T a, T b, T c) { return std::fma(a, b, c); }
template <class T> static T negate(T a) { return -a; }
template <class T> static T absolute(T a) { return std::fabs(a); }
template <class T> static T reciprocal(T a) { return 1 / a; }
template <class T> static T root(T a) { return std::sqrt(a); }
template <class T> static T reciprocalRoot(T a) { return 1 / std::sqrt(a); }
template <class T> static T power2(T a) { return std::exp2(a); }
template <class T> static T logarithm2(T a) { return std::log2(a); }
template <class T> static T sine(T a) { return std::sin(a); }
template <class T> static T cosine(T a) { return std::cos(a); }
template <class T> static T hyperbolicTangent(T a) { return std::tanh(a); }
template <class T> static T withSign(T a, T b) {
  return std::copysign(b, a); // The sign of the first, the rest of the second.
}

// -0 is less than +0; NaN loses, or wins with .NaN.
template <class T, bool Greatest, bool KeepsNaN> static T extreme(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (KeepsNaN || (std::isnan(a) && std::isnan(b)))
      return T(NAN);
    return std::isnan(a) ? b : a;
  }
  if (a == b)
    return std::signbit(a) == Greatest ? b : a;
  return (a < b) == Greatest ? b : a;
}

// Sums and products of floats rounded downwards, upwards or to zero: a double
// and its error say on which side of the nearest float the exact value lies.
enum class Rounding { Down, Up, Zero };

template <Rounding R> static float roundSum(double a, double b) {
  double sum = a + b;
  double part = sum - a;
  double error = (a - (sum - part)) + (b - part);
  auto nearest = float(sum);
  if (!std::isfinite(sum))
    return nearest;
  double rest = std::isinf(nearest) ? -double(nearest) : sum - nearest;
  if (rest == 0)
    rest = error;
  bool down = R == Rounding::Down || (R == Rounding::Zero && sum > 0);
  bool up = R == Rounding::Up || (R == Rounding::Zero && sum < 0);
  if (rest < 0 && down)
    return std::nextafter(nearest, -INFINITY);
  if (rest > 0 && up)
    return std::nextafter(nearest, INFINITY);
  return nearest;
}

template <Rounding R> static float addRounded(float a, float b) {
  return roundSum<R>(a, b);
}
template <Rounding R> static float subtractRounded(float a, float b) {
  return roundSum<R>(a, -double(b));
}
template <Rounding R> static float multiplyRounded(float a, float b) {
  double product = double(a) * b;
  return product == 0 ? float(product) : roundSum<R>(product, 0);
}
template <Rounding R> static float fusedRounded(float a, float b, float c) {
  return roundSum<R>(double(a) * b, c);
}

template <class Number, auto Apply> static Handler plain() {
  return Elementwise<Number, false, Apply>::run;
}
template <class Number, auto Apply> static Handler packed() {
  return Elementwise<Number, true, Apply>::run;
}

template <class Number, bool Packed>
static Handler findArithmetic(Decoder &decoder) {
  using T = typename Number::Compute;
  const std::string &name = decoder.base();
  bool nan = decoder.has("NaN");
  if (name == "min")
    return nan ? Elementwise<Number, Packed, extreme<T, false, true>>::run
               : Elementwise<Number, Packed, extreme<T, false, false>>::run;
  if (name == "max")
    return nan ? Elementwise<Number, Packed, extreme<T, true, true>>::run
               : Elementwise<Number, Packed, extreme<T, true, false>>::run;
  static const std::pair<const char *, Handler> kHandlers[] = {
      {"add", Elementwise<Number, Packed, add<T>>::run},
      {"sub", Elementwise<Number, Packed, subtract<T>>::run},
      {"mul", Elementwise<Number, Packed, multiply<T>>::run},
      {"fma", Elementwise<Number, Packed, fused<T>>::run},
      {"mad", Elementwise<Number, Packed, fused<T>>::run},
      {"neg", Elementwise<Number, Packed, negate<T>>::run},
      {"abs", Elementwise<Number, Packed, absolute<T>>::run},
      {"ex2", Elementwise<Number, Packed, power2<T>>::run},
      {"tanh", Elementwise<Number, Packed, hyperbolicTangent<T>>::run}};
  for (auto [known, handler] : kHandlers)
    if (name == known)
      return handler;
  return nullptr;
}

template <class Number> static Handler findFunction(const std::string &name) {
  using T = typename Number::Compute;
  static const std::pair<const char *, Handler> kHandlers[] = {
      {"div", plain<Number, divide<T>>()},
      {"rcp", plain<Number, reciprocal<T>>()},
      {"sqrt", plain<Number, root<T>>()},
      {"rsqrt", plain<Number, reciprocalRoot<T>>()},
      {"lg2", plain<Number, logarithm2<T>>()},
      {"sin", plain<Number, sine<T>>()},
      {"cos", plain<Number, cosine<T>>()},
      {"copysign", plain<Number, withSign<T>>()}};
  for (auto [known, handler] : kHandlers)
    if (name == known)
      return handler;
  return nullptr;
}

template <class Number, Rounding R>
static Handler findRounded(const std::string &name) {
  if (name == "add")
    return plain<Number, addRounded<R>>();
  if (name == "sub")
    return plain<Number, subtractRounded<R>>();
  if (name == "mul")
    return plain<Number, multiplyRounded<R>>();
  if (name == "fma")
    return plain<Number, fusedRounded<R>>();
  return nullptr;
}

template <class Number> static Handler findSingle(Decoder &decoder) {
  const std::string &name = decoder.base();
  if (decoder.has("rm"))
    return findRounded<Number, Rounding::Down>(name);
  if (decoder.has("rp"))
    return findRounded<Number, Rounding::Up>(name);
  if (decoder.has("rz"))
    return findRounded<Number, Rounding::Zero>(name);
  Handler run = findArithmetic<Number, false>(decoder);
  return run ? run : findFunction<Number>(name);
}

template <class Number> static Handler findHalf(Decoder &decoder, bool pair) {
  if (decoder.has("sat"))
    return pair ? findArithmetic<Saturated<Number>, true>(decoder)
                : findArithmetic<Saturated<Number>, false>(decoder);
  if (decoder.has("relu"))
    return pair ? findArithmetic<Rectified<Number>, true>(decoder)
                : findArithmetic<Rectified<Number>, false>(decoder);
  return pair ? findArithmetic<Number, true>(decoder)
              : findArithmetic<Number, false>(decoder);
}

bool decodeFloat(Decoder &decoder) {
  const std::string &type = decoder.type();
  bool flushes = decoder.has("ftz"), saturates = decoder.has("sat");
  Handler run = nullptr;
  if (!decoder.hasOnly({"rn", "rz", "rm", "rp", "approx", "full", "ftz",
                        "noftz", "sat", "relu", "NaN"}))
    return false;
  if (type == "f32")
    run = flushes     ? saturates ? findSingle<Saturated<F32Ftz>>(decoder)
                                  : findSingle<F32Ftz>(decoder)
          : saturates ? findSingle<Saturated<F32>>(decoder)
                      : findSingle<F32>(decoder);
  else if (type == "f64" && !decoder.has("rm") && !decoder.has("rp") &&
           !decoder.has("rz") && !saturates) {
    run = findArithmetic<F64, false>(decoder);
    run = run ? run : findFunction<F64>(decoder.base());
  } else if (type == "f16" || type == "f16x2")
    run = findHalf<F16>(decoder, type == "f16x2");
  else if (type == "bf16" || type == "bf16x2")
    run = findHalf<BF16>(decoder, type == "bf16x2");
  if (!run)
    return false;
  if (decoder.operandCount() > 4 ||
      ((decoder.base() == "min" || decoder.base() == "max") &&
       decoder.operandCount() > 3))
    return false;
  setOperands(decoder, run);
  return true;
}

} // namespace sardonyx::fakecuda
