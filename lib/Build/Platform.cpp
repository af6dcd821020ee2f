//===- Platform.cpp - Machines that models are built for -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Platform.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace sardonyx;

static constexpr Platform kPlatforms[] = {
    {"x86_64-linux-gnu", llvm::ELF::EM_X86_64, "/lib64/ld-linux-x86-64.so.2",
     true},
    {"aarch64-linux-gnu", llvm::ELF::EM_AARCH64, "/lib/ld-linux-aarch64.so.1",
     false},
    {kWebTriple, llvm::ELF::EM_NONE, "", false},
};

static llvm::Triple thisTriple() {
  return llvm::Triple(llvm::sys::getProcessTriple());
}

bool Platform::isThis() const {
  return llvm::Triple(name).getArch() == thisTriple().getArch();
}

Expected<const Platform *> sardonyx::platformOf(const std::string &triple) {
  llvm::Triple wanted = triple.empty()
                            ? thisTriple()
                            : llvm::Triple(llvm::Triple::normalize(triple));
  std::string known;
  for (const Platform &platform : kPlatforms) {
    if (wanted.getArch() == llvm::Triple(platform.name).getArch() &&
        (wanted.isOSLinux() || platform.isWeb()))
      return &platform;
    known += (known.empty() ? "" : ", ") + std::string(platform.name);
  }
  return Error(ErrorKind::Unsupported, "models cannot be built for '" +
                                           wanted.str() + "'; there are " +
                                           known);
}
