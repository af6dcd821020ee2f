//===- DriverState.cpp - What the fake CUDA driver holds ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

DriverState &DriverState::get() {
  // Never destroyed: the process may end with memory on the device.
  static auto *state = new DriverState;
  return *state;
}

/// A number that all of `text` is, or false.
static bool parseNumber(const std::string &text, long long &number) {
  char *end = nullptr;
  number = strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0 && number >= 0;
}

DriverState::DriverState() {
  auto read = [&](const char *name, auto &setting) {
    const char *text = getenv(name);
    long long number = 0;
    if (!text || !*text)
      return;
    if (parseNumber(text, number))
      setting = static_cast<std::decay_t<decltype(setting)>>(number);
    else
      knownSettings.mistake = std::string(name) + " is no number: " + text;
  };
  read("SARDONYX_FAKECUDA_SM", knownSettings.sm);
  read("SARDONYX_FAKECUDA_MEMORY", knownSettings.memoryBytes);
  read("SARDONYX_FAKECUDA_VERSION", knownSettings.version);
  read("SARDONYX_FAKECUDA_DEVICES", knownSettings.devices);
  if (const char *text = getenv("SARDONYX_FAKECUDA_FAIL"))
    readFailures(text);
}

/// "cuMemAlloc:3" or "cuLaunchKernelEx:2:700", several with commas between.
void DriverState::readFailures(const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string one = text.substr(at, end - at);
    at = end + 1;
    size_t colon = one.find(':'), second = one.find(':', colon + 1);
    long long count = 0, code = CUDA_ERROR_OUT_OF_MEMORY;
    bool isRight =
        colon != std::string::npos &&
        parseNumber(one.substr(colon + 1, second - colon - 1), count) &&
        count > 0;
    if (isRight && second != std::string::npos)
      isRight = parseNumber(one.substr(second + 1), code) && code > 0;
    if (isRight)
      failures.push_back({one.substr(0, colon), static_cast<int>(count),
                          static_cast<CUresult>(code)});
    else
      knownSettings.mistake = "SARDONYX_FAKECUDA_FAIL has '" + one +
                              "', not FUNCTION:CALL or FUNCTION:CALL:CODE";
  }
}

CUresult DriverState::begin(const char *name, Needs needs) {
  if (needs >= Needs::Initialization && !isInitialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (needs >= Needs::Device && isLost())
    return lossCode;
  if (needs >= Needs::Context && currentContexts().empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  for (InjectedFailure &failure : failures) {
    if (failure.name != name || --failure.countdown != 0)
      continue;
    std::string sentence = std::string(name) + " fails by request";
    // Of these a device does not recover.
    if (failure.code >= CUDA_ERROR_ILLEGAL_ADDRESS &&
        failure.code < CUDA_ERROR_NOT_SUPPORTED &&
        failure.code != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
      lose(failure.code, sentence);
    else
      tell(failure.code, sentence);
    return failure.code;
  }
  return CUDA_SUCCESS;
}

CUresult DriverState::tell(CUresult code, const std::string &sentence) {
  fprintf(stderr, "fake CUDA: %s\n", sentence.c_str());
  std::lock_guard<std::mutex> lock(faultMutex);
  fault = sentence;
  return code;
}

void DriverState::lose(CUresult code, const std::string &sentence) {
  tell(code, sentence);
  if (!isLost())
    lossCode = code;
}

std::string DriverState::lastFault() {
  std::lock_guard<std::mutex> lock(faultMutex);
  return fault;
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

CUstream DriverState::find(CUstream stream) {
  if (!stream)
    return &defaultStream;
  for (const auto &known : streams)
    if (known.get() == stream)
      return stream;
  return nullptr;
}

void DriverState::push(CUstream stream, std::function<void()> run) {
  stream->queue.push_back({nullptr, std::move(run)});
}

void DriverState::advance(CUstream stream) {
  if (stream->queue.empty())
    return;
  Operation next = std::move(stream->queue.front());
  stream->queue.pop_front();
  // What is waited for was recorded before, so that there is no circle.
  while (next.awaited && !next.awaited->isDone && !isLost())
    advance(next.awaited->stream);
  if (next.run && !isLost())
    next.run();
}

CUresult DriverState::drain(CUstream stream) {
  while (!stream->queue.empty() && !isLost())
    advance(stream);
  return lossCode;
}

CUresult DriverState::drainAll() {
  for (size_t i = streams.size(); i-- > 0;)
    drain(streams[i].get());
  return drain(&defaultStream);
}

bool DriverState::isPinned(const void *data, size_t bytes) const {
  char *start = static_cast<char *>(const_cast<void *>(data));
  auto next = pinned.upper_bound(start);
  if (next == pinned.begin())
    return false;
  auto [begin, size] = *std::prev(next);
  size_t offset = static_cast<size_t>(start - begin);
  return offset <= size && bytes <= size - offset;
}

bool DriverState::isLoaded(CUfunction function) const {
  for (CUmodule module : modules)
    for (const auto &[name, known] : module->functions)
      if (known.get() == function)
        return true;
  return false;
}
