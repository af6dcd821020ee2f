//===- ProcessorFeatures.h - What this processor can do ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that was made for another processor must be refused before it runs. The
// names are LLVM's, of those features only that decide which instructions the
// code generator takes.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_PROCESSORFEATURES_H
#define SARDONYX_RUNTIME_PROCESSORFEATURES_H

#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {
namespace runtime {

/// The features that are looked at for an architecture, "x86_64" or "aarch64".
std::vector<std::string_view> knownFeatures(std::string_view architecture);

/// Those of a list "avx2,fma" that this processor, or its system, lacks, in the
/// same form; a name that is not known counts as lacking.
std::string missingFeatures(std::string_view features);

/// Asks the system, once for a process, for the tile registers of AMX. False
/// where there are none, or where it refuses.
bool requestTileRegisters();

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_PROCESSORFEATURES_H
