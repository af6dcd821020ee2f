//===- DeviceWork.h - What a device does of a model -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_DEVICEWORK_H
#define SARDONYX_LIB_SESSION_COMPILE_DEVICEWORK_H

#include "mlir/IR/BuiltinOps.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Session/Compile.h"

namespace sardonyx {

/// What is on the device and what is not, in a module after Phase::Kernels.
DeviceReport findDeviceWork(mlir::ModuleOp module);

/// Why a session that may not use the processor refuses a model, if it does:
/// all nodes that the device has no kernels for.
MaybeError refuseHostWork(const DeviceReport &report);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_DEVICEWORK_H
