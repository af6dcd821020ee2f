//===- Matrix.cpp - Loads and stores of matrices by a warp ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

namespace sardonyx::fakecuda {

// A matrix has 8 rows of 8 elements of 16 bits. Lane 8 j + r holds the address
// of row r of matrix j; afterwards lane l holds two elements of row l / 4.
constexpr unsigned kRowBytes = 16;

template <bool Store, bool Transposed>
static void runMatrix(Warp &warp, const Instruction &instruction) {
  if (!warp.gather(~0u))
    return;
  const uint32_t *registers = &warp.program.operands[instruction.first];
  for (unsigned j = 0; j < instruction.count; ++j) {
    uint16_t *rows[8];
    for (unsigned r = 0; r < 8; ++r) {
      unsigned lane = 8 * j + r;
      if (!(warp.mask >> lane & 1))
        return warp.fault(unsigned(__builtin_ctz(warp.mask)),
                          "is run by a part of a warp");
      uint64_t address =
          warp.get(instruction.a, lane) + uint64_t(instruction.offset);
      if (Space(instruction.flag) == Space::Shared)
        address = uint32_t(address);
      else if (Warp::find(Space::Generic, address) != Space::Shared)
        return warp.fault(lane, "has an address outside of shared memory");
      char *memory =
          warp.access(Space::Shared, lane, address, kRowBytes, Store);
      if (!memory || !warp.block.touch(warp, lane, uint32_t(address), kRowBytes,
                                       Store ? Touch::Write : Touch::Read))
        return;
      rows[r] = reinterpret_cast<uint16_t *>(memory);
    }
    uint64_t *values = warp.row(registers[j]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4, column = 2 * (lane % 4);
      uint16_t *first = Transposed ? &rows[column][row] : &rows[row][column];
      uint16_t *second =
          Transposed ? &rows[column + 1][row] : &rows[row][column + 1];
      if constexpr (Store) {
        *first = uint16_t(values[lane]);
        *second = uint16_t(values[lane] >> 16);
      } else {
        values[lane] = *first | uint32_t(*second) << 16;
      }
    }
  }
}

bool decodeMatrix(Decoder &decoder) {
  bool stores = decoder.base() == "stmatrix";
  if ((decoder.base() != "ldmatrix" && !stores) || !decoder.has("m8n8") ||
      decoder.type() != "b16")
    return false;
  Instruction &instruction = decoder.instruction;
  bool transposed = decoder.has("trans");
  instruction.run =
      stores       ? transposed ? runMatrix<true, true> : runMatrix<true, false>
      : transposed ? runMatrix<false, true>
                   : runMatrix<false, false>;
  bool isShared = decoder.has("shared") || decoder.has("shared::cta");
  instruction.flag = uint8_t(isShared ? Space::Shared : Space::Generic);
  const std::string &registers = decoder.operand(stores ? 1 : 0);
  if (stores)
    decoder.sources(registers, "b32");
  else
    decoder.destinations(registers);
  size_t count = decoder.program->operands.size() - instruction.first;
  if (count != (decoder.has("x4") ? 4 : decoder.has("x2") ? 2 : 1))
    return decoder.fail("it has another number of registers than it says");
  decoder.address(decoder.operand(stores ? 0 : 1), instruction.a,
                  instruction.offset);
  return true;
}

} // namespace sardonyx::fakecuda
