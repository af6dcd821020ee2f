//===- IndexBounds.h - Proofs that indices stay in bounds -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index arithmetic as polynomials over unknowns (sizes, loop counters,
// quotients), and a search for a proof that one is not negative. Upstream's
// value bounds are linear; here sizes multiply (collapsed dimensions, strides)
// and positions are taken apart by divisions.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_INDEXBOUNDS_H
#define SARDONYX_LIB_TARGETS_COMMON_INDEXBOUNDS_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// A sum of products of unknowns, which are numbered in the order of their
/// making. An overflow of a coefficient makes it invalid for good.
class Polynomial {
public:
  /// Sorted; with repetitions for powers; empty for the constant.
  using Product = std::vector<unsigned>;

  Polynomial(int64_t constant = 0) { add({}, constant); }
  static Polynomial ofUnknown(unsigned unknown);
  static Polynomial ofProduct(const Product &product, int64_t coefficient);

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator-(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;
  bool operator==(const Polynomial &other) const {
    return isValid && other.isValid && terms == other.terms;
  }

  std::optional<int64_t> getConstant() const;
  /// This divided by `divisor`, if that leaves nothing.
  std::optional<Polynomial> dividedBy(int64_t divisor) const;
  /// The unknown made last, or -1.
  int64_t getLastUnknown() const;
  Polynomial substitute(unsigned unknown, const Polynomial &value) const;
  /// A text that is the same for the same polynomial.
  std::string getKey() const;

  const std::map<Product, int64_t> &getTerms() const { return terms; }
  bool valid() const { return isValid; }

private:
  void add(const Product &product, int64_t coefficient);

  std::map<Product, int64_t> terms;
  bool isValid = true;
};

/// What is known about unknowns, and proofs from it.
class IndexBounds {
public:
  /// A number of which nothing but its sign may be known.
  Polynomial makeUnknown(bool isNonNegative);
  /// A counter from `lower` in steps of `step` below `upper`.
  Polynomial makeCounter(const Polynomial &lower, const Polynomial &upper,
                         const Polynomial &step);
  /// x / y rounded down.
  Polynomial divide(const Polynomial &x, const Polynomial &y);
  Polynomial minimum(const Polynomial &x, const Polynomial &y);
  Polynomial maximum(const Polynomial &x, const Polynomial &y);
  /// One of the two.
  Polynomial either(const Polynomial &x, const Polynomial &y);

  /// From here on x == 0, if that tells one of its unknowns.
  void assumeZero(const Polynomial &x);
  /// Facts in the order of a stack: x >= 0.
  void pushFact(const Polynomial &x) { facts.push_back(x); }
  size_t countFacts() const { return facts.size(); }
  void popFacts(size_t count) { facts.resize(count); }

  /// Whether a proof of x >= 0 was found.
  bool isNonNegative(const Polynomial &x);

private:
  /// scale * others * unknown <= limit, or >= limit.
  struct Limit {
    int64_t scale;
    Polynomial::Product others;
    Polynomial limit;
  };
  struct Unknown {
    bool isNonNegative;
    llvm::SmallVector<Limit, 1> upper, lower;
    /// The unknown is one of these.
    llvm::SmallVector<Polynomial, 2> choices;

    bool isLimited() const {
      return !upper.empty() || !lower.empty() || !choices.empty();
    }
  };

  Polynomial resolve(Polynomial x) const;
  bool prove(const Polynomial &x);
  bool proveWithoutFacts(const Polynomial &x);
  bool proveByReplacing(const Polynomial &x, unsigned replaced);
  std::optional<Polynomial> apply(const Polynomial &x, unsigned unknown,
                                  const Limit *upper, const Limit *lower);
  bool areNonNegative(const Polynomial::Product &product);

  std::vector<Unknown> unknowns;
  std::map<unsigned, Polynomial> known;
  std::map<std::string, Polynomial> made;
  std::vector<Polynomial> facts;
  int64_t budget = 0;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_INDEXBOUNDS_H
