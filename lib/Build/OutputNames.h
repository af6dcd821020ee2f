//===- OutputNames.h - Names of files that are built ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_OUTPUTNAMES_H
#define SARDONYX_LIB_BUILD_OUTPUTNAMES_H

#include "sardonyx/Model/Error.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace sardonyx {

/// Refuses a name that makes others take the file for what it is not.
MaybeError checkName(const std::string &output);

/// Whether a file can be written to its folder, as far as the system tells
/// before it is.
MaybeError checkFolder(const std::string &file);

/// A name for a model from that of a file: an identifier of C.
std::string nameFrom(llvm::StringRef output);

/// How the artifact names its file of weights: without a folder where both lie
/// in one, as they may be moved.
std::string weightsNameIn(const std::string &weights,
                          const std::string &output);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_OUTPUTNAMES_H
