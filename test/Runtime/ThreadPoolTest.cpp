#include "sardonyx/Runtime/ThreadPool.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using sardonyx::runtime::ThreadPool;

namespace {

/// Calls `body(begin, end)` over [0, n).
template <typename F>
void loop(int64_t n, int64_t grain, unsigned threads, F body) {
  ThreadPool::global().parallelFor(
      n, grain,
      [](int64_t begin, int64_t end, void *env) {
        (*static_cast<F *>(env))(begin, end);
      },
      &body, threads, nullptr);
}

} // namespace

TEST(ThreadPool, CoversEachIterationOnce) {
  for (int64_t n : {0, 1, 2, 3, 7, 64, 1000, 4099})
    for (int64_t grain : {1, 3, 64, 5000})
      for (unsigned threads : {1u, 2u, 4u, 1000u}) {
        std::unique_ptr<std::atomic<int>[]> count(
            new std::atomic<int>[n + 1]());
        loop(n, grain, threads, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_TRUE(end - begin >= grain / 2 || end == n);
          for (int64_t i = begin; i < end; ++i)
            ++count[i];
        });
        for (int64_t i = 0; i < n; ++i)
          ASSERT_EQ(count[i], 1) << n << " " << grain << " " << threads;
      }
}

TEST(ThreadPool, UsesSeveralThreadsAndNoMoreThanAllowed) {
  ThreadPool &pool = ThreadPool::global();
  EXPECT_GE(pool.defaultThreads(), 1u);
  EXPECT_LE(pool.defaultThreads(), pool.maxThreads());
  if (pool.maxThreads() < 2)
    GTEST_SKIP() << "one processor";
  std::mutex mutex;
  std::set<std::thread::id> seen;
  auto body = [&](int64_t, int64_t) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  loop(64, 1, 2, body);
  EXPECT_EQ(seen.size(), 2u);
  seen.clear();
  loop(64, 1, 1, body);
  EXPECT_EQ(seen.size(), 1u);
}

TEST(ThreadPool, GivesThreadsEvenShares) {
  if (ThreadPool::global().maxThreads() < 2)
    GTEST_SKIP() << "one processor";
  // Ten iterations are worth a hand-over; two threads have six each.
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> chunks;
  loop(12, 10, 2, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    chunks.insert({begin, end});
  });
  EXPECT_EQ(chunks, (std::set<std::pair<int64_t, int64_t>>{{0, 6}, {6, 12}}));
}

TEST(ThreadPool, RunsNestedLoopsInline) {
  std::atomic<int64_t> sum{0};
  loop(8, 1, 8, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(ThreadPool::insideLoop());
    auto self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i)
      loop(100, 1, 8, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        sum += e - b;
      });
  });
  EXPECT_EQ(sum, 800);
  EXPECT_FALSE(ThreadPool::insideLoop());
}

TEST(ThreadPool, ServesSeveralCallersAtATime) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        loop(100, 1, 4, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(sum, 4 * 500 * 100);
}

TEST(ThreadPool, SleepsWhenIdle) {
  loop(64, 1, 1000, [](int64_t, int64_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::clock_t before = std::clock(); // of all threads of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  double used = double(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.02);
  // ... and wakes again.
  std::atomic<int64_t> sum{0};
  loop(1000, 1, 1000, [&](int64_t b, int64_t e) { sum += e - b; });
  EXPECT_EQ(sum, 1000);
}

TEST(ThreadPool, WorksInAForkedChild) {
  loop(64, 1, 4, [](int64_t, int64_t) {});
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    for (int i = 0; i < 100; ++i)
      loop(64, 1, 4, [&](int64_t b, int64_t e) { sum += e - b; });
    _exit(sum == 6400 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPool, ForksAndJoinsQuickly) {
  unsigned threads = std::min(4u, ThreadPool::global().maxThreads());
  std::vector<double> times;
  for (int i = 0; i < 5000; ++i) {
    auto start = std::chrono::steady_clock::now();
    loop(threads, 1, threads, [](int64_t, int64_t) {});
    auto end = std::chrono::steady_clock::now();
    times.push_back(
        std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::sort(times.begin(), times.end());
  RecordProperty("median_us", std::to_string(times[times.size() / 2]));
  printf("fork-join on %u threads: median %.2f us, best %.2f us\n", threads,
         times[times.size() / 2], times[0]);
  // Far above what it takes on a quiet machine: only a broken pool is slower.
  EXPECT_LT(times[times.size() / 2], 1000);
}
