//===- UnknownName.h - Names that a model does not have ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_UNKNOWNNAME_H
#define SARDONYX_UNKNOWNNAME_H

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sardonyx {

namespace detail {

/// Names longer than this are not compared, which takes time by their product.
inline constexpr size_t kLongestCompared = 256;

inline std::string inSmallLetters(std::string text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'Z')
      c += 'a' - 'A';
  return text;
}

/// Letters to change, leave out, add, or swap with the next one, each once, to
/// make `y` of `x`.
inline size_t distance(const std::string &x, const std::string &y) {
  std::vector<size_t> before(y.size() + 1), last(y.size() + 1),
      row(y.size() + 1);
  for (size_t j = 0; j <= y.size(); ++j)
    last[j] = j;
  for (size_t i = 1; i <= x.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= y.size(); ++j) {
      row[j] = std::min(
          {last[j] + 1, row[j - 1] + 1, last[j - 1] + (x[i - 1] != y[j - 1])});
      if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[y.size()];
}

} // namespace detail

/// The one of `known` that a person who wrote `name` may have meant: with few
/// letters changed, left out, added or swapped, or longer or shorter by a part.
/// Empty where none is near.
inline std::string nearestName(const std::string &name,
                               const std::vector<std::string> &known) {
  const std::string wanted = detail::inSmallLetters(name);
  std::string nearest;
  if (wanted.empty() || wanted.size() > detail::kLongestCompared)
    return nearest;
  size_t least = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string &candidate : known) {
    if (candidate.empty() || candidate.size() > detail::kLongestCompared)
      continue;
    size_t far = detail::distance(wanted, detail::inSmallLetters(candidate));
    // Nothing of the name is left.
    if (far < least && far < std::max(wanted.size(), candidate.size())) {
      least = far;
      nearest = candidate;
    }
  }
  if (!nearest.empty() || wanted.size() < 3)
    return nearest;
  for (const std::string &candidate : known) {
    const std::string small = detail::inSmallLetters(candidate);
    const bool isPart =
        small.find(wanted) != std::string::npos ||
        (small.size() >= 3 && wanted.find(small) != std::string::npos);
    if (isPart && (nearest.empty() || candidate.size() < nearest.size()))
      nearest = candidate;
  }
  return nearest;
}

/// "a, b, c and 3 more": as many items as a line holds.
inline std::string listOf(const std::vector<std::string> &items) {
  constexpr size_t kMax = 10;
  std::string text;
  const size_t shown = items.size() > kMax ? kMax - 1 : items.size();
  for (size_t i = 0; i < shown; ++i)
    text += (i ? ", " : "") + items[i];
  if (shown < items.size())
    text += " and " + std::to_string(items.size() - shown) + " more";
  return text;
}

/// "the model has no input 'ids'; it has input_ids, mask (did you mean
/// input_ids?)" for the kind "input".
inline std::string unknownName(const std::string &kind, const std::string &name,
                               const std::vector<std::string> &known) {
  const std::string nearest = nearestName(name, known);
  return "the model has no " + kind + " '" + name + "'; it has " +
         (known.empty() ? "none" : listOf(known)) +
         (nearest.empty() ? "" : " (did you mean " + nearest + "?)");
}

} // namespace sardonyx

#endif // SARDONYX_UNKNOWNNAME_H
