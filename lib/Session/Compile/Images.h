//===- Images.h - Code of targets' own --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_IMAGES_H
#define SARDONYX_LIB_SESSION_COMPILE_IMAGES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Image.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace sardonyx {

/// Moves the images that `module` has as `sdx.images` to the end of `images`.
void takeImages(mlir::ModuleOp module, std::vector<Image> &images);

/// Machine code of an image of PTX, for a driver of this version (12040; 0:
/// any), by the assembler that `tool` names or that is found; nothing where
/// there is none, or the image is no text.
Expected<std::optional<Image>> assembleImage(const Image &image,
                                             const std::string &tool,
                                             int driverVersion = 0);

/// Adds what the targets of `images` make of these to `objects`, but for those
/// for devices. Fails where this program has no such target, or the target says
/// no.
MaybeError loadImages(const std::vector<Image> &images,
                      std::vector<std::string> &objects);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_IMAGES_H
