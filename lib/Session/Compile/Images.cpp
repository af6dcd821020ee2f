//===- Images.cpp - Code of targets' own ----------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/Images.h"

#include "dialects/SDX/SDX.h"
#include "sardonyx/Session/CompileAhead.h"
#include "sardonyx/Targets/Target.h"

using namespace mlir;
using namespace sardonyx;

void sardonyx::takeImages(ModuleOp module, std::vector<Image> &images) {
  auto stored = module->getAttrOfType<ArrayAttr>(sdx::kImagesAttr);
  if (!stored)
    return;
  for (auto attrs : stored.getAsRange<DictionaryAttr>()) {
    Image &image = images.emplace_back();
    image.target = attrs.getAs<StringAttr>("target").str();
    image.bytes = attrs.getAs<StringAttr>("bytes").str();
    if (auto architecture = attrs.getAs<StringAttr>("architecture"))
      image.architecture = architecture.str();
    if (attrs.get("ptx"))
      image.kind = ImageKind::PTX;
    if (auto kernels = attrs.getAs<ArrayAttr>("kernels"))
      for (auto kernel : kernels.getAsRange<DictionaryAttr>())
        image.kernels.push_back(
            {kernel.getAs<StringAttr>("name").str(),
             kernel.getAs<StringAttr>("node").str(),
             kernel.getAs<IntegerAttr>("arguments").getInt(),
             kernel.getAs<IntegerAttr>("shared").getInt()});
    if (auto messages = attrs.getAs<ArrayAttr>("messages"))
      for (auto message : messages.getAsRange<DictionaryAttr>())
        image.messages.push_back({message.getAs<StringAttr>("text").str(),
                                  message.getAs<IntegerAttr>("kind").getInt()});
  }
  module->removeAttr(sdx::kImagesAttr);
}

/// The target that has made an image; null where this program has none such.
static const TargetInfo *targetOf(const Image &image) {
  const TargetInfo *target =
      llvm::find_if(getLinkedTargets(), [&](const TargetInfo &info) {
        return info.name == image.target;
      });
  return target == getLinkedTargets().end() ? nullptr : target;
}

Expected<std::optional<Image>> sardonyx::assembleImage(const Image &image,
                                                       const std::string &tool,
                                                       int driverVersion) {
  const TargetInfo *target = targetOf(image);
  if (!target || !target->assemble || image.kind != ImageKind::PTX)
    return std::optional<Image>();
  auto made = target->assemble(image, {tool, driverVersion});
  if (!made)
    return Error(ErrorKind::Failed, llvm::toString(made.takeError()));
  return std::move(*made);
}

MaybeError sardonyx::assembleImages(std::vector<Image> &images,
                                    const std::string &tool, bool keepsText) {
  std::vector<Image> all;
  for (Image &image : images) {
    auto made = assembleImage(image, tool);
    if (!made)
      return made.error();
    const bool isText = !*made;
    if (!isText)
      all.push_back(std::move(**made));
    if (isText || keepsText)
      all.push_back(std::move(image));
  }
  images = std::move(all);
  return std::nullopt;
}

MaybeError sardonyx::loadImages(const std::vector<Image> &images,
                                std::vector<std::string> &objects) {
  for (const Image &image : images) {
    if (isForDevice(image))
      continue;
    const TargetInfo *target = targetOf(image);
    if (!target || !target->load)
      return Error(ErrorKind::Unsupported,
                   "the model has code for the target '" + image.target +
                       "', which this program cannot load");
    auto object = target->load(image);
    if (!object)
      return Error(ErrorKind::Failed, "the target '" + image.target +
                                          "' cannot load its code: " +
                                          llvm::toString(object.takeError()));
    objects.push_back(std::move(*object));
  }
  return std::nullopt;
}
