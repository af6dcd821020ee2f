//===- Numerics.h - How exact results in f32 are ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NUMERICS_H
#define SARDONYX_NUMERICS_H

namespace sardonyx {

/// By which algorithms products and convolutions of f32 may go, by the rounding
/// errors that these have: of |y - r|, norms over a result, where r is computed
/// in f64 (docs/performance/HowItWorks.md).
enum class Numerics {
  /// One product and one addition in f32 after the other, on weights as they
  /// are.
  Exact,
  /// What keeps the error of a network within twice, and that of a layer within
  /// four times, that of `Exact`: Winograd's and Strassen's algorithms, weights
  /// in 21 or 24 bits where rounding takes little of them, products of sums of
  /// three bf16 in tile registers.
  F32,
  /// Also what loses more: convolutions by filters that are sums of two bf16,
  /// in tile registers, with an error of some 2e-6 a layer; Winograd's
  /// algorithm
  /// by tiles of 4x4 for fewer than 32 channels; weights in 21 bits where sums
  /// are short.
  Fast,
};

/// What products and convolutions of f32 may take in place of f32 where the
/// machine computes it faster. Sums stay f32, as does what is no operand of
/// them; models of f16 or bf16 are not affected. Processors take BF16 where
/// they multiply such numbers, and F16 for weights that come from memory for
/// few rows; they compute in f32 otherwise.
enum class Precision {
  F32,
  /// Operands are rounded to 11 bits, their range is that of f32.
  TF32,
  /// Operands are rounded to f16 (11 bits, up to 65504) or bf16 (8 bits, the
  /// range of f32), and are kept so in memory.
  F16,
  BF16,
  /// An operand is the sum of two bf16, together 16 bits with the range of f32;
  /// of the four products of their parts the one of both low ones is left out.
  BF16x3,
};

} // namespace sardonyx

#endif // SARDONYX_NUMERICS_H
