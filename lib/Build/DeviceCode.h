//===- DeviceCode.h - Which GPUs a model is built for -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_DEVICECODE_H
#define SARDONYX_LIB_BUILD_DEVICECODE_H

#include "sardonyx/Build/Build.h"
#include <string>
#include <vector>

namespace sardonyx {

/// Which of the devices the oldest is, whose PTX runs on all later ones; a name
/// that ends in a letter is none, since its code runs there only. Nothing where
/// there is none.
std::string findOldest(const std::vector<std::string> &devices);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_DEVICECODE_H
