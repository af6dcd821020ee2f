//===- IndexBounds.cpp - Proofs that indices stay in bounds ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/IndexBounds.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <functional>
#include <set>

using namespace sardonyx;

/// Steps of one proof's search.
static constexpr int64_t kBudget = 2000;

//===----------------------------------------------------------------------===//
// Polynomial
//===----------------------------------------------------------------------===//

void Polynomial::add(const Product &product, int64_t coefficient) {
  if (coefficient == 0)
    return;
  int64_t &sum = terms[product];
  if (__builtin_add_overflow(sum, coefficient, &sum))
    isValid = false;
  if (sum == 0)
    terms.erase(product);
}

Polynomial Polynomial::ofUnknown(unsigned unknown) {
  return ofProduct({unknown}, 1);
}

Polynomial Polynomial::ofProduct(const Product &product, int64_t coefficient) {
  Polynomial result;
  result.add(product, coefficient);
  return result;
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial sum = *this;
  sum.isValid &= other.isValid;
  for (const auto &[product, coefficient] : other.terms)
    sum.add(product, coefficient);
  return sum;
}

Polynomial Polynomial::operator-(const Polynomial &other) const {
  return *this + other * Polynomial(-1);
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  result.isValid = isValid && other.isValid;
  for (const auto &[x, a] : terms)
    for (const auto &[y, b] : other.terms) {
      Product product;
      std::merge(x.begin(), x.end(), y.begin(), y.end(),
                 std::back_inserter(product));
      int64_t coefficient;
      if (__builtin_mul_overflow(a, b, &coefficient))
        result.isValid = false;
      else
        result.add(product, coefficient);
    }
  return result;
}

std::optional<int64_t> Polynomial::getConstant() const {
  if (!isValid || terms.size() > 1)
    return std::nullopt;
  if (terms.empty())
    return 0;
  if (!terms.begin()->first.empty())
    return std::nullopt;
  return terms.begin()->second;
}

std::optional<Polynomial> Polynomial::dividedBy(int64_t divisor) const {
  Polynomial result;
  result.isValid = isValid;
  for (const auto &[product, coefficient] : terms) {
    if (coefficient % divisor != 0)
      return std::nullopt;
    result.add(product, coefficient / divisor);
  }
  return result;
}

int64_t Polynomial::getLastUnknown() const {
  int64_t last = -1;
  for (const auto &[product, coefficient] : terms)
    if (!product.empty())
      last = std::max<int64_t>(last, product.back());
  return last;
}

Polynomial Polynomial::substitute(unsigned unknown,
                                  const Polynomial &value) const {
  Polynomial result;
  result.isValid = isValid;
  for (const auto &[product, coefficient] : terms) {
    Product rest;
    Polynomial term(1);
    for (unsigned factor : product) {
      if (factor == unknown)
        term = term * value;
      else
        rest.push_back(factor);
    }
    result = result + term * ofProduct(rest, coefficient);
  }
  return result;
}

std::string Polynomial::getKey() const {
  std::string key;
  for (const auto &[product, coefficient] : terms) {
    key += std::to_string(coefficient);
    for (unsigned factor : product)
      key += "*" + std::to_string(factor);
    key += "+";
  }
  return isValid ? key : "?";
}

//===----------------------------------------------------------------------===//
// Unknowns
//===----------------------------------------------------------------------===//

Polynomial IndexBounds::makeUnknown(bool isNonNegative) {
  unknowns.push_back({isNonNegative, {}, {}, {}});
  return Polynomial::ofUnknown(unknowns.size() - 1);
}

Polynomial IndexBounds::makeCounter(const Polynomial &lower,
                                    const Polynomial &upper,
                                    const Polynomial &step) {
  std::optional<int64_t> by = step.getConstant();
  if (!by || *by < 1) {
    Polynomial counter = makeUnknown(isNonNegative(lower));
    unknowns.back().lower.push_back({1, {}, lower});
    unknowns.back().upper.push_back({1, {}, upper - 1});
    return counter;
  }
  // How many steps were made before. In the loop, the counter is below the end;
  // by a whole step if steps lead there.
  Polynomial length = upper - lower;
  Polynomial steps = makeUnknown(true);
  Unknown &unknown = unknowns.back();
  if (auto count = length.dividedBy(*by))
    unknown.upper.push_back({1, {}, *count - 1});
  else if (auto constant = length.getConstant())
    unknown.upper.push_back({1, {}, (*constant - 1) / *by});
  else
    unknown.upper.push_back({*by, {}, length - 1});
  return lower + steps * *by;
}

Polynomial IndexBounds::divide(const Polynomial &x, const Polynomial &y) {
  std::optional<int64_t> divisor = y.getConstant();
  if (divisor && *divisor < 1)
    return makeUnknown(false);
  if (divisor) {
    if (auto exact = x.dividedBy(*divisor))
      return *exact;
    if (auto constant = x.getConstant())
      return (*constant - (*constant < 0 ? *divisor - 1 : 0)) / *divisor;
  } else if (y.getTerms().size() != 1 || y.getTerms().begin()->second < 1) {
    return makeUnknown(isNonNegative(x) && isNonNegative(y));
  }
  auto [known, isNew] =
      made.try_emplace(x.getKey() + "/" + y.getKey(), Polynomial());
  if (!isNew)
    return known->second;
  // y * q <= x and y * q >= x - y + 1
  const auto &[others, scale] = *y.getTerms().begin();
  Polynomial quotient = makeUnknown(isNonNegative(x));
  unknowns.back().upper.push_back({scale, others, x});
  if (divisor)
    unknowns.back().lower.push_back({scale, others, x - y + 1});
  return known->second = quotient;
}

