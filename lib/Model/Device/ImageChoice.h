//===- ImageChoice.h - Which image a GPU runs -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_MODEL_DEVICE_IMAGECHOICE_H
#define SARDONYX_LIB_MODEL_DEVICE_IMAGECHOICE_H

#include "sardonyx/Model/Image.h"
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// What code is made for on a device of this compute capability (90): "sm_90a",
/// or of one that is not known the newest that came before it, "sm_100".
std::string architectureOf(int sm);

/// "sm_90" of 90, with `isOwn` "sm_90a".
std::string nameOfArchitecture(int sm, bool isOwn);

/// How well an image of this kind and architecture ("sm_90a") serves a device:
/// the higher the better, negative: not at all. A cubin runs on the very
/// compute capability that it was made for, PTX also on all later ones, unless
/// the architecture ends in a letter. Machine code goes before PTX, which the
/// driver has to compile, and what was made for the very device before all
/// else. An image without an architecture comes last: the driver judges it.
int rateImage(ImageKind kind, std::string_view architecture, int sm);

/// Those of `images` that a device can run, the best first.
std::vector<const Image *> rankImages(const std::vector<const Image *> &images,
                                      int sm);

/// "sm_90a cubin, sm_80 ptx".
std::string listImages(const std::vector<const Image *> &images);

/// What listImages() gives as kinds and architectures. Words that it does not
/// write are left out.
struct ListedImage {
  ImageKind kind;
  std::string architecture;
};
std::vector<ListedImage> readImageList(std::string_view list);

/// What a device is and what there is code for: "it is 'NVIDIA T4' of compute
/// capability 7.5, and there is sm_80 ptx".
std::string tellUnfitting(const std::string &list, const std::string &device,
                          int sm);

} // namespace sardonyx

#endif // SARDONYX_LIB_MODEL_DEVICE_IMAGECHOICE_H
