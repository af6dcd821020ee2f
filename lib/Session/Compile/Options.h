//===- Options.h - Checks and a fingerprint of options ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_OPTIONS_H
#define SARDONYX_LIB_SESSION_COMPILE_OPTIONS_H

#include "sardonyx/Objects/Objects.h"
#include "sardonyx/Session/Session.h"

namespace sardonyx {

struct TargetInfo;

/// What is wrong with the options, if anything.
MaybeError checkOptions(const SessionOptions &options);

/// What a session compiles for, as its options say it.
TargetOptions targetOf(const SessionOptions &options);

/// The target among those that this program is linked with that makes the code;
/// null where the options ask for one that it has not.
const TargetInfo *targetInfoOf(const SessionOptions &options);
/// Why there is none for CUDA devices.
Error noCodeForCuda();

/// The features that a processor must have for the code of these options, as
/// requiredFeatures() gives them.
Expected<std::string> featuresOf(const SessionOptions &options);

/// All that the compiled model depends on, as text for the cache's keys.
std::string fingerprint(const SessionOptions &options);

/// Whether tile registers may compute in f32 (see SessionOptions::splitFloats).
bool splitsFloats(const SessionOptions &options);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_OPTIONS_H
