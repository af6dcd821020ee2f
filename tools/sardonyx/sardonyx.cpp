//===- sardonyx.cpp - The user's driver -----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

int main(int argc, char **argv) { return sardonyx::runDriver(argc, argv); }
