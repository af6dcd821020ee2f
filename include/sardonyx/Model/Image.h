//===- Image.h - Code in a form that only a target knows --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_IMAGE_H
#define SARDONYX_MODEL_IMAGE_H

#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

/// What a check of a kernel fails a run with.
struct Message {
  std::string text;
  /// SDX_RT_FAILED or another kind of RuntimeABI.h.
  int64_t kind = 0;
};

/// A kernel that the host program starts on a device.
struct DeviceKernel {
  std::string name;
  /// The nodes that it computes, "node 'x' (Conv)", for errors; may be empty.
  std::string node;
  /// How many parameters it has.
  int64_t arguments = 0;
  /// The most bytes of shared memory that a launch asks for, beside what the
  /// kernel declares.
  int64_t sharedBytes = 0;
};

/// What the bytes of an image are.
enum class ImageKind : uint8_t {
  /// What the target itself loads.
  Own,
  /// The text of PTX, which the driver compiles for the device that it has.
  PTX,
  /// Machine code of one kind of device.
  Cubin,
};

/// Code for kernels in a form that only a target, or a device, knows.
struct Image {
  /// The name of the target that can load it.
  std::string target;
  std::string bytes;
  /// Of code that runs on a device: its kernels, which the host program starts
  /// by their positions here. Empty: the host program calls what the target
  /// makes of the bytes, by the kernels' names.
  std::vector<DeviceKernel> kernels = {};
  /// The sentences that checks of kernels on a device fail with, by the numbers
  /// that their code has for them; {0} to {3} stand for values.
  std::vector<Message> messages = {};
  ImageKind kind = ImageKind::Own;
  /// Of code that runs on a device: what it was made for, "sm_90a".
  std::string architecture = {};
};

/// Whether an image is code for a device, which no target loads.
inline bool isForDevice(const Image &image) { return !image.kernels.empty(); }

} // namespace sardonyx

#endif // SARDONYX_MODEL_IMAGE_H
