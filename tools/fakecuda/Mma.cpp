//===- Mma.cpp - Products of matrices by a warp ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Fragments.h"
#include <algorithm>

namespace sardonyx::fakecuda {

// D [rows, 8] = A [rows, depth] B [depth, 8] + C [rows, 8]. Of each group of
// four lanes g, lane t holds elements of A's rows g and g + 8, of B's column g,
// and of C's columns 2 t and 2 t + 1.
namespace {
struct Shape {
  unsigned rows, depth;
};
} // namespace

static const Shape kShapes[] = {{16, 4},  {16, 8}, {16, 16},
                                {16, 32}, {8, 4},  {8, 16}};

// instruction.flag is the index of the shape; operands are D, A, B, C in turn.
template <class A, class B, class Sum>
static void runProduct(Warp &warp, const Instruction &instruction) {
  if (!warp.gather(~0u))
    return;
  if (warp.mask != ~0u)
    return warp.fault(unsigned(__builtin_ctz(warp.mask)),
                      "is run by a part of a warp");
  auto [rows, depth] = kShapes[instruction.flag];
  using T = typename Sum::Compute;
  T a[16][32], b[32][8], c[16][8];
  constexpr unsigned kEach = A::kEach; // Elements in a register.
  unsigned aCount = rows * depth / 32 / kEach, bCount = depth * 8 / 32 / kEach;
  unsigned cCount = rows * 8 / 32 / Sum::kEach, halves = rows / 8;
  const uint32_t *d = &warp.program.operands[instruction.first];
  const uint32_t *from = d + cCount;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < aCount; ++i)
      for (unsigned e = 0; e < kEach; ++e)
        a[g + 8 * (i % halves)][kEach * t + 4 * kEach * (i / halves) + e] =
            T(A::load(warp.get(from[i], lane), e));
    for (unsigned i = 0; i < bCount; ++i)
      for (unsigned e = 0; e < kEach; ++e)
        b[kEach * t + 4 * kEach * i + e][g] =
            T(B::load(warp.get(from[aCount + i], lane), e));
    for (unsigned i = 0; i < cCount; ++i)
      for (unsigned e = 0; e < Sum::kEach; ++e) {
        unsigned at = i * Sum::kEach + e;
        c[g + 8 * (at / 2)][2 * t + at % 2] =
            Sum::load(warp.get(from[aCount + bCount + i], lane), e);
      }
  }
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned column = 0; column < 8; ++column)
        c[row][column] += a[row][k] * b[k][column];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < cCount; ++i) {
      uint64_t bits = 0;
      for (unsigned e = 0; e < Sum::kEach; ++e) {
        unsigned at = i * Sum::kEach + e;
        bits |= Sum::store(c[g + 8 * (at / 2)][2 * t + at % 2])
                << (32 / Sum::kEach * e);
      }
      warp.row(d[i])[lane] = bits;
    }
  }
}

template <class Sum>
static Handler findInteger(const std::string &a, const std::string &b) {
  if (a == "s8")
    return b == "s8"   ? runProduct<SignedElement, SignedElement, Sum>
           : b == "u8" ? runProduct<SignedElement, UnsignedElement, Sum>
                       : nullptr;
  if (a == "u8")
    return b == "s8"   ? runProduct<UnsignedElement, SignedElement, Sum>
           : b == "u8" ? runProduct<UnsignedElement, UnsignedElement, Sum>
                       : nullptr;
  return nullptr;
}

static Handler findProduct(const std::string &a, const std::string &b,
                           const std::string &sum, bool saturates) {
  if (a == "f16" && b == "f16")
    return sum == "f32"   ? runProduct<HalfElement, HalfElement, FloatElement>
           : sum == "f16" ? runProduct<HalfElement, HalfElement, HalfElement>
                          : nullptr;
  if (a == "bf16" && b == "bf16" && sum == "f32")
    return runProduct<BrainElement, BrainElement, FloatElement>;
  if (a == "tf32" && b == "tf32" && sum == "f32")
    return runProduct<TensorFloatElement, TensorFloatElement, FloatElement>;
  if (a == "f64" && b == "f64" && sum == "f64")
    return runProduct<DoubleElement, DoubleElement, DoubleElement>;
  if (sum != "s32")
    return nullptr;
  return saturates ? findInteger<SaturatedWordElement>(a, b)
                   : findInteger<WordElement>(a, b);
}

// mma.sync.aligned.SHAPE.row.col{.satfinite}.D.A.B.C
bool decodeMma(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  bool saturates = parts.size() > 6 && parts[6] == "satfinite";
  if (decoder.base() != "mma" || !decoder.has("sync") || !decoder.has("row") ||
      !decoder.has("col") || parts.size() != 10 + saturates)
    return false;
  const std::string *types = &parts[6 + saturates];
  const std::string &shape = parts[3], &sum = types[0], &a = types[1],
                    &b = types[2];
  Instruction &instruction = decoder.instruction;
  static const char *const kNames[] = {"m16n8k4",  "m16n8k8", "m16n8k16",
                                       "m16n8k32", "m8n8k4",  "m8n8k16"};
  auto found = std::find(std::begin(kNames), std::end(kNames), shape);
  if (found == std::end(kNames) || types[3] != sum)
    return false;
  instruction.flag = uint8_t(found - std::begin(kNames));
  instruction.run = findProduct(a, b, sum, saturates);
  auto [rows, depth] = kShapes[instruction.flag];
  unsigned each = a == "f64" || a == "tf32" ? 1
                  : a == "s8" || a == "u8"  ? 4
                                            : 2;
  // The 8-row form of f16 has a layout of its own.
  bool fits = rows == 16 || (a == "f64") == (depth == 4);
  if (!instruction.run || !fits || (a == "f64" && rows == 16) ||
      depth < 4 * each || depth > 8 * each)
    return false;
  decoder.destinations(decoder.operand(0));
  for (unsigned i = 1; i < 4; ++i)
    decoder.sources(decoder.operand(i), a == "f64" ? "f64" : "b32");
  size_t count = decoder.program->operands.size() - instruction.first;
  size_t sums = rows * 8 / 32 / (sum == "f16" ? 2 : 1);
  if (count != 2 * sums + (rows + 8) * depth / 32 / each)
    return decoder.fail("it has another number of registers than it says");
  return true;
}

} // namespace sardonyx::fakecuda
