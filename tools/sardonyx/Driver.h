//===- Driver.h - The driver's commands -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_DRIVER_H
#define SARDONYX_TOOLS_SARDONYX_DRIVER_H

namespace sardonyx {

/// What the program `sardonyx` does with a command line, whose first word is
/// its name; gives its exit status. Python's package has it as a command, too.
int runDriver(int argc, const char *const *argv);

} // namespace sardonyx

#endif // SARDONYX_TOOLS_SARDONYX_DRIVER_H
