//===- Winograd.cpp - Winograd's algorithm for 3x3 ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/Winograd.h"

#include <cassert>

using namespace sardonyx;
using sdx::Winograd;

// F(4 x 4) multiplies polynomials by their values at 0, +-A, +-B and infinity
// (Toom and Cook). Any two numbers do; these two make the rounding
// errors less than half of those of the customary 1 and 2, and every entry of
// the first and the last matrix is exact in f32. (Alam et al., "Winograd
// Convolution for Deep Neural Networks: Efficient Point Selection", 2022, on
// such a choice.)
static constexpr double A = 5. / 8, A2 = A * A, A3 = A * A2;
static constexpr double B = 3. / 2, B2 = B * B, B3 = B * B2;
static constexpr double AB2 = A * B2, A2B = A2 * B, A2B2 = A2 * B2;
static constexpr double S = A2 + B2;
static constexpr double FA = 2 * A2 * (A2 - B2), FB = 2 * B2 * (B2 - A2);

static constexpr double kInputOf4[] = {A2B2, 0,    -S,  0,  1, 0, //
                                       0,    -AB2, -B2, A,  1, 0, //
                                       0,    AB2,  -B2, -A, 1, 0, //
                                       0,    -A2B, -A2, B,  1, 0, //
                                       0,    A2B,  -A2, -B, 1, 0, //
                                       0,    A2B2, 0,   -S, 0, 1};
static constexpr double kFilterOf4[] = {1 / A2B2, 0,       0,       //
                                        1 / FA,   A / FA,  A2 / FA, //
                                        1 / FA,   -A / FA, A2 / FA, //
                                        1 / FB,   B / FB,  B2 / FB, //
                                        1 / FB,   -B / FB, B2 / FB, //
                                        0,        0,       1};
static constexpr double kOutputOf4[] = {1, 1,  1,   1,  1,   0, //
                                        0, A,  -A,  B,  -B,  0, //
                                        0, A2, A2,  B2, B2,  0, //
                                        0, A3, -A3, B3, -B3, 1};

// F(2 x 2), by the values at 0, +-1 and infinity.
static constexpr double kInputOf2[] = {1, 0,  -1, 0, //
                                       0, 1,  1,  0, //
                                       0, -1, 1,  0, //
                                       0, -1, 0,  1};
static constexpr double kFilterOf2[] = {1,   0,    0,   //
                                        0.5, 0.5,  0.5, //
                                        0.5, -0.5, 0.5, //
                                        0,   0,    1};
static constexpr double kOutputOf2[] = {1, 1, 1,  0, //
                                        0, 1, -1, 1};

const Winograd &sdx::getWinograd(int64_t outputs) {
  static const Winograd of2 = {2, kInputOf2, kFilterOf2, kOutputOf2};
  static const Winograd of4 = {4, kInputOf4, kFilterOf4, kOutputOf4};
  assert((outputs == 2 || outputs == 4) && "the verifier lets no other pass");
  return outputs == 2 ? of2 : of4;
}

void sdx::transformFilter(const Winograd &algorithm,
                          llvm::ArrayRef<float> filter,
                          llvm::MutableArrayRef<float> values) {
  constexpr int64_t kSide = 3;
  int64_t side = algorithm.inputs();
  assert(filter.size() == kSide * kSide &&
         int64_t(values.size()) == algorithm.taps() && "a filter of 3x3");
  auto row = [&](int64_t r) {
    return algorithm.filter.slice(r * kSide, kSide);
  };
  for (int64_t r = 0; r < side; ++r) {
    double half[kSide] = {};
    for (int64_t i = 0; i < kSide; ++i)
      for (int64_t j = 0; j < kSide; ++j)
        half[j] += row(r)[i] * filter[i * kSide + j];
    for (int64_t c = 0; c < side; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < kSide; ++j)
        sum += row(c)[j] * half[j];
      values[r * side + c] = sum;
    }
  }
}
