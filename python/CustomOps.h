//===- CustomOps.h - Operators that are Python functions --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PYTHON_CUSTOMOPS_H
#define SARDONYX_PYTHON_CUSTOMOPS_H

#include <nanobind/nanobind.h>

void defineCustomOps(nanobind::module_ &m);

#endif // SARDONYX_PYTHON_CUSTOMOPS_H
