//===- Platform.cpp - Machines that models are built for ------------------===//
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

/// Whether the files of a platform run where a triple of the same machine says
/// to: on Linux with glibc, in engines of WebAssembly with a module of
/// JavaScript.
static bool runsOn(const Platform &platform, const llvm::Triple &triple) {
  using llvm::Triple;
  const auto environment = triple.getEnvironment();
  if (platform.isWeb())
    return environment == Triple::UnknownEnvironment &&
           (triple.getOS() == Triple::UnknownOS || triple.isOSWASI());
  return triple.isOSLinux() && (environment == Triple::GNU ||
                                environment == Triple::UnknownEnvironment);
}

Expected<const Platform *> sardonyx::platformOf(const std::string &triple) {
  llvm::Triple wanted = triple.empty()
                            ? thisTriple()
                            : llvm::Triple(llvm::Triple::normalize(triple));
  std::string known;
  bool isOtherSystem = false;
  for (const Platform &platform : kPlatforms) {
    const llvm::Triple triple(platform.name);
    const bool isMachine = wanted.getArch() == triple.getArch();
    if (isMachine && runsOn(platform, wanted))
      return &platform;
    isOtherSystem |= isMachine && wanted.isOSLinux();
    known += (known.empty() ? "" : ", ") + std::string(platform.name);
  }
  return Error(ErrorKind::Unsupported,
               "models cannot be built for '" + wanted.str() + "'" +
                   (isOtherSystem ? ", whose C library is not glibc (a static "
                                    "program needs none)"
                                  : "") +
                   "; there are " + known);
}
