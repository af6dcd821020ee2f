//===- AccessPattern.h - How accesses walk memory along lanes ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ACCESSPATTERN_H
#define SARDONYX_LIB_TARGETS_CPU_ACCESSPATTERN_H

#include "Rows/ReductionGroup.h"

#include <optional>

namespace sardonyx::cpu {

/// How an access walks memory as the lane dimension advances by one.
enum class AccessPattern { Uniform, Contiguous, Strided, Irregular };

AccessPattern getAccessPattern(const RowAccess &access, int64_t lane);

/// The constant distance of lanes in memory when it is so small that loading
/// all elements between pays; else 0.
int64_t getInterleave(const RowAccess &access, int64_t lane);

/// The parallel dimension, of a few known positions, along which all that the
/// group stores is contiguous while it strides along `lane` by just as much:
/// vectors of all positions are interleaved and stored together. -1 without
/// one, or where loads are not contiguous along `lane`.
int64_t findInterleavedStores(ReductionGroup &group, int64_t lane);

/// The same of what the group loads, where stores are contiguous along `lane`:
/// what lies between is taken apart.
int64_t findInterleavedLoads(ReductionGroup &group, int64_t lane);

/// The row that is computed after the one at some point.
struct NextRow {
  /// The parallel dimension along which it is the next.
  unsigned rows;
  /// The memory that lies along `lane` in each row and isn't another row's,
  /// once for each place; which of it is written.
  llvm::SmallVector<std::pair<RowAccess, bool>> accesses;
  /// What that is, in bytes; -1: a size is open.
  int64_t bytes = 0;
};

/// None where rows don't lie along `lane`, or there is only one.
std::optional<NextRow> findNextRow(const ReductionGroup &group, int64_t lane);

/// The static coefficients of `lane` in the results of the access's map.
/// Fails when one is not linear.
bool getLaneCoefficients(const RowAccess &access, int64_t lane,
                         llvm::SmallVectorImpl<int64_t> &coefficients);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ACCESSPATTERN_H
