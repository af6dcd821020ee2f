//===- FetchKnown.h - Values on a GPU that decide on code -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_DEVICE_FETCHKNOWN_H
#define SARDONYX_LIB_SESSION_DEVICE_FETCHKNOWN_H

#include "lib/Model/Device/DeviceModel.h"
#include "sardonyx/Model/Values.h"
#include <deque>
#include <string>
#include <vector>

namespace sardonyx {

/// Copies short tensors that lie on the device and whose values decide on code
/// to `memory`, and has `inputs` point there.
MaybeError fetchKnown(const ModelDevice &device, std::vector<TensorRef> &inputs,
                      std::deque<std::string> &memory);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_DEVICE_FETCHKNOWN_H
