//===- ProfileTable.cpp - What a profile tells ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Profile.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace sardonyx;

/// "Conv + Relu" of the nodes "'c' (Conv)" and "'r' (Relu)".
static std::string operatorsOf(const std::vector<std::string> &nodes) {
  std::string text;
  std::set<std::string> known;
  for (const std::string &node : nodes) {
    const size_t open = node.rfind('('), close = node.rfind(')');
    if (open == std::string::npos || close == std::string::npos || close < open)
      continue;
    const std::string name = node.substr(open + 1, close - open - 1);
    if (name != "Constant" && known.insert(name).second)
      text += (text.empty() ? "" : " + ") + name;
  }
  return text;
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
  for (ProfileRow &row : rows)
    row.operators = operatorsOf(row.nodes);
  return rowOf;
}

/// The half of the runs whose time is in the middle, by that time.
static std::vector<const ProfileRun *> middleRuns(const Profile &profile) {
  std::vector<const ProfileRun *> runs;
  for (const ProfileRun &run : profile.runs)
    runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(), [](auto *x, auto *y) {
    return x->end - x->begin < y->end - y->begin;
  });
  const size_t cut = runs.size() / 4;
  return {runs.begin() + cut, runs.end() - cut};
}

static bool contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

/// The time at the machine's peaks, and how that can be more than it took.
static void fillRoofline(const ProfileTable &table, ProfileRow &row) {
  // Products of narrow numbers have another peak; a processor's is not
  // measured.
  const bool isNarrow = contains(row.form, "product of");
  const double peak = isNarrow ? table.peakTensorGflops : table.peakGflops;
  if (row.seconds <= 0 || peak <= 0 || table.peakGBs <= 0)
    return;
  const double computing = row.flops / (peak * 1e9) / row.seconds;
  const double moving = row.bytes / (table.peakGBs * 1e9) / row.seconds;
  row.roofline = std::max(computing, moving);
  if (row.roofline <= 1)
    return;
  if (moving >= computing)
    row.reason = "the caches have the operands; the peak is memory's";
  else if (contains(row.form, "Winograd") || contains(row.form, "Strassen"))
    row.reason = "the algorithm multiplies less than is counted";
  else
    row.reason = "narrow numbers, tile registers or an algorithm that "
                 "multiplies less; the peak is that of f32 in vectors";
}

static void fillTimeline(const ProfileRun &run,
                         const std::vector<size_t> &rowOf,
                         const std::vector<size_t> &place,
                         ProfileTable &table) {
  for (const ProfileEvent &event : run.events)
    table.timeline.push_back(
        {place[rowOf[event.site]],
         static_cast<double>(event.begin - run.begin) * 1e-9,
         static_cast<double>(event.end - run.begin) * 1e-9});
  std::stable_sort(table.timeline.begin(), table.timeline.end(),
                   [](const TimelineStep &x, const TimelineStep &y) {
                     return x.begin < y.begin;
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

static void fillLaunches(const std::vector<const ProfileRun *> &runs,
                         ProfileTable &table) {
  const double count = static_cast<double>(runs.size());
  std::map<std::tuple<std::string, std::string, std::string>, LaunchRow> known;
  for (const ProfileRun *run : runs)
    for (const ProfileLaunch &launch : run->launches) {
      LaunchRow &row = known[{launch.kernel, describeSizes(launch.blocks),
                              describeSizes(launch.threads)}];
      row.kernel = launch.kernel;
      row.blocks = describeSizes(launch.blocks);
      row.threads = describeSizes(launch.threads);
      row.registers = launch.registers;
      row.sharedBytes = launch.sharedBytes;
      row.occupancy = launch.occupancy;
      row.calls += 1 / count;
      row.seconds +=
          static_cast<double>(launch.end - launch.begin) * 1e-9 / count;
    }
  for (auto &[key, row] : known)
    table.launches.push_back(std::move(row));
  std::stable_sort(table.launches.begin(), table.launches.end(),
                   [](const LaunchRow &x, const LaunchRow &y) {
                     return x.seconds > y.seconds;
                   });
}

void fillTable(const Profile &profile, const std::string &by,
               ProfileTable &table) {
  const std::vector<size_t> rowOf = assignRows(profile, by, table.rows);
  const std::vector<const ProfileRun *> runs = middleRuns(profile);
  table.runs = profile.runs.size();
  if (runs.empty())
    return;
  const double count = static_cast<double>(runs.size());
  double inSteps = 0;
  for (const ProfileRun *run : runs) {
    for (const ProfileEvent &event : run->events) {
      ProfileRow &row = table.rows[rowOf[event.site]];
      const double seconds =
          static_cast<double>(event.end - event.begin) * 1e-9 / count;
      row.seconds += seconds;
      inSteps += seconds;
      row.calls += 1 / count;
      row.flops += event.flops / count;
      row.bytes += event.bytes / count;
    }
    table.seconds += static_cast<double>(run->end - run->begin) * 1e-9 / count;
  }
  // Steps of a device may overlap.
  const double whole = std::max(table.seconds, inSteps);
  table.outsideSeconds = whole - inSteps;
  if (whole > 0) {
    table.outsideShare = table.outsideSeconds / whole;
    for (ProfileRow &row : table.rows)
      row.share = row.seconds / whole;
  }
  for (ProfileRow &row : table.rows)
    fillRoofline(table, row);
  std::vector<size_t> order(table.rows.size()), place(table.rows.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return table.rows[x].seconds > table.rows[y].seconds;
  });
  std::vector<ProfileRow> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(table.rows[order[i]]));
  }
  table.rows = std::move(sorted);
  fillTimeline(*runs[runs.size() / 2], rowOf, place, table);
  fillLaunches(runs, table);
}
