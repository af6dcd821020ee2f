//===- ThreadPool.cpp - The process's worker threads ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/ThreadPool.h"
#include "ChunkRunner.h"
#include "CpuTopology.h"
#include "sardonyx/Runtime/RunContext.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <linux/futex.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sardonyx::runtime;

namespace {

constexpr unsigned kMaxWorkers = 256;
constexpr auto kSpin = std::chrono::microseconds(50);
/// Rounds that a caller waits before it gives its time slice away.
constexpr int kRoundsBeforeYield = 4000;

struct Loop;

/// One thread's part of a loop's iterations.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
  Loop *loop;
  unsigned index;
};

struct Loop {
  ThreadPool::Body body;
  void *env;
  RunContext *context;
  int64_t grain;
  unsigned count;
  Share *shares;
};

struct alignas(64) Worker {
  /// The share to work on, null when idle, or `kWorking`.
  std::atomic<Share *> mailbox{nullptr};
  /// Futex word: 1 while asleep or about to be.
  std::atomic<uint32_t> sleeping{0};
  int cpu = 0;
};

Share *const kWorking = reinterpret_cast<Share *>(alignof(Share));

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Works on the loop's iterations until all are taken: its own share first,
/// each time half of what is left, or all of less than twice the loop's grain,
/// then those of the others.
void work(Loop &loop, unsigned self) {
  ChunkRunner runner{loop.context, loop.body, loop.env};
  for (unsigned k = 0; k < loop.count; ++k) {
    Share &share = loop.shares[(self + k) % loop.count];
    int64_t begin = share.next.load(std::memory_order_relaxed);
    while (begin < share.end) {
      int64_t left = share.end - begin;
      int64_t take = left - loop.grain < loop.grain ? left : left / 2;
      int64_t units = take / loop.grain, most = runner.unitsOf(units);
      if (loop.context && most < units)
        take = most * loop.grain;
      if (!share.next.compare_exchange_weak(begin, begin + take,
                                            std::memory_order_relaxed))
        continue;
      runner.run(begin, begin + take);
      begin = share.next.load(std::memory_order_relaxed);
    }
  }
}

/// The same up to a failure of the run: whoever works must come back from it,
/// because the loop's caller waits for all.
void workLeavably(Loop &loop, unsigned self) {
  if (!loop.context)
    return work(loop, self);
  struct Call {
    Loop &loop;
    unsigned self;
  } call{loop, self};
  RunContext::callLeavably(
      [](void *env) {
        auto *call = static_cast<Call *>(env);
        work(call->loop, call->self);
      },
      &call);
}

void futexWait(std::atomic<uint32_t> &word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futexWake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Waits for a share: spins for a while, then sleeps.
Share *await(Worker &worker) {
  for (;;) {
    auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (Share *share = worker.mailbox.load(std::memory_order_acquire))
          return share;
        relax();
      }
    } while (std::chrono::steady_clock::now() < end);
    // Seen in this order by a caller that posts first and then looks whether
    // the worker sleeps.
    worker.sleeping.store(1, std::memory_order_seq_cst);
    while (!worker.mailbox.load(std::memory_order_seq_cst) &&
           worker.sleeping.load(std::memory_order_seq_cst))
      futexWait(worker.sleeping, 1);
    worker.sleeping.store(0, std::memory_order_relaxed);
  }
}

void workerMain(Worker *worker) {
  cpu_set_t *set = CPU_ALLOC(worker->cpu + 1);
  if (set) {
    size_t bytes = CPU_ALLOC_SIZE(worker->cpu + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(worker->cpu, bytes, set);
    // Without it the pool works too, only slower.
    (void)sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
  }
  pthread_setname_np(pthread_self(), "sardonyx");
  ThreadPool::setInsideLoop(true); // all it ever runs are bodies of loops
  for (;;) {
    Share *share = await(*worker);
    // The caller may have taken it back in the meantime.
    if (!worker->mailbox.compare_exchange_strong(share, kWorking,
                                                 std::memory_order_acquire))
      continue;
    Loop &loop = *share->loop;
    {
      RunContextScope scope(loop.context, share->index);
      workLeavably(loop, share->index);
    }
    worker->mailbox.store(nullptr, std::memory_order_release);
  }
}

} // namespace

struct ThreadPool::Impl {
  CpuTopology topology;
  unsigned workerCount = 0; // as many as the topology has processors
  std::unique_ptr<Worker[]> workers;
  /// A bit for each started worker that nobody has claimed.
  std::atomic<uint64_t> idle[kMaxWorkers / 64] = {};
  std::atomic<unsigned> started{0};
  std::mutex startMutex;

  void init() {
    topology = readCpuTopology();
    workerCount = std::min<unsigned>(topology.cpus.size(), kMaxWorkers);
    workers = std::make_unique<Worker[]>(workerCount);
    for (unsigned i = 0; i < workerCount; ++i)
      workers[i].cpu = topology.cpus[i];
  }

  /// Threads do not survive a fork: the child starts its own. The old worker
  /// records may have been in any state and are left alone.
  void forgetAfterFork() {
    (void)workers.release();
    for (auto &word : idle)
      word.store(0);
    started.store(0);
    new (&startMutex) std::mutex;
    init();
  }

