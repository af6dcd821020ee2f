//===- TargetMachine.h - LLVM's machine for a target ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_TARGETMACHINE_H
#define SARDONYX_LIB_OBJECTS_TARGETMACHINE_H

#include "sardonyx/Objects/Objects.h"

#include "llvm/Target/TargetMachine.h"

namespace sardonyx {

/// LLVM's machine for resolved options, or why there is none.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const TargetOptions &options);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_TARGETMACHINE_H
