//===- Profile.cpp - sardonyx profile -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Profile.h"
#include "Commands.h"
#include "sardonyx/Session/Devices.h"
#include "sardonyx/Session/NewFiles.h"
#include "sardonyx/Session/PeakFlops.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <tuple>

using namespace sardonyx;

static double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Which row of the table each site belongs to.
static std::vector<size_t> assignRows(const Profile &profile,
                                      const std::string &by,
                                      std::vector<ProfileRow> &rows) {
  std::map<std::string, size_t> known;
  std::vector<size_t> rowOf;
  for (size_t i = 0; i < profile.sites.size(); ++i) {
    const ProfileSite &site = profile.sites[i];
    std::string key = by == "form"     ? site.form
                      : by == "kernel" ? site.kernel
                                       : std::to_string(i);
    auto [it, isNew] = known.try_emplace(key, rows.size());
    if (isNew) {
      rows.emplace_back();
      rows.back().form = site.form;
      rows.back().kernel = by == "form" ? "" : site.kernel;
    }
    rowOf.push_back(it->second);
    std::vector<std::string> &nodes = rows[it->second].nodes;
    nodes.insert(nodes.end(), site.nodes.begin(), site.nodes.end());
  }
  return rowOf;
}

static void fillRows(const Profile &profile, const std::string &by,
                     ProfileTable &table) {
  std::vector<size_t> rowOf = assignRows(profile, by, table.rows);
  std::vector<std::vector<double>> times(table.rows.size());
  std::vector<double> runTimes;
  double inSteps = 0, inRuns = 0;
  for (const ProfileRun &run : profile.runs) {
    std::vector<double> sums(table.rows.size());
    for (const ProfileEvent &event : run.events) {
      size_t number = rowOf[event.site];
      ProfileRow &row = table.rows[number];
      sums[number] += (event.end - event.begin) * 1e-9;
      inSteps += (event.end - event.begin) * 1e-9;
      row.calls += 1;
      row.flops += event.flops / profile.runs.size();
      row.bytes += event.bytes / profile.runs.size();
    }
    for (size_t i = 0; i < sums.size(); ++i)
      times[i].push_back(sums[i]);
    runTimes.push_back((run.end - run.begin) * 1e-9);
    inRuns += runTimes.back();
  }
  table.covered = inRuns > 0 ? inSteps / inRuns : 0;
  table.runs = profile.runs.size();
  table.seconds = median(runTimes);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    ProfileRow &row = table.rows[i];
    row.seconds = median(times[i]);
    // Products of narrow numbers have another peak; a processor's is not
    // measured.
    const bool isNarrow = row.form.find("product of") != std::string::npos;
    const double peak = isNarrow ? table.peakTensorGflops : table.peakGflops;
    if (row.seconds <= 0 || peak <= 0 || table.peakGBs <= 0)
      continue;
    row.roofline =
        std::max(row.flops / (peak * 1e9), row.bytes / (table.peakGBs * 1e9)) /
        row.seconds;
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const ProfileRow &x, const ProfileRow &y) {
                     return x.seconds > y.seconds;
                   });
}

static std::string describeSizes(const int64_t sizes[3]) {
  int last = 2;
  while (last > 0 && sizes[last] == 1)
    --last;
  std::string text = std::to_string(sizes[0]);
  for (int i = 1; i <= last; ++i)
    text += "x" + std::to_string(sizes[i]);
  return text;
}

static void fillLaunches(const Profile &profile, ProfileTable &table) {
  std::map<std::tuple<std::string, std::string, std::string>, LaunchRow> known;
  for (const ProfileRun &run : profile.runs)
    for (const ProfileLaunch &launch : run.launches) {
      LaunchRow &row = known[{launch.kernel, describeSizes(launch.blocks),
                              describeSizes(launch.threads)}];
      row.kernel = launch.kernel;
      row.blocks = describeSizes(launch.blocks);
      row.threads = describeSizes(launch.threads);
      row.registers = launch.registers;
      row.sharedBytes = launch.sharedBytes;
      row.occupancy = launch.occupancy;
      row.calls += 1;
      row.seconds += (launch.end - launch.begin) * 1e-9 / profile.runs.size();
    }
  for (auto &[key, row] : known)
    table.launches.push_back(std::move(row));
  std::stable_sort(table.launches.begin(), table.launches.end(),
                   [](const LaunchRow &x, const LaunchRow &y) {
                     return x.seconds > y.seconds;
                   });
}

/// A number that may have nothing to tell.
static std::string cell(const char *format, double value) {
  if (value <= 0)
    return "-";
  char text[32];
  snprintf(text, sizeof(text), format, value);
  return text;
}

static std::string listNodes(const std::vector<std::string> &nodes) {
  constexpr size_t kMax = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kMax, nodes.size()); ++i)
    text += (i ? ", " : "") + nodes[i];
  if (nodes.size() > kMax)
    text += ", " + std::to_string(nodes.size() - kMax) + " more";
  return text;
}

