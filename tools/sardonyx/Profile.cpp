//===- Profile.cpp - sardonyx profile -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Profile.h"
#include "Commands.h"
#include "Json.h"
#include "sardonyx/Session/Devices.h"
#include "sardonyx/Session/NewFiles.h"
#include "sardonyx/Session/PeakFlops.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>

using namespace sardonyx;

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
  printf("%s %s\n", table.isDevice ? "device    " : "machine   ",
         table.machine.c_str());
  printf("peaks      %s\n", describePeaks(table).c_str());
  printf("run        %s, the mean of the middle half of %zu, %.1f %% of it in "
         "the steps below\n\n",
         describeSeconds(table.seconds).c_str(), table.runs,
         100 * (1 - table.outsideShare));
  printf("%10s %6s %6s %8s %7s %6s  %-28s %s\n", "time", "share", "calls",
         "GFLOP/s", "GB/s", "roof", "what", "nodes");
  size_t shown = std::min(top, table.rows.size());
  for (size_t i = 0; i < shown; ++i) {
    const ProfileRow &row = table.rows[i];
    double speed = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    printf(
        "%10s %5.1f%% %6s %8s %7s %6s  %-28s %s\n",
        describeSeconds(row.seconds).c_str(), 100 * row.share,
        cell("%.0f", row.calls).c_str(),
        cell("%.1f", row.flops * speed).c_str(),
        cell("%.1f", row.bytes * speed).c_str(),
        (cell("%.0f%%", 100 * row.roofline) + (row.reason.empty() ? "" : "*"))
            .c_str(),
        row.form.c_str(), listNodes(row.nodes).c_str());
  }
  std::set<std::string> reasons;
  for (size_t i = 0; i < shown; ++i)
    if (!table.rows[i].reason.empty())
      reasons.insert(table.rows[i].reason);
  for (const std::string &reason : reasons)
    printf("* more than 100%%: %s\n", reason.c_str());
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
           table.seconds > 0 ? 100 * row.seconds / table.seconds : 0,
           cell("%.0f", row.calls).c_str(), row.blocks.c_str(),
           row.threads.c_str(), static_cast<long long>(row.registers),
           static_cast<long long>(row.sharedBytes), 100 * row.occupancy,
           row.kernel.c_str());
  }
  if (shown < table.launches.size())
    printf("and %zu more (--top)\n", table.launches.size() - shown);
}

/// "AMD EPYC 9R14 (znver4)", or what is known of it.
static std::string describeProcessor() {
  const std::string code = llvm::sys::getHostCPUName().str();
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2) + " (" + code + ")";
  return code;
}

static void printJson(const ProfileTable &table, const Session &session,
                      const std::vector<Feed> &feeds) {
  JsonReport json("profile");
  json.add("model", table.model);
  json.addFeeds(session, feeds);
  json.add("machine", table.machine);
  json.add("threads", static_cast<int64_t>(table.threads));
  json.add("peak_gflops", table.peakGflops);
  json.add("peak_tensor_gflops", table.peakTensorGflops);
  json.add("peak_gbs", table.peakGBs);
  json.add("runs", static_cast<int64_t>(table.runs));
  json.add("run_seconds", table.seconds);
  json.add("outside_seconds", table.outsideSeconds);
  json.add("outside_share", table.outsideShare);
  json.list("rows", [&] {
    for (const ProfileRow &row : table.rows)
      json.object([&] {
        json.add("what", row.form);
        json.add("kernel", row.kernel);
        json.add("nodes", row.nodes);
        json.add("calls", row.calls);
        json.add("seconds", row.seconds);
        json.add("share", row.share);
        json.add("flops", row.flops);
        json.add("bytes", row.bytes);
        if (row.roofline > 0)
          json.add("roofline", row.roofline);
        else
          json.addNull("roofline");
        if (!row.reason.empty())
          json.add("reason", row.reason);
      });
  });
  json.list("launches", [&] {
    for (const LaunchRow &row : table.launches)
      json.object([&] {
        json.add("kernel", row.kernel);
        json.add("blocks", row.blocks);
        json.add("threads", row.threads);
        json.add("registers", row.registers);
        json.add("shared_bytes", row.sharedBytes);
        json.add("occupancy", row.occupancy);
        json.add("calls", row.calls);
        json.add("seconds", row.seconds);
      });
  });
}

/// Which machine computes, and its peaks.
static void describeMachine(const Session &session, ProfileTable &table) {
  table.threads = session.report().threads;
  if (session.device() == kHost) {
    table.machine = describeProcessor();
    table.peakGflops = measurePeakGflops(table.threads);
    table.peakGBs = measureMemoryBandwidth(table.threads);
    return;
  }
  auto device = describeCudaDevice(session.device());
  if (!device)
    throw std::runtime_error(device.error().message());
  table.isDevice = true;
  table.machine = device->name + " (" + device->architecture + ", " +
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
  fillTable(profile, command.by, table);
  if (command.json) {
    printJson(table, *session, feeds);
  } else {
    print(table, command.top);
    printLaunches(table, command.top);
  }
  if (!command.trace.empty())
    writeText(command.trace, toTrace(profile), inputs);
  if (!command.html.empty())
    writeText(command.html, toHtml(table), inputs);
  return 0;
}
