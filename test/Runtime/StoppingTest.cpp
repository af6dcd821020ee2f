#include "sardonyx/Runtime/RunContext.h"
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace sardonyx::runtime;

// The functions below stand for compiled code: nothing in them has a
// destructor. Each goes on for ever, or for very long, unless it is ended.

namespace {

void loopForEver(void **) {
  for (;;)
    sdx_rt_poll(0, nullptr);
}

void callKernelsForEver(void **) {
  for (;;)
    sdx_rt_parallel_for(1, 1, [](int64_t, int64_t, void *) {}, nullptr);
}

/// Hours of work in one parallel loop, a millisecond an iteration.
void loopInParallel(void **) {
  sdx_rt_parallel_for(
      10000000, 1,
      [](int64_t begin, int64_t end, void *) {
        for (; begin < end; ++begin)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      nullptr);
}

/// Loops within a chunk that never ends.
void loopInAChunk(void **) {
  sdx_rt_parallel_for(
      64, 1,
      [](int64_t, int64_t, void *) {
        for (;;)
          sdx_rt_poll(0, nullptr);
      },
      nullptr);
}

constexpr sdx_entry_point kEndless[] = {loopForEver, callKernelsForEver,
                                        loopInParallel, loopInAChunk};

} // namespace

TEST(Stopping, TerminateEndsARun) {
  for (unsigned threads : {1u, 2u, 4u})
    for (sdx_entry_point entry : kEndless) {
      RunContext run(threads);
      std::atomic<bool> terminate{false};
      RunLimits limits;
      limits.terminate = &terminate;
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        terminate = true;
      });
      EXPECT_FALSE(run.run(entry, nullptr, limits));
      EXPECT_EQ(run.failure(), "the run was terminated");
      other.join();
      // None begins while it is set, and all is well after it.
      EXPECT_FALSE(run.run([](void **) { FAIL(); }, nullptr, limits));
      EXPECT_TRUE(run.run([](void **) {}, nullptr));
    }
}

TEST(Stopping, ATimeLimitEndsARun) {
  for (unsigned threads : {1u, 2u})
    for (sdx_entry_point entry : kEndless) {
      RunContext run(threads);
      RunLimits limits;
      limits.seconds = 0.02;
      EXPECT_FALSE(run.run(entry, nullptr, limits));
      EXPECT_EQ(run.failure(), "the run took longer than its limit of 0.02 s");
      limits.seconds = 1e300;
      EXPECT_TRUE(
          run.run([](void **) { sdx_rt_poll(0, nullptr); }, nullptr, limits));
    }
}

TEST(Stopping, AnInterruptEndsARun) {
  for (unsigned threads : {1u, 2u})
    for (sdx_entry_point entry : kEndless) {
      RunContext run(threads);
      RunLimits limits;
      int questions = 0;
      auto self = std::this_thread::get_id();
      limits.interrupted = [&] {
        EXPECT_EQ(std::this_thread::get_id(), self);
        return ++questions == 3;
      };
      EXPECT_FALSE(run.run(entry, nullptr, limits));
      EXPECT_EQ(run.failure(), "the run was interrupted");
      EXPECT_EQ(questions, 3);
    }
}

TEST(Stopping, ALoopMayTakeSoManyTripsOnly) {
  RunContext run(1);
  RunLimits limits;
  limits.trips = 1000;
  static int64_t trips;
  auto entry = [](void **) {
    for (trips = 1;; ++trips)
      sdx_rt_poll(trips, "node 'search'");
  };
  EXPECT_FALSE(run.run(entry, nullptr, limits));
  EXPECT_EQ(trips, 1001);
  EXPECT_EQ(run.failure(), "node 'search': the loop takes more than the 1000 "
                           "trips that one may take");
  EXPECT_TRUE(run.run(
      [](void **) {
        for (int64_t trip = 1; trip <= 1000; ++trip)
          sdx_rt_poll(trip, nullptr);
      },
      nullptr, limits));
}

TEST(Stopping, AQuestionMayRunSomethingItself) {
  RunContext run(2), inner(2);
  RunLimits limits;
  limits.interrupted = [&] {
    EXPECT_TRUE(inner.run([](void **) { sdx_rt_alloc(10); }, nullptr));
    EXPECT_FALSE(inner.run(
        [](void **) { sdx_rt_check_failed("no", SDX_RT_FAILED, 0, 0, 0, 0); },
        nullptr));
    EXPECT_EQ(RunContext::current(), &run);
    return true;
  };
  EXPECT_FALSE(run.run(loopInParallel, nullptr, limits));
  EXPECT_EQ(run.failure(), "the run was interrupted");
}

TEST(Stopping, ChunksOfALoopCoverItOnce) {
  for (unsigned threads : {1u, 3u}) {
    RunContext run(threads);
    static std::atomic<int> seen[100003];
    for (auto &count : seen)
      count = 0;
    EXPECT_TRUE(run.run(
        [](void **) {
          sdx_rt_parallel_for(
              100003, 7,
              [](int64_t begin, int64_t end, void *) {
                EXPECT_TRUE(end - begin >= 7 / 2 || end == 100003);
                for (; begin < end; ++begin)
                  ++seen[begin];
              },
              nullptr);
        },
        nullptr));
    for (auto &count : seen)
      ASSERT_EQ(count, 1);
  }
}

TEST(Stopping, ManyShortChunksComeToAnEnd) {
  // Chunks grow as long as they are quick; here all of them are.
  RunContext run(1);
  EXPECT_TRUE(run.run(
      [](void **) {
        sdx_rt_parallel_for(
            INT64_MAX - 1, 1, [](int64_t, int64_t, void *) {}, nullptr);
      },
      nullptr));
}
