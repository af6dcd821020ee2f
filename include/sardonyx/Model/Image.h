//===- Image.h - Code in a form that only a target knows --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_IMAGE_H
#define SARDONYX_MODEL_IMAGE_H

#include <string>

namespace sardonyx {

/// Code for kernels in a form that only a target knows.
struct Image {
  /// The name of the target that can load it.
  std::string target;
  std::string bytes;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_IMAGE_H
