//===- TargetInfo.h - What code is tuned for --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGET_TARGETINFO_H
#define SARDONYX_TARGET_TARGETINFO_H

#include <string>

namespace sardonyx {

/// All that phases know about a processor. Passes get its parts as options.
struct TargetInfo {
  /// Width of the vector registers in bits: 512 (all of AVX-512), 256 or 128.
  unsigned vectorBits = 512;
  /// How many vector registers there are: what tiles of accumulators may fill.
  /// 0 where their width tells, as on x86.
  unsigned vectorRegisters = 0;
  /// Size of a core's L2 cache in KiB.
  unsigned l2KiB = 1024;
  /// How f32 are multiplied: by "parts" (tdpbf16ps on sums of three bf16) where
  /// there is enough to do, or by "fused" multiply-adds.
  std::string floatProduct = "fused";
  /// How 8-bit integers are multiplied: by "tiles" (tdpbusd, and vpdpbusd),
  /// "quads" (vpdpbusd on vectors of all its bits), "pairs" (vpmaddwd) or
  /// "generic" code.
  std::string byteProduct = "generic";
  /// How bf16 are: by "tiles" (tdpbf16ps, and vdpbf16ps), "pairs" (vdpbf16ps)
  /// or "generic" code.
  std::string bf16Product = "generic";
  /// Whether an instruction puts the bytes of a register in any order, which
  /// numbers of three bytes need (x86: SSSE3).
  bool shufflesBytes = true;
  /// Whether a core reads its L3 cache so fast that numbers there come sooner
  /// in four bytes than vectors of 256 bits unpack three.
  bool readsL3Fast = false;

  /// The same without tile registers.
  TargetInfo withoutTiles() const {
    TargetInfo result = *this;
    result.floatProduct = "fused";
    if (byteProduct == "tiles")
      result.byteProduct = "quads";
    if (bf16Product == "tiles")
      result.bf16Product = "pairs";
    return result;
  }
};

} // namespace sardonyx

#endif // SARDONYX_TARGET_TARGETINFO_H
