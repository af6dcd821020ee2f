//===- Options.cpp - Checks and a fingerprint of options ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/Options.h"
#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Targets/Target.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/BLAKE3.h"

using namespace sardonyx;

/// Whether a number of seconds can be one; also false for NaN.
static bool isDuration(double seconds) { return seconds >= 0; }

static Error refuse(const std::string &text) {
  return Error(ErrorKind::InvalidArgument, text);
}

TargetOptions sardonyx::targetOf(const SessionOptions &options) {
  TargetOptions target;
  target.triple = options.triple;
  target.cpu = options.cpu;
  target.features = options.features;
  target.device = options.device.cuda ? options.device.architecture : "";
  target.optLevel = options.optLevel;
  target.threads = options.intraOpThreads;
  return target;
}

/// The target that makes code for NVIDIA's GPUs.
static constexpr char kCudaTarget[] = "nvidia";

const TargetInfo *sardonyx::targetInfoOf(const SessionOptions &options) {
  llvm::ArrayRef<TargetInfo> targets = getLinkedTargets();
  if (!options.device.cuda)
    return &targets.front();
  const TargetInfo *found = llvm::find_if(
      targets, [](const TargetInfo &info) { return info.name == kCudaTarget; });
  return found == targets.end() ? nullptr : found;
}

Error sardonyx::noCodeForCuda() {
  return Error(ErrorKind::Unsupported,
               "this build of Sardonyx makes no code for CUDA devices");
}

Expected<std::string> sardonyx::featuresOf(const SessionOptions &options) {
  auto features = requiredFeatures(targetOf(options));
  if (!features)
    return refuse(llvm::toString(features.takeError()));
  return *features;
}

MaybeError sardonyx::checkOptions(const SessionOptions &options) {
  if (options.intraOpThreads > kMaxThreads)
    return refuse("the number of threads must be at most " +
                  std::to_string(kMaxThreads) + ", got " +
                  std::to_string(options.intraOpThreads));
  if (options.numerics < Numerics::Exact || options.numerics > Numerics::Fast)
    return refuse("there are no numerics of number " +
                  std::to_string(static_cast<int>(options.numerics)));
  if (options.precision < Precision::F32 ||
      options.precision > Precision::BF16x3)
    return refuse("there is no precision of number " +
                  std::to_string(static_cast<int>(options.precision)));
  if (options.compile != Compile::Wait &&
      options.compile != Compile::Background)
    return refuse("there is no way to compile of number " +
                  std::to_string(static_cast<int>(options.compile)));
  if (options.memoryLimit < 0)
    return refuse("the memory limit must be a positive number of bytes, got " +
                  std::to_string(options.memoryLimit));
  const DeviceOptions &device = options.device;
  if (device.memoryLimit < 0)
    return refuse("the memory limit of the device must be a positive number of "
                  "bytes, got " +
                  std::to_string(device.memoryLimit));
  if (device.deviceId < 0)
    return refuse("there is no CUDA device " + std::to_string(device.deviceId));
  if (!targetInfoOf(options) && !device.mayUseCpu)
    return noCodeForCuda();
  for (const auto &[name, sizes] : options.inputShapes)
    for (int64_t size : sizes)
      if (size < -1)
        return refuse("the shape given for input '" + name + "' has the size " +
                      std::to_string(size));
  for (const auto &[denotation, size] : options.denotedDims)
    if (size < 0)
      return refuse("dimensions of the denotation '" + denotation +
                    "' cannot have the size " + std::to_string(size));
  for (const auto &[name, tensor] : options.observe)
    if (!tensor.kinds || tensor.kinds > runtime::ObserveAll)
      return refuse("there are no observations of number " +
                    std::to_string(tensor.kinds) + " for tensor '" + name +
                    "'");
  if (!options.observe.empty() && device.cuda)
    return refuse("tensors are observed by the processor's code, not by a "
                  "device's");
  if (!isDuration(options.compileTimeout))
    return refuse("the time limit of compiling must not be negative, got " +
                  std::to_string(options.compileTimeout) + " s");
  if (options.cpu.empty() && options.triple.empty())
    return std::nullopt;
  auto features = featuresOf(options);
  return features ? std::nullopt : MaybeError(features.error());
}

