//===- StoppableWork.cpp - Loading and compiling that can be ended --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/StoppableWork.h"
#include "lib/Session/Compile/CompilerWork.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <pthread.h>
#include <set>

using namespace sardonyx;
using Clock = std::chrono::steady_clock;

/// Models nest deeper than the stack of just any thread.
static constexpr size_t kStackBytes = size_t(64) << 20;
static constexpr auto kQuestionInterval = std::chrono::milliseconds(20);
/// How long the end of the process waits for models to be loaded.
static constexpr auto kExitPatience = std::chrono::seconds(10);

/// After how many compilations their end is registered anew.
static constexpr unsigned kRegistrations = 16;

namespace {

struct Job {
  const SessionOptions &options;
  const StoppableWork &task;
  std::shared_ptr<CompilerWork> work = std::make_shared<CompilerWork>();
  bool done = false;
};

/// All that the process loads. Never destroyed: threads may outlive the
/// statics.
struct Jobs {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<Job *> running;
  unsigned loads = 0, finished = 0;
  std::atomic<bool> exiting{false};
  /// A fork left locks of the compiler in the hands of threads that the child
  /// does not have.
  bool lost = false;

  static Jobs &all() {
    static Jobs *jobs = [] {
      pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                     [] { all().forgetAfterFork(); });
      return new Jobs;
    }();
    return *jobs;
  }

  /// What is registered later is called earlier: before the compiler's statics
  /// that exist by now are destroyed.
  static void stopAtExit() {
    atexit([] { all().stopAll(); });
  }

  void stopAll() {
    std::unique_lock<std::mutex> lock(mutex);
    exiting = true;
    for (Job *job : running)
      job->work->stop.store(true);
    changed.wait_for(lock, kExitPatience, [&] { return loads == 0; });
  }

  void forgetAfterFork() {
    lost |= !running.empty();
    running.clear();
    loads = 0;
    new (&changed) std::condition_variable;
    mutex.unlock();
  }

  MaybeError add(Job &job) {
    std::lock_guard<std::mutex> lock(mutex);
    if (lost)
      return Error(ErrorKind::Failed,
                   "this process was forked while another thread was compiling "
                   "a model; it can run models and load compiled ones, but not "
                   "compile");
    job.work->stop.store(exiting);
    running.insert(&job);
    return std::nullopt;
  }

  void finish(Job &job) {
    std::lock_guard<std::mutex> lock(mutex);
    // The first compilations make statics of their own.
    if (finished++ < kRegistrations)
      stopAtExit();
    job.done = true;
    running.erase(&job);
    changed.notify_all();
  }
};

} // namespace

/// Made while the program loads: a process that forks while a thread makes them
/// leaves its child waiting for that thread, which the child does not have.
[[maybe_unused]] static Jobs &madeEarly = Jobs::all();

LoadScope::LoadScope() {
  Jobs &jobs = Jobs::all();
  std::lock_guard<std::mutex> lock(jobs.mutex);
  if (jobs.exiting)
    problem = Error(ErrorKind::Failed, "the process is ending");
  else if (jobs.loads++ == 0 && jobs.finished == 0)
    Jobs::stopAtExit();
}

LoadScope::~LoadScope() {
  if (problem)
    return;
  Jobs &jobs = Jobs::all();
  std::lock_guard<std::mutex> lock(jobs.mutex);
  --jobs.loads;
  jobs.changed.notify_all();
}

void sardonyx::stopLoading() { Jobs::all().stopAll(); }

const std::atomic<bool> &LoadScope::processEnds() {
  return Jobs::all().exiting;
}

bool LoadScope::isOnly() {
  Jobs &jobs = Jobs::all();
  std::lock_guard<std::mutex> lock(jobs.mutex);
  return jobs.loads <= 1;
}

static void *runJob(void *argument) {
  Job &job = *static_cast<Job *>(argument);
  job.work->run([&] { job.task(&job.work->stop); });
  Jobs::all().finish(job);
  return nullptr;
}

bool sardonyx::startThread(pthread_t &thread, const pthread_attr_t &attributes,
                           void *(*run)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread, &attributes, run, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

static bool startJob(pthread_t &thread, Job &job) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  bool started = startThread(thread, attributes, runJob, &job);
  pthread_attr_destroy(&attributes);
  return started;
}

/// Waits for the job; the sentence that it was stopped with, or none.
static std::string waitFor(Job &job) {
  Jobs &jobs = Jobs::all();
  const double limit = job.options.compileTimeout;
  auto start = Clock::now();
  std::string reason;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(jobs.mutex);
      if (jobs.changed.wait_for(lock, kQuestionInterval,
                                [&] { return job.done; }))
        return reason;
    }
    if (!reason.empty())
      continue;
    if (limit > 0 &&
        std::chrono::duration<double>(Clock::now() - start).count() > limit) {
      char text[96];
      snprintf(text, sizeof(text),
               "compiling the model took longer than its limit of %g s", limit);
      reason = text;
    } else if (job.options.interrupted && job.options.interrupted()) {
      reason = "loading the model was interrupted";
    }
    if (!reason.empty())
      job.work->stop.store(true);
  }
}

MaybeError sardonyx::runStoppably(const SessionOptions &options,
                                  const StoppableWork &work) {
  Job job{options, work};
  if (MaybeError error = Jobs::all().add(job))
    return error;
  pthread_t thread;
  std::string reason;
  if (startJob(thread, job)) {
    reason = waitFor(job);
    pthread_join(thread, nullptr);
  } else {
    runJob(&job);
  }
  if (!reason.empty())
    return Error(ErrorKind::Failed, reason);
  if (std::optional<std::string> fatal = job.work->fatal())
    return Error(ErrorKind::Failed,
                 "the model could not be compiled: " + *fatal);
  return std::nullopt;
}
