//===- Devices.h - Tensors on devices from Python ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PYTHON_DEVICES_H
#define SARDONYX_PYTHON_DEVICES_H

#include <nanobind/nanobind.h>

/// Memory of CUDA devices, for sardonyx/_cuda.py.
void defineDevices(nanobind::module_ &m);

#endif // SARDONYX_PYTHON_DEVICES_H
