#include "PtxTest.h"
#include <gtest/gtest.h>

using namespace sardonyx::fakecuda;

static const char *const kShared = ".extern .shared .align 16 .b8 dynamic[];";

static void expectFault(const std::string &fault,
                        const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(fault.find(part), std::string::npos)
        << "'" << part << "' isn't in: " << fault;
}

// Thread 5 stores behind a buffer of 5 words.
TEST(Faults, StoreOutOfBounds) {
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.b32 [%rd1], %r1;)");
  uint64_t out = kernel.put(std::vector<uint32_t>(5));
  expectFault(kernel.run({out}, 8),
              {"kernel k, block (0, 0, 0), thread (5, 0, 0), line",
               "st.global.b32: writes 4 bytes", "out of bounds",
               "byte 20 of an allocation of 20 bytes"});
  EXPECT_EQ(kernel.run({out}, 5), "");
}

// A launch that may begin early waits before it touches device memory, and
// before it ends.
TEST(Faults, NoWaitForWhatComesBefore) {
  const std::string load =
                        "ld.param.b64 %rd1, [p0];\nld.global.b32 %r1, [%rd1];",
                    wait = "griddepcontrol.launch_dependents;\n"
                           "griddepcontrol.wait;\n";
  PtxKernel early(load + wait), late(wait + load), never("mov.b32 %r1, 0;"),
      store("ld.param.b64 %rd1, [p0];\nmov.b32 %r1, 1;\n"
            "st.global.b32 [%rd1], %r1;\n" +
            wait);
  for (PtxKernel *kernel : {&early, &late, &never, &store}) {
    kernel->isDependent = true;
    uint64_t memory = kernel->put(std::vector<uint32_t>(1));
    std::string fault = kernel->run({memory}, 32, 2);
    if (kernel == &late)
      EXPECT_EQ(fault, "");
    else if (kernel == &never)
      expectFault(fault, {"ends without griddepcontrol.wait"});
    else
      expectFault(fault, {kernel == &store ? "writes" : "reads",
                          "device memory before griddepcontrol.wait"});
    kernel->isDependent = false;
    EXPECT_EQ(kernel->run({memory}, 32, 2), "");
  }
}

TEST(Faults, LoadOfMemoryThatWasReleased) {
  PtxKernel kernel("ld.param.b64 %rd1, [p0];\nld.global.b8 %rs1, [%rd1];");
  uint64_t in = kernel.put(std::vector<uint32_t>(5));
  EXPECT_EQ(kernel.run({in}, 1), "");
  EXPECT_TRUE(kernel.memory.release(in));
  EXPECT_FALSE(kernel.memory.release(in));
  expectFault(kernel.run({in}, 1), {"reads 1 bytes", "out of bounds"});
}

TEST(Faults, MisalignedAccess) {
  PtxKernel kernel(
      "ld.param.b64 %rd1, [p0];\nld.global.v2.b32 {%r1, %r2}, [%rd1+4];");
  uint64_t in = kernel.put(std::vector<uint32_t>(5));
  expectFault(kernel.run({in}, 1), {"reads 8 bytes", "isn't aligned"});
}

TEST(Faults, SharedMemoryOutOfBounds) {
  PtxKernel kernel("mov.u32 %r1, %tid.x;\nmov.b32 %r2, dynamic;\n"
                   "mad.lo.u32 %r2, %r1, 4, %r2;\nst.shared.b32 [%r2], %r1;",
                   1, kShared);
  EXPECT_EQ(kernel.run({0}, 16, 1, 64), "");
  expectFault(kernel.run({0}, 17, 1, 64),
              {"thread (16, 0, 0)", "byte 64 of 64 bytes of shared memory"});
}

TEST(Faults, RaceBetweenWarps) {
  // Thread t reads what thread t + 32 wrote.
  std::string store = "mov.u32 %r1, %tid.x;\nmov.b32 %r2, dynamic;\n"
                      "mad.lo.u32 %r2, %r1, 4, %r2;\nst.shared.b32 [%r2], %r1;";
  std::string load = "setp.ge.u32 %p1, %r1, 32;\n"
                     "@!%p1 ld.shared.b32 %r3, [%r2+128];\n"
                     "@!%p1 st.shared.b32 [%r2], %r3;";
  PtxKernel without(store + load, 1, kShared);
  expectFault(without.run({0}, 64, 1, 256), {"race on byte", "shared memory"});
  PtxKernel with(store + "bar.sync 0;\n" + load, 1, kShared);
  EXPECT_EQ(with.run({0}, 64, 1, 256), "");
}

TEST(Faults, BarriersOfAWarpOrderItsLanes) {
  std::string store = "mov.u32 %r1, %tid.x;\nmov.b32 %r2, dynamic;\n"
                      "mad.lo.u32 %r3, %r1, 4, %r2;\nst.shared.b32 [%r3], %r1;";
  std::string load = "xor.b32 %r4, %r1, 1;\nmad.lo.u32 %r4, %r4, 4, %r2;\n"
                     "ld.shared.b32 %r5, [%r4];";
  PtxKernel without(store + load, 1, kShared);
  expectFault(without.run({0}, 32, 1, 128), {"race", "thread 1 wrote"});
  PtxKernel with(store + "bar.warp.sync -1;\n" + load, 1, kShared);
  EXPECT_EQ(with.run({0}, 32, 1, 128), "");
}

