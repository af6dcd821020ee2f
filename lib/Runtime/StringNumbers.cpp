//===- StringNumbers.cpp - Numbers as strings and back --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HalfConversions.h"
#include "RuntimeCall.h"
#include <charconv>
#include <cmath>

using namespace sardonyx::runtime;

/// Without white space at the ends, and without a plus sign before digits.
static std::string_view trim(std::string_view text) {
  auto isSpace = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-')
    text.remove_prefix(1);
  return text;
}

template <typename T> static void parse(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  auto out = call.tensor<T>();
  for (int64_t i = 0, e = x.count(); i < e; ++i) {
    std::string_view whole = call.strings().textOf(x.data[i]);
    std::string_view text = trim(whole);
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, out.data[i]);
    bool tooLarge = error == std::errc::result_out_of_range;
    if (tooLarge && std::is_floating_point_v<T> && rest == end) {
      // As strtod has it: infinite, or zero where it is too small.
      out.data[i] = static_cast<T>(strtod(std::string(text).c_str(), nullptr));
      continue;
    }
    if (error != std::errc() || rest != end)
      return call.fail("the string '" + std::string(whole) +
                       (tooLarge ? "' is too large a number"
                                 : "' is no number of the type asked for"));
  }
}

/// The shortest digits that give the number back, as Python writes it.
template <typename T> static std::string shortest(T value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char text[64];
  auto scientific = std::to_chars(text, text + sizeof(text), value,
                                  std::chars_format::scientific);
  std::string digits(text, scientific.ptr);
  int exponent = atoi(digits.c_str() + digits.find('e') + 1);
  if (exponent < -4 || exponent >= 16)
    return digits;
  auto fixed =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed);
  std::string result(text, fixed.ptr);
  return result.find('.') == result.npos ? result + ".0" : result;
}

/// The shortest digits that `narrow`, which rounds to a format of fewer bits,
/// does not tell from `value`, a number of that format.
static std::string shortestAs(double value, uint16_t (*narrow)(double)) {
  for (int precision = 0; std::isfinite(value) && precision < 9; ++precision) {
    char text[64];
    auto end = std::to_chars(text, text + sizeof(text), value,
                             std::chars_format::scientific, precision)
                   .ptr;
    double parsed = 0;
    std::from_chars(text, end, parsed);
    if (narrow(parsed) == narrow(value))
      return shortest(parsed);
  }
  return shortest(value);
}

/// x -> the digits of each.
template <typename T> static void format(RuntimeCall &call) {
  auto x = call.tensor<T>();
  auto out = call.tensor<int64_t>();
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    if constexpr (std::is_floating_point_v<T>)
      out.data[i] = call.strings().handleOf(shortest(x.data[i]));
    else
      out.data[i] = call.strings().handleOf(std::to_string(x.data[i]));
}

/// The same for f32 that are numbers of f16 or bf16.
template <uint16_t (*narrow)(double)> static void formatAs(RuntimeCall &call) {
  auto x = call.tensor<float>();
  auto out = call.tensor<int64_t>();
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    out.data[i] = call.strings().handleOf(shortestAs(x.data[i], narrow));
}

/// x -> six digits behind the point of each.
static void formatFixed(RuntimeCall &call) {
  auto x = call.tensor<float>();
  auto out = call.tensor<int64_t>();
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    out.data[i] = call.strings().handleOf(std::to_string(x.data[i]));
}

/// x, bytes of booleans -> "True" and "False".
static void formatBool(RuntimeCall &call) {
  auto x = call.tensor<int8_t>();
  auto out = call.tensor<int64_t>();
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    out.data[i] = call.strings().handleOf(x.data[i] ? "True" : "False");
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_parse_f32, parse<float>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_parse_f64, parse<double>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_parse_i64, parse<int64_t>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_parse_u64, parse<uint64_t>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_f32, format<float>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_f64, format<double>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_fixed, formatFixed)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_f16, formatAs<halfFromDouble>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_bf16, formatAs<bfloatFromDouble>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_i64, format<int64_t>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_u64, format<uint64_t>)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_of_bool, formatBool)