std::string describePeaks(const ProfileTable &table) {
  if (table.peakGflops <= 0 || table.peakGBs <= 0)
    return "not known";
  char text[128];
  snprintf(text, sizeof(text), "%.0f GFLOP/s, ", table.peakGflops);
  std::string peaks = text;
  if (table.peakTensorGflops > 0) {
    snprintf(text, sizeof(text), "%.0f of 16 bits, ", table.peakTensorGflops);
    peaks += text;
  }
  snprintf(text, sizeof(text), "%.1f GB/s from memory", table.peakGBs);
  return peaks + text;
}

static void print(const ProfileTable &table, size_t top) {
  printf("model      %s\n", table.model.c_str());
  for (const std::string &input : table.inputs)
    printf("input      %s\n", input.c_str());
  printf("threads    %u\n", table.threads);
  if (!table.device.empty())
    printf("device     %s\n", table.device.c_str());
  printf("peaks      %s\n", describePeaks(table).c_str());
  printf("run        %s at the median of %zu, %.1f %% of it in the steps "
         "below\n\n",
         describeSeconds(table.seconds).c_str(), table.runs,
         100 * table.covered);
  printf("%10s %6s %6s %8s %7s %6s  %-28s %s\n", "time", "share", "calls",
         "GFLOP/s", "GB/s", "roof", "what", "nodes");
  size_t shown = std::min(top, table.rows.size());
  for (size_t i = 0; i < shown; ++i) {
    const ProfileRow &row = table.rows[i];
    double speed = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    printf("%10s %5.1f%% %6s %8s %7s %6s  %-28s %s\n",
           describeSeconds(row.seconds).c_str(),
           100 * row.seconds / table.seconds,
           cell("%.0f", row.calls / table.runs).c_str(),
           cell("%.1f", row.flops * speed).c_str(),
           cell("%.1f", row.bytes * speed).c_str(),
           cell("%.0f%%", 100 * row.roofline).c_str(), row.form.c_str(),
           listNodes(row.nodes).c_str());
  }
  if (shown < table.rows.size())
    printf("and %zu more (--top)\n", table.rows.size() - shown);
}

static void printLaunches(const ProfileTable &table, size_t top) {
  if (table.launches.empty())
    return;
  printf("\n%10s %6s %6s %10s %8s %5s %7s %6s  %s\n", "time", "share", "calls",
         "blocks", "threads", "regs", "shared", "occup.", "kernel");
  const size_t shown = std::min(top, table.launches.size());
  for (size_t i = 0; i < shown; ++i) {
    const LaunchRow &row = table.launches[i];
    printf("%10s %5.1f%% %6s %10s %8s %5lld %7lld %5.0f%%  %s\n",
           describeSeconds(row.seconds).c_str(),
           100 * row.seconds / table.seconds,
           cell("%.0f", row.calls / table.runs).c_str(), row.blocks.c_str(),
           row.threads.c_str(), static_cast<long long>(row.registers),
           static_cast<long long>(row.sharedBytes), 100 * row.occupancy,
           row.kernel.c_str());
  }
  if (shown < table.launches.size())
    printf("and %zu more (--top)\n", table.launches.size() - shown);
}

/// Which machine computes, and its peaks.
static void describeMachine(const Session &session, ProfileTable &table) {
  table.threads = session.report().threads;
  if (session.device() == kHost) {
    table.peakGflops = measurePeakGflops(table.threads);
    table.peakGBs = measureMemoryBandwidth(table.threads);
    return;
  }
  auto device = describeCudaDevice(session.device());
  if (!device)
    throw std::runtime_error(device.error().message());
  table.device = device->name + " (" + device->architecture + ", " +
                 std::to_string(device->multiprocessors) + " multiprocessors)";
  table.peakGflops = device->flops * 1e-9;
  table.peakTensorGflops = device->tensorFlops * 1e-9;
  table.peakGBs = device->bytes * 1e-9;
}

int profile(const ProfileCommand &command) {
  CommonOptions common = command.common;
  common.session.profile = true;
  std::shared_ptr<Session> session = loadSession(common);
  std::vector<std::string> inputs = filesOf(common);
  const std::vector<std::string> &more = session->report().files;
  inputs.insert(inputs.end(), more.begin(), more.end());
  for (const std::string &output : {command.trace, command.html})
    if (MaybeError error = checkOutput(output, inputs))
      throw std::runtime_error(error->message());
  std::vector<Feed> feeds = makeFeeds(*session, command.feeds);
  std::vector<TensorRef> refs = refsOf(feeds);
  auto once = [&] {
    auto results = session->run(refs);
    if (!results)
      throw std::runtime_error(results.error().message());
  };
  for (unsigned i = 0; i < command.warmup; ++i)
    once();
  session->takeProfile();
  using Clock = std::chrono::steady_clock;
  Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(command.seconds));
  do
    once();
  while (Clock::now() < end);
  Profile profile = session->takeProfile();

  ProfileTable table;
  table.model = common.model;
  table.inputs = describeFeeds(*session, feeds);
  describeMachine(*session, table);
  fillRows(profile, command.by, table);
  fillLaunches(profile, table);
  print(table, command.top);
  printLaunches(table, command.top);
  if (!command.trace.empty())
    writeText(command.trace, toTrace(profile), inputs);
  if (!command.html.empty())
    writeText(command.html, toHtml(table), inputs);
  return 0;
}
