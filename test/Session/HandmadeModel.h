//===- HandmadeModel.h - A compiled model without a compiler ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TEST_SESSION_HANDMADEMODEL_H
#define SARDONYX_TEST_SESSION_HANDMADEMODEL_H

#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Session/Session.h"
#include <string>

/// A folder that goes with the object.
struct TemporaryFolder {
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path;
};

void writeFile(const std::string &path, const std::string &bytes);
std::string readFile(const std::string &path);

/// What TestModel.c is, with inputs x [n, 3] and b [n], both float, and outputs
/// y [n, 3] and m [n]. Its weights 1, 10, 100 come from `weightsFile` at
/// `offset`, or lie in the artifact when that is empty.
sardonyx::Artifact handmadeArtifact(const std::string &weightsFile = "",
                                    uint64_t offset = 0);

/// Stands for the model's file; no importer would take it.
extern const std::string kHandmadeBytes;

/// Options with a cache that has the artifact for kHandmadeBytes.
sardonyx::SessionOptions
handmadeOptions(const TemporaryFolder &folder,
                const sardonyx::Artifact &artifact = handmadeArtifact());

#endif // SARDONYX_TEST_SESSION_HANDMADEMODEL_H
