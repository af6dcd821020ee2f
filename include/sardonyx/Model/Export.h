//===- Export.h - What libsardonyx.so lets programs use ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_EXPORT_H
#define SARDONYX_MODEL_EXPORT_H

/// In front of what a program may link to. All else is hidden: the project is
/// compiled so.
#define SARDONYX_API __attribute__((visibility("default")))

#endif // SARDONYX_MODEL_EXPORT_H
