//===- Link.h - Objects as a file to use ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_LINK_H
#define SARDONYX_LIB_BUILD_LINK_H

#include "Platform.h"
#include "sardonyx/Build/Build.h"
#include "sardonyx/Model/Error.h"
#include <string>
#include <vector>

namespace sardonyx {

struct LinkJob {
  const Platform *platform = nullptr;
  ArtifactForm form = ArtifactForm::SharedLibrary;
  bool isStatic = false;
  /// The file starts no thread, and does not know how.
  bool hasOneThread = false;
  /// Objects, those that count first.
  std::vector<std::string> objects;
  /// The runtime; members that nobody needs are left out.
  std::string archive;
  /// The only names that the file shows others.
  std::vector<std::string> exported;
  std::string output;
  /// What errors call it.
  std::string shown;
  /// A folder for what is needed in between.
  std::string temporary;
};

/// Links by LLVM's linker, in this process, against the C library that is on
/// this machine, for another one Debian's for cross compilers; no compiler or
/// its files are needed, but for static programs the C library's archive.
MaybeError link(const LinkJob &job);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_LINK_H
