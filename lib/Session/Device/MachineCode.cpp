//===- MachineCode.cpp - Cubins of what sessions compile ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Device/MachineCode.h"
#include "lib/Model/Device/ImageChoice.h"
#include "lib/Session/Compile/Images.h"

#include <algorithm>

using namespace sardonyx;
using namespace sardonyx::runtime::gpu;

/// The version of the driver, 12040; 0 where there is none.
static int driverVersion() {
  const auto &driver = Driver::get();
  return driver ? (*driver)->version() : 0;
}

/// Whether a cubin has the kernels of a text, by the same numbers.
static bool hasKernelsOf(const Image &cubin, const Image &text) {
  auto isSame = [](const DeviceKernel &a, const DeviceKernel &b) {
    return a.name == b.name && a.arguments == b.arguments &&
           a.sharedBytes == b.sharedBytes;
  };
  return cubin.kind == ImageKind::Cubin &&
         std::equal(cubin.kernels.begin(), cubin.kernels.end(),
                    text.kernels.begin(), text.kernels.end(), isSame);
}

/// Machine code of PTX for the device.
static std::optional<Image> compile(const Image &text,
                                    const ModelDevice &device) {
  const bool isOwn =
      !text.architecture.empty() && text.architecture.back() == 'a';
  Image wanted = text;
  wanted.architecture = nameOfArchitecture(device.sm(), isOwn);
  auto assembled = assembleImage(wanted, /*tool=*/"", driverVersion());
  if (assembled && *assembled)
    return std::move(**assembled);
  auto linked = Module::compile(device.get(), text.bytes, "the model");
  if (!linked)
    return std::nullopt;
  wanted.kind = ImageKind::Cubin;
  wanted.bytes = std::move(*linked);
  return wanted;
}

void sardonyx::addMachineCode(Artifact &artifact, const ModelDevice &device,
                              Cache &cache, const std::string &key) {
  auto text = std::find_if(
      artifact.images.begin(), artifact.images.end(), [](const Image &image) {
        return isForDevice(image) && image.kind == ImageKind::PTX;
      });
  if (!cache.enabled() || text == artifact.images.end())
    return;
  const std::string keyOfCode = key + "\ncubin " + std::to_string(device.sm()) +
                                ' ' + std::to_string(driverVersion());
  std::optional<Artifact> kept = cache.load(keyOfCode);
  if (kept && kept->images.size() == 1 &&
      hasKernelsOf(kept->images.front(), *text)) {
    artifact.images.insert(text, std::move(kept->images.front()));
    return;
  }
  std::optional<Image> made = compile(*text, device);
  if (!made)
    return;
  Artifact stored;
  // It is of no use where the model's other files have changed.
  stored.files = artifact.files;
  stored.images.push_back(std::move(*made));
  cache.store(keyOfCode, stored);
  artifact.images.insert(text, std::move(stored.images.front()));
}