TEST(Faults, HalvesOfAWordAreNoRace) {
  PtxKernel kernel("mov.u32 %r1, %tid.x;\nmov.b32 %r2, dynamic;\n"
                   "mad.lo.u32 %r2, %r1, 2, %r2;\nmov.b16 %rs1, 7;\n"
                   "st.shared.b16 [%r2], %rs1;",
                   1, kShared);
  EXPECT_EQ(kernel.run({0}, 64, 1, 128), "");
}

// A copy of 16 bytes by each of 4 threads; `wait` comes before the load.
static std::string copyAndLoad(const std::string &wait) {
  return R"(
    ld.param.b64 %rd1, [p0];
    ld.param.b64 %rd2, [p1];
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, dynamic;
    mad.lo.u32 %r3, %r1, 16, %r2;
    mul.wide.u32 %rd3, %r1, 16;
    add.s64 %rd4, %rd1, %rd3;
    cp.async.cg.shared.global [%r3], [%rd4], 16;
    cp.async.commit_group;
    )" + wait +
         R"(
    xor.b32 %r4, %r1, 1;
    mad.lo.u32 %r4, %r4, 16, %r2;
    ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r4];
    add.s64 %rd5, %rd2, %rd3;
    st.global.v4.b32 [%rd5], {%r5, %r6, %r7, %r8};)";
}

TEST(Faults, CopiesHaveToBeWaitedFor) {
  std::vector<uint32_t> values(16), zeros(16);
  for (uint32_t i = 0; i < 16; ++i)
    values[i] = 100 + i;
  auto run = [&](const std::string &wait, std::vector<uint32_t> &result) {
    PtxKernel kernel(copyAndLoad(wait), 2, kShared);
    uint64_t in = kernel.put(values), out = kernel.put(zeros);
    std::string fault = kernel.run({in, out}, 4, 1, 64);
    result = kernel.get<uint32_t>(out, 16);
    return fault;
  };
  std::vector<uint32_t> result;
  EXPECT_EQ(run("cp.async.wait_group 0;\nbar.sync 0;", result), "");
  for (uint32_t i = 0; i < 16; ++i)
    EXPECT_EQ(result[i], 100 + (i ^ 4));
  expectFault(run("cp.async.wait_group 1;\nbar.sync 0;", result),
              {"unfinished async copy"});
  expectFault(run("bar.sync 0;", result), {"unfinished async copy"});
  // Each thread waits for its own copies only.
  expectFault(run("cp.async.wait_group 0;", result), {"race on byte"});
}

TEST(Faults, BarriersThatNotAllReach) {
  PtxKernel kernel("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 3;\n"
                   "@%p1 bra $other;\nbar.sync 0;\nret;\n$other:\nbar.sync 1;");
  expectFault(kernel.run({0}, 64),
              {"deadlock: 64 threads wait", "bar.sync", "line"});
}

TEST(Faults, MbarrierThatNobodyArrivesAt) {
  PtxKernel kernel("mov.b32 %r1, dynamic;\n"
                   "mbarrier.init.shared.b64 [%r1], 2;\n"
                   "mbarrier.arrive.shared.b64 %rd1, [%r1];\n$wait:\n"
                   "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
                   "@!%p1 bra $wait;",
                   1, kShared);
  expectFault(kernel.run({0}, 1, 1, 16), {"deadlock", "mbarrier.try_wait"});
}

TEST(Faults, ShuffleWithALaneThatIsNotThere) {
  PtxKernel kernel("mov.u32 %r1, %tid.x;\n"
                   "shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;");
  EXPECT_EQ(kernel.run({0}, 32), "");
  expectFault(kernel.run({0}, 16), {"reads lane 16"});
}

TEST(Faults, LaunchesThatDoNotFit) {
  PtxKernel kernel("trap;");
  EXPECT_EQ(kernel.run({0, 0}, 1),
            "kernel k: a launch with 16 bytes of parameters, where it has 8");
  EXPECT_EQ(kernel.run({0}, 1025),
            "kernel k: a launch of more threads a block than its 1024");
  EXPECT_EQ(kernel.run({0}, 0), "kernel k: a launch of no threads");
  expectFault(kernel.run({0}, 1), {"trap: the kernel gave up"});
}

TEST(Memory, FindsWritesBesideAllocations) {
  Memory memory;
  uint64_t a = memory.allocate(100), b = memory.allocate(0);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_NE(b, 0u);
  EXPECT_EQ(memory.allocatedBytes(), 100u);
  EXPECT_EQ(memory.countAllocations(), 2u);
  EXPECT_EQ(memory.allocate(1, 3), 0u);
  EXPECT_EQ(memory.resolve(a + 50, 50), reinterpret_cast<void *>(a + 50));
  EXPECT_EQ(memory.resolve(a + 50, 51), nullptr);
  EXPECT_EQ(memory.resolve(a - 1, 1), nullptr);
  EXPECT_EQ(memory.resolve(0, 1), nullptr);
  EXPECT_EQ(*reinterpret_cast<uint8_t *>(a + 99), 0xff);
  EXPECT_EQ(memory.checkGuards(), "");
  *reinterpret_cast<uint8_t *>(a + 100) = 0;
  EXPECT_NE(memory.checkGuards().find("allocation of 100 bytes"),
            std::string::npos);
}