Polynomial IndexBounds::minimum(const Polynomial &x, const Polynomial &y) {
  auto a = x.getConstant(), b = y.getConstant();
  if (a && b)
    return std::min(*a, *b);
  Polynomial least = either(x, y);
  Unknown &unknown = unknowns[least.getLastUnknown()];
  if (unknown.upper.empty())
    unknown.upper = {{1, {}, x}, {1, {}, y}};
  return least;
}

Polynomial IndexBounds::maximum(const Polynomial &x, const Polynomial &y) {
  auto a = x.getConstant(), b = y.getConstant();
  if (a && b)
    return std::max(*a, *b);
  bool isNonNegative = this->isNonNegative(x) || this->isNonNegative(y);
  Polynomial most = makeUnknown(isNonNegative);
  unknowns.back().choices = {x, y};
  unknowns.back().lower = {{1, {}, x}, {1, {}, y}};
  return most;
}

Polynomial IndexBounds::either(const Polynomial &x, const Polynomial &y) {
  Polynomial one = makeUnknown(isNonNegative(x) && isNonNegative(y));
  unknowns.back().choices = {x, y};
  return one;
}

void IndexBounds::assumeZero(const Polynomial &given) {
  Polynomial x = resolve(given);
  // The youngest unknown that stands alone.
  int64_t best = -1;
  for (const auto &[product, coefficient] : x.getTerms()) {
    if (product.size() != 1 || (coefficient != 1 && coefficient != -1))
      continue;
    unsigned unknown = product.front();
    bool alone = llvm::none_of(x.getTerms(), [&](const auto &term) {
      return term.first.size() > 1 && llvm::is_contained(term.first, unknown);
    });
    if (alone)
      best = std::max<int64_t>(best, unknown);
  }
  if (best < 0)
    return;
  unsigned unknown = best;
  int64_t sign = x.getTerms().at({unknown});
  Polynomial rest = x - Polynomial::ofProduct({unknown}, sign);
  known[unknown] = rest * Polynomial(-sign);
}

Polynomial IndexBounds::resolve(Polynomial x) const {
  // A replacement is made of older unknowns, or of some that are themselves
  // replaced; each round replaces the youngest.
  for (auto it = known.rbegin(); it != known.rend(); ++it)
    x = x.substitute(it->first, it->second);
  return x;
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

bool IndexBounds::areNonNegative(const Polynomial::Product &product) {
  return llvm::all_of(
      product, [&](unsigned factor) { return unknowns[factor].isNonNegative; });
}

/// `x` with each product that has `unknown` replaced by something not larger.
std::optional<Polynomial> IndexBounds::apply(const Polynomial &x,
                                             unsigned unknown,
                                             const Limit *upper,
                                             const Limit *lower) {
  Polynomial result;
  for (const auto &[product, coefficient] : x.getTerms()) {
    auto at = llvm::find(product, unknown);
    if (at == product.end()) {
      result = result + Polynomial::ofProduct(product, coefficient);
      continue;
    }
    Polynomial::Product rest = product;
    rest.erase(rest.begin() + (at - product.begin()));
    const Limit *limit = coefficient < 0 ? upper : lower;
    if (!limit) {
      // Without a lower limit, what is not negative is at least 0.
      if (coefficient < 0 || !areNonNegative(product))
        return std::nullopt;
      continue;
    }
    if (coefficient % limit->scale != 0)
      return std::nullopt;
    for (unsigned other : limit->others) {
      auto factor = llvm::find(rest, other);
      if (factor == rest.end())
        return std::nullopt;
      rest.erase(factor);
    }
    if (!areNonNegative(rest))
      return std::nullopt;
    result = result + limit->limit * Polynomial::ofProduct(
                                         rest, coefficient / limit->scale);
  }
  return result;
}

bool IndexBounds::proveWithoutFacts(const Polynomial &x) {
  if (!x.valid() || --budget < 0)
    return false;
  if (llvm::all_of(x.getTerms(), [&](const auto &term) {
        return term.second > 0 && areNonNegative(term.first);
      }))
    return true;
  // Limits of an unknown are made of older ones, so the youngest goes first.
  std::set<unsigned, std::greater<unsigned>> limited;
  for (const auto &[product, coefficient] : x.getTerms())
    for (unsigned factor : product)
      if (unknowns[factor].isLimited())
        limited.insert(factor);
  return llvm::any_of(
      limited, [&](unsigned unknown) { return proveByReplacing(x, unknown); });
}

bool IndexBounds::proveByReplacing(const Polynomial &x, unsigned replaced) {
  const Unknown &unknown = unknowns[replaced];
  llvm::SmallVector<const Limit *, 4> uppers{nullptr}, lowers{nullptr};
  for (const Limit &limit : unknown.upper)
    uppers.push_back(&limit);
  for (const Limit &limit : unknown.lower)
    lowers.push_back(&limit);
  for (const Limit *upper : uppers)
    for (const Limit *lower : lowers)
      if (auto smaller = apply(x, replaced, upper, lower))
        if (proveWithoutFacts(*smaller))
          return true;
  return !unknown.choices.empty() &&
         llvm::all_of(unknown.choices, [&](const Polynomial &choice) {
           return proveWithoutFacts(x.substitute(replaced, choice));
         });
}

bool IndexBounds::prove(const Polynomial &x) {
  budget = kBudget;
  if (proveWithoutFacts(x))
    return true;
  for (const Polynomial &fact : llvm::reverse(facts)) {
    budget = kBudget;
    if (proveWithoutFacts(x - resolve(fact)))
      return true;
  }
  return false;
}

bool IndexBounds::isNonNegative(const Polynomial &x) {
  return prove(resolve(x));
}
