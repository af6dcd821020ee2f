//===- Platform.h - Machines that models are built for ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_PLATFORM_H
#define SARDONYX_LIB_BUILD_PLATFORM_H

#include "sardonyx/Model/Error.h"
#include "llvm/BinaryFormat/ELF.h"
#include <cstdint>
#include <string>

namespace sardonyx {

/// What files for a kind of machine have in common.
struct Platform {
  /// Debian's name, which is also the folder of the runtime.
  const char *name;
  /// 0: WebAssembly, which has objects of its own.
  uint16_t elfMachine;
  /// What loads dynamic programs.
  const char *loader;
  /// A runtime function that takes utf8proc can be linked.
  bool hasUnicode;

  /// Whether it is the machine that this is.
  bool isThis() const;
  bool isWeb() const { return elfMachine == llvm::ELF::EM_NONE; }
};

/// The triple of WebAssembly.
inline constexpr char kWebTriple[] = "wasm32-wasi";

/// The platform of a triple, this machine's for an empty one.
Expected<const Platform *> platformOf(const std::string &triple);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_PLATFORM_H
