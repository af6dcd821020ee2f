//===- Cubin.h - Images that the fake driver runs ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Machine code cannot be interpreted. What takes its place is an ELF file as a
// cubin is, for a compute capability, with PTX in its only section.
// test/Build/fake_ptxas.py writes it, too.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_CUBIN_H
#define SARDONYX_TOOLS_FAKECUDA_CUBIN_H

#include <string>

namespace sardonyx {
namespace fakecuda {

struct Cubin {
  /// 90 of 9.0, and whether it is for that very one ("sm_90a").
  int sm = 0;
  bool isOwn = false;
  /// PTX that ends in a zero, in the file.
  const char *text = nullptr;

  std::string architecture() const;
  /// Whether a device runs it: one of the same major version that is not older.
  bool runsOn(int device) const;
};

bool isElf(const char *image);
/// False for an ELF file that is none of these.
bool readCubin(const char *image, Cubin &cubin);
std::string makeCubin(const std::string &ptx, int sm, bool isOwn);

/// Why the device of this compute capability cannot run a text, as far as its
/// head tells, or an empty sentence. PTX for sm_90a runs on 9.0 only.
std::string checkText(const char *ptx, int sm);

} // namespace fakecuda
} // namespace sardonyx

#endif // SARDONYX_TOOLS_FAKECUDA_CUBIN_H
