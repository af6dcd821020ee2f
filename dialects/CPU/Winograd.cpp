//===- Winograd.cpp - Winograd's algorithm for 3x3 ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/Winograd.h"

#include <cassert>

using namespace sardonyx;
using cpu::Winograd;

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

// With a stride of 2: F(4, 2) of even inputs, by the values at 0, +-C, D and
// infinity, and odd inputs as they are. Of such numbers these have the least
// rounding errors, 1.15 times those of a direct sum.
static constexpr double C = 3. / 4, C2 = C * C, D = 2;
static constexpr double C2D = C2 * D, CD = C * D;
static constexpr double FC = 2 * C2 * (C - D), FMinusC = -2 * C2 * (C + D),
                        FD = D * (D * D - C2);

static constexpr double kInputOf4By2[] = {
    C2D, 0, -C2, 0, -D,     0, 1,  0, 0, //
    0,   0, -CD, 0, C - D,  0, 1,  0, 0, //
    0,   0, CD,  0, -C - D, 0, 1,  0, 0, //
    0,   0, -C2, 0, 0,      0, 1,  0, 0, //
    0,   0, C2D, 0, -C2,    0, -D, 0, 1, //
    0,   1, 0,   0, 0,      0, 0,  0, 0, //
    0,   0, 0,   1, 0,      0, 0,  0, 0, //
    0,   0, 0,   0, 0,      1, 0,  0, 0, //
    0,   0, 0,   0, 0,      0, 0,  1, 0};
static constexpr double kFilterOf4By2[] = {1 / C2D,     0, 0,            //
                                           1 / FC,      0, C / FC,       //
                                           1 / FMinusC, 0, -C / FMinusC, //
                                           1 / FD,      0, D / FD,       //
                                           0,           0, 1,            //
                                           0,           1, 0};
static constexpr double kOutputOf4By2[] = {
    1, 1,     1,      1,         0, 1, 0, 0, 0, //
    0, C,     -C,     D,         0, 0, 1, 0, 0, //
    0, C2,    C2,     D *D,      0, 0, 0, 1, 0, //
    0, C *C2, -C *C2, D * D * D, 1, 0, 0, 0, 1};

// F(2, 2), by the values at 0, 1 and infinity, and odd inputs.
static constexpr double kInputOf2By2[] = {1, 0, -1, 0, 0, //
                                          0, 0, 1,  0, 0, //
                                          0, 0, -1, 0, 1, //
                                          0, 1, 0,  0, 0, //
                                          0, 0, 0,  1, 0};
static constexpr double kFilterOf2By2[] = {1, 0, 0, //
                                           1, 0, 1, //
                                           0, 0, 1, //
                                           0, 1, 0};
static constexpr double kOutputOf2By2[] = {1, 1, 0, 1, 0, //
                                           0, 1, 1, 0, 1};

const Winograd &cpu::getWinograd(int64_t outputs, int64_t stride) {
  static const Winograd of2 = {2, 1, kInputOf2, kFilterOf2, kOutputOf2};
  static const Winograd of4 = {4, 1, kInputOf4, kFilterOf4, kOutputOf4};
  static const Winograd of2By2 = {2, 2, kInputOf2By2, kFilterOf2By2,
                                  kOutputOf2By2};
  static const Winograd of4By2 = {4, 2, kInputOf4By2, kFilterOf4By2,
                                  kOutputOf4By2};
  assert((outputs == 2 || outputs == 4) && (stride == 1 || stride == 2) &&
         "the verifier lets no other pass");
  if (stride == 2)
    return outputs == 2 ? of2By2 : of4By2;
  return outputs == 2 ? of2 : of4;
}

void cpu::transformFilter(const Winograd &algorithm,
                          llvm::ArrayRef<float> filter,
                          llvm::MutableArrayRef<float> values) {
  constexpr int64_t kSide = 3;
  int64_t side = algorithm.numbers();
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