bool sardonyx::splitsFloats(const SessionOptions &options) {
  return options.numerics != Numerics::Exact &&
         options.splitFloats.value_or(
             options.intraOpThreads == 1 ||
             keepsTileRate(resolveTarget(targetOf(options)).cpu));
}

static std::string hashOf(const GivenInitializers &initializers) {
  llvm::BLAKE3 hash;
  auto add = [&](llvm::StringRef text) {
    hash.update(std::to_string(text.size()) + ':');
    hash.update(text);
  };
  for (const auto &[name, given] : initializers) {
    add(name);
    add(std::to_string(given.elementType) + describeShape(given.shape) +
        (given.isExternal ? "e" : ""));
    add(given.bytes);
    add(std::to_string(given.strings.size()));
    for (const std::string &text : given.strings)
      add(text);
  }
  auto result = hash.final();
  return std::string(result.begin(), result.end());
}

std::string sardonyx::fingerprint(const SessionOptions &options) {
  // Names each option, so that a new one does not compile before somebody has
  // decided here whether the compiled code depends on it.
  const auto &[intraOpThreads, cache, cacheDir, cpu, features, triple, device,
               compile, compileElsewhere, optLevel, externalDataDir, dims,
               mayDimsBeUnknown, inputShapes, inputValues, distinctDims,
               denotedDims, initializers, outputs, customOps, numerics,
               precision, splitFloats, plan, remark, checkBounds, profile,
               observe, perfMap, memoryLimit, compileTimeout, interrupted] =
      options;
  // How a model is loaded and run, not what it is compiled to.
  (void)cache, (void)cacheDir, (void)compile, (void)compileElsewhere,
      (void)remark, (void)perfMap, (void)memoryLimit, (void)compileTimeout,
      (void)interrupted;

  // Lengths keep one text from running into the next.
  std::string text;
  auto add = [&](const std::string &value) {
    text += std::to_string(value.size()) + ':' + value + '\n';
  };
  (void)cpu, (void)features, (void)triple;
  const TargetInfo *targetInfo = targetInfoOf(options);
  add(targetInfo ? targetInfo->name.str() : "");
  add(device.cuda ? device.architecture : "");
  // It decides whether there is code at all.
  add(std::to_string(device.cuda && device.mayUseCpu));
  add(describeTarget(resolveTarget(targetOf(options))));
  add(std::to_string(optLevel));
  add(externalDataDir);
  add(std::to_string(static_cast<int>(numerics)));
  add(std::to_string(static_cast<int>(precision)));
  // All numbers of threads but one share what is compiled.
  (void)intraOpThreads, (void)splitFloats;
  add(std::to_string(splitsFloats(options) && requestTileRegisters()));
  add(plan);
  add(std::to_string(checkBounds));
  add(std::to_string(profile));
  add(std::to_string(observe.size()));
  for (const auto &[name, tensor] : observe) {
    add(name);
    add(std::to_string(tensor.kinds) + " " + std::to_string(tensor.axis));
  }
  for (const auto &[name, size] : dims) {
    add(name);
    add(std::to_string(size));
  }
  add(std::to_string(distinctDims));
  add(std::to_string(mayDimsBeUnknown));
  add(std::to_string(denotedDims.size()));
  for (const auto &[name, size] : denotedDims) {
    add(name);
    add(std::to_string(size));
  }
  for (const auto *lists : {&inputShapes, &inputValues}) {
    add(std::to_string(lists->size()));
    for (const auto &[name, numbers] : *lists) {
      add(name);
      add(describeShape(numbers));
    }
  }
  add(initializers ? hashOf(*initializers) : "");
  add(std::to_string(outputs.size()));
  for (const std::string &name : outputs)
    add(name);
  // What runs call is compared when it is there: see CustomNodes.
  add(customOps ? customOps->fingerprint() : "");
  return text;
}
