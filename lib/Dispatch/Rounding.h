//===- Rounding.h - Rounding by an addition ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ROUNDING_H
#define SARDONYX_LIB_DISPATCH_ROUNDING_H

namespace sardonyx {

/// 1.5 * 2^23: the last bit of an f32 of this size is 1, so that a number of
/// less than 2^22 that is added to it is rounded to a whole one, halves to
/// even.
inline constexpr float kNoFraction = 12582912;

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_ROUNDING_H
