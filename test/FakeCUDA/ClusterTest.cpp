#include "PtxTest.h"
#include <gtest/gtest.h>

static const char *const kShared = ".extern .shared .align 16 .b8 dynamic[];";
static const char *const kFour =
    ".explicitcluster\n.reqnctapercluster 4, 1, 1\n";
static const char *const kJoin =
    "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Thread t of each block writes 100 * its block + t to its word of shared
/// memory, and reads that of the next block of the cluster, or of `rank`.
static std::string readNext(const std::string &between,
                            const std::string &after,
                            const std::string &rank = "%r4") {
  return R"(
    ld.param.b64 %rd1, [p0];
    mov.b64 %rd2, dynamic;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    mad.lo.s32 %r3, %r2, 100, %r1;
    st.shared.b32 [%rd2], %r3;
    mov.u32 %r4, %cluster_ctarank;
    add.s32 %r4, %r4, 1;
    mov.u32 %r5, %cluster_nctarank;
    rem.u32 %r4, %r4, %r5;
  )" + between +
         "mapa.shared::cluster.u64 %rd4, %rd2, " + rank + R"(;
    ld.shared::cluster.b32 %r6, [%rd4];
  )" + after +
         R"(
    mad.lo.s32 %r7, %r2, 64, %r1;
    mul.wide.u32 %rd5, %r7, 4;
    add.s64 %rd1, %rd1, %rd5;
    st.global.b32 [%rd1], %r6;)";
}

static std::string run(const std::string &body,
                       std::vector<uint32_t> *results = nullptr,
                       uint32_t blocks = 8) {
  PtxKernel kernel(body, 1, kShared, kFour);
  uint64_t out = kernel.put(std::vector<uint32_t>(size_t(blocks) * 64));
  std::string fault = kernel.run({out}, 64, blocks, 256);
  if (results)
    *results = kernel.get<uint32_t>(out, size_t(blocks) * 64);
  return fault;
}

TEST(Cluster, ReadsTheMemoryOfOtherBlocks) {
  std::vector<uint32_t> values;
  ASSERT_EQ(run(readNext(kJoin, kJoin), &values), "");
  for (uint32_t block = 0; block < 8; ++block)
    for (uint32_t thread = 0; thread < 64; ++thread)
      EXPECT_EQ(values[block * 64 + thread],
                100 * (block / 4 * 4 + (block + 1) % 4) + thread);
}

TEST(Cluster, NamesBlocks) {
  std::vector<uint32_t> values;
  ASSERT_EQ(
      run(readNext(kJoin, std::string(kJoin) + "mov.u32 %r6, %clusterid.x;\n"
                                               "mov.u32 %r8, %nclusterid.x;\n"
                                               "mad.lo.s32 %r6, %r8, 10, %r6;"),
          &values),
      "");
  EXPECT_EQ(values[0], 20u);
  EXPECT_EQ(values[7 * 64], 21u);
}

TEST(Cluster, FindsWhatNoBarrierOrders) {
  // What another block has written is not there yet, though its own barrier is
  // past.
  EXPECT_NE(run(readNext("bar.sync 0;", kJoin)).find("race on byte"),
            std::string::npos);
  // A word is written again while another block may read it.
  EXPECT_NE(
      run(readNext(kJoin, "st.shared.b32 [%rd2], 0;\n" + std::string(kJoin)))
          .find("another block of the cluster read since"),
      std::string::npos);
  // A block that has ended has no memory.
  EXPECT_NE(run(readNext(kJoin, "")).find("of the cluster, which has ended"),
            std::string::npos);
}

TEST(Cluster, RefusesBlocksThatAreNotThere) {
  EXPECT_NE(run(readNext(kJoin, kJoin, "4")).find("no block 4 in a cluster"),
            std::string::npos);
  EXPECT_NE(run(readNext(kJoin, kJoin), nullptr, 6).find("no clusters of 4"),
            std::string::npos);
}

TEST(Cluster, TellsOfADeadlock) {
  // The last block of each cluster does not come to its barrier, but waits.
  std::string fault = run("mov.u32 %r1, %cluster_ctarank;\n"
                          "setp.eq.u32 %p1, %r1, 3;\n"
                          "@%p1 bar.sync 0, 96;\n" +
                          std::string(kJoin));
  EXPECT_NE(fault.find("deadlock"), std::string::npos) << fault;
}