  void start(unsigned wanted) {
    std::lock_guard<std::mutex> lock(startMutex);
    wanted = std::min(wanted, workerCount);
    for (unsigned i = started.load(); i < wanted; ++i) {
      pthread_t thread;
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      pthread_attr_setstacksize(&attributes, 8 << 20);
      // Signals are the program's, not the pool's.
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      int status = pthread_create(
          &thread, &attributes,
          [](void *worker) -> void * {
            workerMain(static_cast<Worker *>(worker));
            return nullptr;
          },
          &workers[i]);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      pthread_attr_destroy(&attributes);
      if (status != 0)
        return; // fewer threads, then
      idle[i / 64].fetch_or(uint64_t(1) << (i % 64));
      started.store(i + 1);
    }
  }

  /// Claims up to `wanted` idle workers, none on processor `avoid`.
  unsigned claim(unsigned wanted, int avoid, uint16_t *ids) {
    unsigned got = 0;
    unsigned words = (started.load(std::memory_order_relaxed) + 63) / 64;
    for (unsigned word = 0; word < words && got < wanted; ++word) {
      uint64_t seen = idle[word].load(std::memory_order_relaxed);
      for (;;) {
        uint64_t left = seen, taken = 0;
        unsigned count = got;
        while (left && count < wanted) {
          unsigned bit = __builtin_ctzll(left);
          left &= left - 1;
          unsigned id = word * 64 + bit;
          if (workers[id].cpu == avoid)
            continue;
          taken |= uint64_t(1) << bit;
          ids[count++] = static_cast<uint16_t>(id);
        }
        if (!taken)
          break;
        if (idle[word].compare_exchange_weak(seen, seen & ~taken,
                                             std::memory_order_acquire)) {
          got = count;
          break;
        }
      }
    }
    return got;
  }

  void giveBack(const uint16_t *ids, unsigned count) {
    for (unsigned i = 0; i < count;) {
      unsigned word = ids[i] / 64;
      uint64_t bits = 0;
      for (; i < count && ids[i] / 64u == word; ++i)
        bits |= uint64_t(1) << (ids[i] % 64);
      idle[word].fetch_or(bits, std::memory_order_release);
    }
  }

  /// Waits for a claimed worker, or lets it off if it has not begun.
  static void join(Worker &worker, Share *share) {
    Share *posted = share;
    if (worker.mailbox.compare_exchange_strong(posted, nullptr,
                                               std::memory_order_acquire))
      return;
    for (int round = 0; worker.mailbox.load(std::memory_order_acquire);
         ++round) {
      if (round < kRoundsBeforeYield)
        relax();
      else
        sched_yield();
    }
  }
};

ThreadPool::ThreadPool() : impl(new Impl) { impl->init(); }

/// Made while the program loads: a process that forks while a thread makes it
/// leaves its child waiting for that thread, which the child does not have.
[[maybe_unused]] static ThreadPool &madeEarly = ThreadPool::global();

ThreadPool &ThreadPool::global() {
  // Never destroyed: workers may outlive the statics of the program.
  static ThreadPool *pool = [] {
    pthread_atfork(nullptr, nullptr, [] { global().impl->forgetAfterFork(); });
    return new ThreadPool;
  }();
  return *pool;
}

unsigned ThreadPool::maxThreads() const { return impl->workerCount; }

unsigned ThreadPool::defaultThreads() const {
  unsigned threads = std::max(1u, impl->topology.cores);
  if (impl->topology.quota)
    threads = std::min(threads, impl->topology.quota);
  return threads;
}

void ThreadPool::parallelFor(int64_t n, int64_t grain, Body body, void *env,
                             unsigned threads, RunContext *context) {
  if (n <= 0)
    return;
  grain = std::max<int64_t>(1, grain);
  int64_t units = (n - 1) / grain + 1;
  const bool nested = insideLoop();
  unsigned wanted = static_cast<unsigned>(std::min<int64_t>(
      {units, static_cast<int64_t>(threads),
       static_cast<int64_t>(impl->workerCount), ThreadPool::kMaxThreads}));

  uint16_t ids[ThreadPool::kMaxThreads];
  unsigned helpers = 0;
  if (wanted > 1 && !nested) {
    // One more than needed: the one on the caller's own processor is not used.
    unsigned needed = std::min(wanted, impl->workerCount);
    if (impl->started.load(std::memory_order_acquire) < needed)
      impl->start(needed);
    helpers = impl->claim(wanted - 1, sched_getcpu(), ids);
  }
  if (helpers == 0)
    return runInline(n, grain, body, env, context);
  setInsideLoop(true);

  alignas(64) unsigned char memory[sizeof(Share) * ThreadPool::kMaxThreads];
  Share *shares = reinterpret_cast<Share *>(memory);
  unsigned count = helpers + 1;
  Loop loop{body, env, context, grain, count, shares};
  // The same iterations of loops over the same data go to the same threads.
  auto firstOf = [&](int64_t i) {
    return n / count * i + n % count * i / count;
  };
  for (unsigned i = 0; i < count; ++i) {
    Share *share = new (&shares[i]) Share;
    share->next.store(firstOf(i), std::memory_order_relaxed);
    share->end = firstOf(i + 1);
    share->loop = &loop;
    share->index = i;
  }
  for (unsigned i = 0; i < helpers; ++i)
    impl->workers[ids[i]].mailbox.store(&shares[i + 1],
                                        std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (unsigned i = 0; i < helpers; ++i) {
    Worker &worker = impl->workers[ids[i]];
    if (worker.sleeping.load(std::memory_order_relaxed)) {
      worker.sleeping.store(0, std::memory_order_relaxed);
      futexWake(worker.sleeping);
    }
  }
  workLeavably(loop, 0);
  for (unsigned i = 0; i < helpers; ++i)
    Impl::join(impl->workers[ids[i]], &shares[i + 1]);
  impl->giveBack(ids, helpers);
  setInsideLoop(nested);
}
