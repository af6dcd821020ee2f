//===- Program.h - A kernel that is ready to run -------------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_PROGRAM_H
#define SARDONYX_TOOLS_FAKECUDA_PROGRAM_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sardonyx::fakecuda {

class Warp;
struct Instruction;
using Handler = void (*)(Warp &, const Instruction &);

constexpr unsigned kLanes = 32;
constexpr uint32_t kNone = ~0u;

/// Generic addresses of the spaces that aren't device memory begin here. Host
/// addresses are far below.
constexpr uint64_t kSharedWindow = uint64_t(1) << 56;
constexpr uint64_t kLocalWindow = uint64_t(2) << 56;
constexpr uint64_t kParamWindow = uint64_t(3) << 56;

enum class Space : uint8_t { Generic, Global, Shared, Local, Param };

/// One instruction. Registers, constants and special registers alike are rows
/// of 32 values of 64 bits, one a lane; an instruction reads the low bits that
/// its type has. Predicates are masks of 32 bits.
struct Instruction {
  Handler run = nullptr;
  uint32_t guard = kNone; ///< The predicate under which it runs.
  bool guardNegated = false;
  uint8_t bytes = 0; ///< Of an element in memory.
  uint8_t flag = 0;  ///< What it means is told where it is set.
  uint32_t line = 0; ///< In the text of the PTX.
  uint32_t d = 0, a = 0, b = 0, c = 0;
  uint32_t p = kNone, q = kNone; ///< Predicates.
  uint32_t first = 0, count = 0; ///< A range of Program::operands.
  uint32_t target = 0;           ///< Of a branch.
  uint32_t used = 0; ///< Bytes that are read into registers that count.
  int64_t offset = 0;
  uint32_t opcode = 0; ///< In Program::opcodes.
};

enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  LaneMaskEq,
  LaneMaskLe,
  LaneMaskLt,
  LaneMaskGe,
  LaneMaskGt,
  DynamicShared,
  TotalShared,
  ClusterId,
  NClusterId,
  ClusterRank,
  ClusterSize,
  Zero,
  One
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint32_t> operands;
  std::vector<std::string> opcodes;
  std::vector<std::pair<uint32_t, uint64_t>> constants; ///< Row and value.
  std::vector<std::pair<uint32_t, Special>> specials;
  uint32_t rows = 1; ///< Row 0 takes what nobody reads.
  uint32_t predicates = 1;
  size_t localBytes = 0;
  size_t staticSharedBytes = 0;
  /// Accesses of shared memory are watched in units of so many bytes.
  unsigned granule = 4;
  /// Mbarriers order accesses in ways that aren't followed: then false.
  bool checksRaces = true;
};

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_PROGRAM_H
