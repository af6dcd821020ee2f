//===- Profile.cpp - Where the time of runs goes --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/ProfileLog.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <mutex>
#include <unistd.h>

using namespace sardonyx;

static ProfileLaunch describe(const runtime::LaunchRecord &record) {
  const runtime::DeviceLaunch &launch = record.launch;
  ProfileLaunch result;
  result.site = static_cast<size_t>(record.site);
  result.kernel = launch.kernel;
  std::copy_n(launch.size.blocks, 3, result.blocks);
  std::copy_n(launch.size.threads, 3, result.threads);
  result.sharedBytes = launch.size.sharedBytes + launch.declaredSharedBytes;
  result.registers = launch.registers;
  result.begin = record.stepBegin + launch.begin;
  result.end = record.stepBegin + launch.end;
  result.occupancy = launch.occupancy;
  return result;
}

void ProfileLog::add(int64_t begin, int64_t end,
                     const std::vector<runtime::StepRecord> &steps,
                     const std::vector<runtime::LaunchRecord> &launches,
                     size_t sites) {
  ProfileRun run{begin, end, /*thread=*/0, {}, {}};
  run.events.reserve(steps.size());
  for (const runtime::StepRecord &step : steps)
    if (step.site >= 0 && static_cast<size_t>(step.site) < sites)
      run.events.push_back({static_cast<size_t>(step.site), step.begin,
                            step.end, static_cast<double>(step.flops),
                            static_cast<double>(step.bytes)});
  for (const runtime::LaunchRecord &record : launches)
    if (record.site >= 0 && static_cast<size_t>(record.site) < sites)
      run.launches.push_back(describe(record));
  std::lock_guard<runtime::ForkSafeMutex> lock(mutex);
  if (events >= Profile::kMaxEvents) {
    ++droppedRuns;
    return;
  }
  run.thread = threads.try_emplace(std::this_thread::get_id(), threads.size())
                   .first->second;
  events += run.events.size() + run.launches.size();
  runs.push_back(std::move(run));
}

void ProfileLog::moveTo(Profile &profile,
                        const std::vector<ProfileSite> &sites) {
  std::lock_guard<runtime::ForkSafeMutex> lock(mutex);
  size_t first = profile.sites.size();
  profile.sites.insert(profile.sites.end(), sites.begin(), sites.end());
  for (ProfileRun &run : runs) {
    for (ProfileEvent &event : run.events)
      event.site += first;
    for (ProfileLaunch &launch : run.launches)
      launch.site += first;
    profile.runs.push_back(std::move(run));
  }
  profile.droppedRuns += droppedRuns;
  runs.clear();
  events = droppedRuns = 0;
}

static void writeEvent(llvm::json::OStream &json, llvm::StringRef category,
                       llvm::StringRef name, size_t thread, int64_t start,
                       int64_t begin, int64_t end,
                       llvm::function_ref<void()> writeArgs) {
  json.object([&] {
    json.attribute("cat", category);
    json.attribute("name", llvm::json::fixUTF8(name));
    json.attribute("ph", "X");
    json.attribute("pid", getpid());
    json.attribute("tid", static_cast<int64_t>(thread));
    // Microseconds.
    json.attribute("ts", static_cast<double>(begin - start) * 1e-3);
    json.attribute("dur", static_cast<double>(end - begin) * 1e-3);
    json.attributeObject("args", writeArgs);
  });
}

std::string sardonyx::toTrace(const Profile &profile, int64_t start) {
  for (const ProfileRun &run : profile.runs)
    start = std::min(start, run.begin);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.array([&] {
    for (const ProfileRun &run : profile.runs) {
      writeEvent(json, "Session", "model_run", run.thread, start, run.begin,
                 run.end, [] {});
      for (const ProfileEvent &event : run.events) {
        const ProfileSite &site = profile.sites[event.site];
        writeEvent(json, "Node", site.form, run.thread, start, event.begin,
                   event.end, [&] {
                     json.attribute("kernel", site.kernel);
                     json.attributeArray("nodes", [&] {
                       for (const std::string &node : site.nodes)
                         json.value(llvm::json::fixUTF8(node));
                     });
                     json.attribute("flops", event.flops);
                     json.attribute("bytes", event.bytes);
                   });
      }
      for (const ProfileLaunch &launch : run.launches)
        writeEvent(json, "Kernel", launch.kernel, run.thread, start,
                   launch.begin, launch.end, [&] {
                     json.attributeArray("blocks", [&] {
                       for (int64_t size : launch.blocks)
                         json.value(size);
                     });
                     json.attributeArray("threads", [&] {
                       for (int64_t size : launch.threads)
                         json.value(size);
                     });
                     json.attribute("registers", launch.registers);
                     json.attribute("shared", launch.sharedBytes);
                     json.attribute("occupancy", launch.occupancy);
                   });
    }
  });
  return text;
}
