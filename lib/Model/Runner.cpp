//===- Runner.cpp - What can be run like a session ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Runner.h"

using namespace sardonyx;

Runner::~Runner() = default;
