//===- Tune.cpp - sardonyx plan --tune ------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Round by round each kernel goes by another one of its plans, all kernels at a
// time, and a profile tells how long each took.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Profile.h"
#include "Progress.h"
#include "sardonyx/Session/Compile.h"
#include "sardonyx/Targets/Plans.h"
#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <stdexcept>

using namespace sardonyx;

namespace {

/// A kernel's line of a plan, and what was measured.
struct TunedKernel {
  std::string fingerprint, name, comment;
  /// The one that is chosen without a search comes first.
  std::vector<std::string> plans;
  std::vector<double> seconds;

  size_t best() const {
    // Less than that is noise.
    constexpr double kGain = 0.97;
    const size_t fastest =
        std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
    return seconds[fastest] < kGain * seconds.front() ? fastest : 0;
  }
};

} // namespace

/// The kernels of what planModel() writes with other plans.
static std::vector<TunedKernel> parseKernels(const std::string &text) {
  std::vector<TunedKernel> kernels;
  std::istringstream lines(text);
  const std::string other = kOtherPlan.str(), comment = " # ";
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(other, 0) == 0 && !kernels.empty()) {
      kernels.back().plans.push_back(line.substr(other.size()));
      continue;
    }
    const size_t space = line.find(' '), mark = line.find(comment);
    if (line.empty() || line[0] == '#' || mark == std::string::npos)
      continue;
    TunedKernel &kernel = kernels.emplace_back();
    kernel.fingerprint = line.substr(0, space);
    kernel.plans.push_back(line.substr(space + 1, mark - space - 1));
    kernel.comment = line.substr(mark + comment.size());
    kernel.name = kernel.comment.substr(0, kernel.comment.find(','));
  }
  return kernels;
}

/// A plan by which each kernel goes by its number `round`, or its last one.
static std::string planOf(const std::vector<TunedKernel> &kernels,
                          size_t round) {
  std::string text;
  for (const TunedKernel &kernel : kernels)
    text += kernel.fingerprint + " " +
            kernel.plans[std::min(round, kernel.plans.size() - 1)] + "\n";
  return text;
}

static double median(std::vector<double> numbers) {
  if (numbers.empty())
    return 0;
  std::nth_element(numbers.begin(), numbers.begin() + numbers.size() / 2,
                   numbers.end());
  return numbers[numbers.size() / 2];
}

/// Seconds that all calls of each kernel take in a run.
static std::map<std::string, double> timeKernels(const Profile &profile) {
  std::map<std::string, std::vector<double>> seconds;
  for (const ProfileRun &run : profile.runs) {
    std::map<std::string, double> ofRun;
    for (const ProfileEvent &event : run.events)
      ofRun[profile.sites[event.site].kernel] +=
          1e-9 * static_cast<double>(event.end - event.begin);
    for (const auto &[kernel, time] : ofRun)
      seconds[kernel].push_back(time);
  }
  std::map<std::string, double> medians;
  for (const auto &[kernel, times] : seconds)
    medians[kernel] = median(times);
  return medians;
}

/// Runs the model by a plan for so many seconds.
static std::map<std::string, double>
measure(const PlanCommand &command, const std::string &plan, double seconds) {
  SessionOptions options = sessionOptions(command.common);
  options.plan = plan;
  options.profile = true;
  auto session = Session::load(command.common.model, options);
  if (!session)
    throw std::runtime_error(session.error().message());
  const std::vector<Feed> feeds = makeFeeds(**session, command.feeds);
  const std::vector<TensorRef> refs = refsOf(feeds);
  auto once = [&] {
    if (auto results = (*session)->run(refs); !results)
      throw std::runtime_error(results.error().message());
  };
  for (unsigned i = 0; i < command.warmup; ++i)
    once();
  (*session)->takeProfile();
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  do
    once();
  while (Clock::now() < end);
  return timeKernels((*session)->takeProfile());
}

static std::string printPlan(const std::vector<TunedKernel> &kernels) {
  std::string text = "# Plans found by timing: fingerprint, plan # kernel, "
                     "form, first node, time in a run, and of the plan without "
                     "a search\n";
  for (const TunedKernel &kernel : kernels) {
    const size_t best = kernel.best();
    text += kernel.fingerprint + " " + kernel.plans[best] + " # " +
            kernel.comment + ", " + describeSeconds(kernel.seconds[best]);
    if (best)
      text += " instead of " + describeSeconds(kernel.seconds.front());
    text += "\n";
  }
  return text;
}

std::string tunePlan(const PlanCommand &command, const std::string &text) {
  std::vector<TunedKernel> kernels = parseKernels(text);
  size_t rounds = 0;
  for (const TunedKernel &kernel : kernels)
    rounds = std::max(rounds, kernel.plans.size());
  if (rounds < 2)
    throw std::runtime_error("no kernel of the model has another plan to time; "
                             "--tune is for --device cuda");
  for (size_t round = 0; round < rounds; ++round) {
    Progress progress("timing plans, round " + std::to_string(round + 1) +
                      " of " + std::to_string(rounds));
    const std::map<std::string, double> times =
        measure(command, planOf(kernels, round), command.seconds);
    for (TunedKernel &kernel : kernels) {
      if (round >= kernel.plans.size())
        continue;
      auto found = times.find(kernel.name);
      // What no run calls keeps its plan.
      kernel.seconds.push_back(found == times.end() ? 0 : found->second);
    }
  }
  return printPlan(kernels);
}
