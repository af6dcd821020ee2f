//===- CompilerWorkTest.cpp - Fatal errors on threads that are shared -----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../lib/Session/Compile/CompilerWork.h"
#include "llvm/Support/ErrorHandling.h"
#include "gtest/gtest.h"

using namespace sardonyx;

namespace {

TEST(CompilerWork, EndsWhereAPartDoes) {
  CompilerThreads threads(2);
  for (int i = 0; i < 3; ++i) {
    auto work = std::make_shared<CompilerWork>();
    bool goesOn = false;
    work->run([&] {
      llvm::ThreadPoolTaskGroup group(threads);
      group.async([] { llvm::reportFatalUsageError("an odd thing"); });
      group.wait();
      CompilerWork::leaveIfFatal();
      goesOn = true;
    });
    EXPECT_FALSE(goesOn);
    EXPECT_TRUE(work->stop);
    EXPECT_EQ(work->fatal(), "an odd thing");
  }
}

TEST(CompilerWork, LeavesOthersAlone) {
  CompilerThreads threads(2);
  auto broken = std::make_shared<CompilerWork>();
  broken->run([] { llvm::reportFatalInternalError("an odd thing"); });
  EXPECT_EQ(broken->fatal(), "an odd thing");
  EXPECT_EQ(CompilerWork::current(), nullptr);
  auto sound = std::make_shared<CompilerWork>();
  std::atomic<int> sum{0};
  bool goesOn = false;
  sound->run([&] {
    llvm::ThreadPoolTaskGroup group(threads);
    for (int i = 0; i < 8; ++i)
      group.async([&] { sum += CompilerWork::current() == sound; });
    group.wait();
    CompilerWork::leaveIfFatal();
    goesOn = true;
  });
  EXPECT_TRUE(goesOn);
  EXPECT_EQ(sum, 8);
  EXPECT_EQ(sound->fatal(), std::nullopt);
}

} // namespace
