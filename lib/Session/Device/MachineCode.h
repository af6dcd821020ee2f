//===- MachineCode.h - Cubins of what sessions compile ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_DEVICE_MACHINECODE_H
#define SARDONYX_LIB_SESSION_DEVICE_MACHINECODE_H

#include "lib/Model/Device/DeviceModel.h"
#include "lib/Session/Cache/Cache.h"
#include "sardonyx/Model/Artifact.h"
#include <string>

namespace sardonyx {

/// Puts a cubin for the device before the PTX of an artifact: the one that
/// `cache` keeps beside the artifact, under `key`, for this device and driver,
/// or else one that CUDA's ptxas makes, where it is there, or the driver. A new
/// one goes to the cache. Where the cache is disabled, or nobody can compile
/// it, the images stay as they are: the driver compiles the PTX when it loads
/// it, and says what is wrong.
void addMachineCode(Artifact &artifact, const ModelDevice &device, Cache &cache,
                    const std::string &key);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_DEVICE_MACHINECODE_H
