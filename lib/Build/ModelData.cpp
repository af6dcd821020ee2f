//===- ModelData.cpp - A model's description and weights ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelData.h"
#include "ElfObject.h"
#include "lib/Model/Device/ImageChoice.h"
#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/LoadArtifact.h"
#include "llvm/BinaryFormat/ELF.h"

#include <cstddef>

using namespace sardonyx;
using namespace llvm::ELF;

namespace {

/// Lays out the model's description (Artifact.h) and its weights.
class DataBuilder {
public:
  DataBuilder(uint16_t machine) : object(machine) {
    table = object.addSection(".data.rel.ro", SHF_ALLOC | SHF_WRITE, 8);
    text = object.addSection(".rodata.sardonyx", SHF_ALLOC, 16);
  }

  /// Points from a place in the table to bytes of their own.
  void pointToBytes(uint64_t place, std::string_view bytes) {
    std::string name = "sdx_text_" + std::to_string(texts++);
    uint64_t at = object.append(text, bytes, 16);
    object.define(name, text, at, bytes.size(), /*isPublic=*/false);
    object.point(table, place, name);
  }
  void pointToText(uint64_t place, const std::string &words) {
    pointToBytes(place, {words.c_str(), words.size() + 1});
  }
  /// Appends a struct of the table, or several, and gives their place.
  template <typename T> uint64_t append(const T &fields, size_t count = 1) {
    return object.append(
        table, {reinterpret_cast<const char *>(&fields), count * sizeof(T)}, 8);
  }

  ElfObject object;
  size_t table, text;

private:
  unsigned texts = 0;
};

} // namespace

/// Fills in one code at its place of the table.
static void addCode(DataBuilder &data, uint64_t entry, const AheadCode &code,
                    const std::string &prefix, std::string_view description) {
  data.pointToText(entry + offsetof(sdx_artifact_code, processor),
                   code.processor);
  data.pointToText(entry + offsetof(sdx_artifact_code, features),
                   code.features);
  data.object.point(data.table, entry + offsetof(sdx_artifact_code, main),
                    prefix + "sdx_main");
  data.pointToBytes(entry + offsetof(sdx_artifact_code, description),
                    description);
}

/// The images of a code for a device, as the artifact names them.
static std::string listImagesOf(const AheadCode &code) {
  std::vector<const Image *> images;
  for (const Image &image : code.description.images)
    images.push_back(&image);
  return listImages(images);
}

/// Adds the code for each kind of processor and gives their place.
static uint64_t addCodes(DataBuilder &data, const ModelData &model,
                         const std::vector<std::string> &descriptions) {
  std::vector<sdx_artifact_code> entries(model.codes.size());
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i].description_bytes = descriptions[i].size();
  uint64_t at = data.append(entries.front(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i)
    addCode(data, at + i * sizeof(sdx_artifact_code), model.codes[i],
            model.prefixes[i], descriptions[i]);
  return at;
}

/// The same for each kind of device.
static uint64_t addDeviceCodes(DataBuilder &data, const ModelData &model,
                               const std::vector<std::string> &descriptions) {
  std::vector<sdx_device_code> entries(model.codes.size());
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i].code.description_bytes = descriptions[i].size();
  uint64_t at = data.append(entries.front(), entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    uint64_t entry = at + i * sizeof(sdx_device_code);
    addCode(data, entry + offsetof(sdx_device_code, code), model.codes[i],
            model.prefixes[i], descriptions[i]);
    if (model.codes[i].hasInit)
      data.object.point(data.table, entry + offsetof(sdx_device_code, init),
                        model.prefixes[i] + "sdx_init");
    data.pointToText(entry + offsetof(sdx_device_code, images),
                     listImagesOf(model.codes[i]));
  }
  return at;
}

static void addWeights(DataBuilder &data, const WeightPool &weights,
                       uint16_t machine) {
  // Far from the code, which only follows a pointer to them: there may be more
  // than 2 GB.
  uint64_t flags = SHF_ALLOC | (machine == EM_X86_64 ? SHF_X86_64_LARGE : 0);
  size_t section = data.object.addSection(
      std::string(kWeightsSection) + ".weights", flags, 4096);
  static const char zeros[64] = {};
  for (const WeightPool::Block &block : weights.blocks()) {
    data.object.appendBorrowed(section, {zeros, block.padding});
    data.object.appendBorrowed(section, block.bytes);
  }
  data.object.define("sdx_weights", section, 0, weights.size(),
                     /*isPublic=*/false);
}

MaybeError sardonyx::writeModelData(const ModelData &model,
                                    const std::string &file) {
  DataBuilder data(model.elfMachine);
  const bool isForDevices = model.codes.front().isForDevice;
  std::vector<std::string> descriptions;
  for (const AheadCode &code : model.codes) {
    Artifact description = code.description;
    description.weightsBytes = model.weights.size();
    descriptions.push_back(pack(description, "ahead of time"));
  }
  sdx_artifact artifact = {};
  memcpy(artifact.magic, SDX_ARTIFACT_MAGIC, sizeof(artifact.magic));
  artifact.threads = model.threads;
  artifact.weights_bytes = model.weights.size();
  artifact.weights_hash = model.weightsHash;
  (isForDevices ? artifact.device_code_count : artifact.code_count) =
      model.codes.size();
  const uint64_t at = data.append(artifact);
  for (const std::string &name : {model.name, std::string(kArtifactSymbol)})
    data.object.define(name, data.table, at, sizeof(artifact),
                       /*isPublic=*/true);
  data.object.point(data.table, at + offsetof(sdx_artifact, functions),
                    "sdx_artifact_functions");
  data.pointToText(at + offsetof(sdx_artifact, name), model.name);
  const uint64_t codes = isForDevices
                             ? addDeviceCodes(data, model, descriptions)
                             : addCodes(data, model, descriptions);
  data.object.define("sdx_codes", data.table, codes, 0, /*isPublic=*/false);
  data.object.point(data.table,
                    at + (isForDevices ? offsetof(sdx_artifact, device_codes)
                                       : offsetof(sdx_artifact, codes)),
                    "sdx_codes");
  if (isForDevices)
    data.object.point(data.table, at + offsetof(sdx_artifact, devices),
                      "sdx_artifact_devices");
  if (!model.weightsFile.empty()) {
    data.pointToText(at + offsetof(sdx_artifact, weights_file),
                     model.weightsFile);
  } else {
    addWeights(data, model.weights, model.elfMachine);
    data.object.point(data.table, at + offsetof(sdx_artifact, weights),
                      "sdx_weights");
  }
  return data.object.write(file);
}
