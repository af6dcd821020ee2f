#include "sardonyx/Runtime/BufferPool.h"
#include "sardonyx/Runtime/RunContext.h"
#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

using namespace sardonyx::runtime;

namespace {

void useMemory(void **) {
  for (int i = 0; i < 20; ++i)
    sdx_rt_free(sdx_rt_alloc(1000 + i * 100));
  sdx_rt_parallel_for(64, 1, [](int64_t, int64_t, void *) {}, nullptr);
}

} // namespace

TEST(Fork, ChildrenOfABusyProcessCanRun) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "its own locks don't survive such a fork";
#endif
  // Other threads hold the shared pool's lock most of the time.
  auto shared = std::make_shared<BufferPool>();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      RunContext own(2, shared);
      while (!stop) {
        shared->release(shared->allocate(5000));
        own.run(useMemory, nullptr);
        BufferPool another; // pools come and go, too
        another.allocate(10);
      }
    });
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60); // rather die than hang
      RunContext own(2, shared);
      bool ok = own.run(useMemory, nullptr);
      shared->release(shared->allocate(5000));
      _exit(ok ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Fork, AProcessMayEndWhileOthersRun) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    static std::atomic<int> running{0};
    for (int t = 0; t < 4; ++t)
      std::thread([] {
        RunContext run(4);
        ++running;
        for (;;)
          run.run(useMemory, nullptr);
      }).detach();
    while (running < 4)
      std::this_thread::yield();
    exit(0); // with destructors and handlers of exit
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
