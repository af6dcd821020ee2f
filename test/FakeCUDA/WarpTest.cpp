#include "PtxTest.h"
#include <gtest/gtest.h>

static const char *const kShared = ".extern .shared .align 16 .b8 dynamic[];";

TEST(Warp, Shuffles) {
  auto down = runLanes("shfl.sync.down.b32 %r0, %r31, 3, 31, -1;");
  auto up = runLanes("shfl.sync.up.b32 %r0, %r31, 3, 0, -1;");
  auto across = runLanes("shfl.sync.bfly.b32 %r0, %r31, 5, 31, 0xffffffff;");
  auto index = runLanes("shfl.sync.idx.b32 %r0, %r31, 2, 0x1807, -1;");
  auto inside = runLanes("shfl.sync.down.b32 %r1|%p1, %r31, 3, 31, -1;\n"
                         "selp.b32 %r0, 1, 0, %p1;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(down[lane], lane < 29 ? lane + 3 : lane);
    EXPECT_EQ(up[lane], lane >= 3 ? lane - 3 : lane);
    EXPECT_EQ(across[lane], lane ^ 5);
    EXPECT_EQ(index[lane], lane / 8 * 8 + 2); // In segments of 8 lanes.
    EXPECT_EQ(inside[lane], lane < 29);
  }
}

TEST(Warp, VotesAndMatches) {
  std::string odd = "and.b32 %r1, %r31, 1;\nsetp.ne.u32 %p1, %r1, 0;\n";
  EXPECT_EQ(runLanes(odd + "vote.sync.ballot.b32 %r0, %p1, -1;")[0],
            0xaaaaaaaau);
  EXPECT_EQ(runLanes(odd + "vote.sync.any.pred %p2, %p1, -1;\n"
                           "selp.b32 %r0, 1, 0, %p2;")[4],
            1u);
  EXPECT_EQ(runLanes(odd + "vote.sync.all.pred %p2, %p1, -1;\n"
                           "selp.b32 %r0, 1, 0, %p2;")[4],
            0u);
  auto same = runLanes("shr.u32 %r1, %r31, 3;\n"
                       "match.any.sync.b32 %r0, %r1, -1;");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(same[lane], 0xffu << (lane / 8 * 8));
  EXPECT_EQ(runLanes("redux.sync.add.s32 %r0, %r31, -1;")[9], 496u);
  EXPECT_EQ(runLanes("@%p1 bra $end;\nactivemask.b32 %r0;\n$end:")[0], ~0u);
}

// Lanes that come to a vote from two ways wait for one another.
TEST(Warp, LanesOfACollectiveWaitForEachOther) {
  auto votes = runLanes(R"(
    setp.lt.u32 %p1, %r31, 10;
    @%p1 bra $first;
    mov.b32 %r1, 5;
    bra $vote;
  $first:
    mov.b32 %r1, 6;
  $vote:
    redux.sync.max.u32 %r0, %r1, -1;)");
  for (uint32_t vote : votes)
    EXPECT_EQ(vote, 6u);
}

TEST(Warp, AtomicsInGlobalAndSharedMemory) {
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.b32 %r2, dynamic;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 st.shared.b32 [%r2], 0;
    bar.sync 0;
    atom.shared.add.u32 %r3, [%r2], %r1;
    red.global.add.f32 [%rd1+4], 0f3F000000;
    atom.global.max.s32 %r4, [%rd1+8], %r1;
    atom.global.cas.b32 %r5, [%rd1+12], 0, 77;
    atom.global.inc.u32 %r6, [%rd1+16], 9;
    bar.sync 0;
    ld.shared.b32 %r7, [%r2];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 st.global.b32 [%rd1], %r7;)",
                   1, kShared);
  uint64_t out = kernel.put(std::vector<uint32_t>(5));
  ASSERT_EQ(kernel.run({out}, 100, 1, 16), "");
  auto values = kernel.get<uint32_t>(out, 5);
  EXPECT_EQ(values[0], 4950u);
  EXPECT_EQ(kernel.get<float>(out + 4, 1)[0], 50.0f);
  EXPECT_EQ(values[2], 99u);
  EXPECT_EQ(values[3], 77u);
  EXPECT_EQ(values[4], 0u); // 100 steps modulo 10.
}

TEST(Warp, BarriersThatReduce) {
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 70;
    bar.red.popc.u32 %r2, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, %p1;
    selp.b32 %r3, 1, 0, %p2;
    selp.b32 %r4, 1, 0, %p3;
    setp.ne.u32 %p4, %r1, 90;
    @%p4 bra $end;
    st.global.v4.b32 [%rd1], {%r2, %r3, %r4, %r1};
  $end:)");
  uint64_t out = kernel.put(std::vector<uint32_t>(4));
  ASSERT_EQ(kernel.run({out}, 96), "");
  EXPECT_EQ(kernel.get<uint32_t>(out, 4),
            (std::vector<uint32_t>{70, 0, 1, 90}));
}

// 96 threads take part in barrier 1, the others do not.
TEST(Warp, BarriersOfSomeThreads) {
  PtxKernel kernel("mov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 96;\n"
                   "@%p1 bra $end;\nbar.sync 1, 96;\n$end:\nbar.sync 0;");
  EXPECT_EQ(kernel.run({0}, 128), "");
}

TEST(Warp, MatricesComeBackAsTheyWereStored) {
  // Lane l stores l and l + 100 as halves of one matrix, and reads it
  // crosswise.
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, dynamic;
    and.b32 %r3, %r1, 7;
    mad.lo.u32 %r3, %r3, 16, %r2;
    add.u32 %r4, %r1, 100;
    shl.b32 %r4, %r4, 16;
    or.b32 %r4, %r4, %r1;
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r4};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r3];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.b32 [%rd1], %r5;)",
                   1, kShared);
  uint64_t out = kernel.put(std::vector<uint32_t>(32));
  ASSERT_EQ(kernel.run({out}, 32, 1, 128), "");
  auto values = kernel.get<uint16_t>(out, 64);
  auto element = [](uint32_t row, uint32_t column) {
    return row * 4 + column / 2 + 100 * (column % 2);
  };
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t e = 0; e < 2; ++e)
      EXPECT_EQ(values[2 * lane + e], element(2 * (lane % 4) + e, lane / 4))
          << lane;
}

// All of A is 2, column n of B is n - 3: m16n8k32.
static std::vector<uint32_t> multiplyBytes(const std::string &start,
                                           const std::string &how) {
  return runLanes("mov.b32 %r1, 0x02020202;\nshr.u32 %r2, %r31, 2;\n"
                  "sub.s32 %r2, %r2, 3;\nand.b32 %r2, %r2, 255;\n"
                  "mul.lo.u32 %r2, %r2, 0x01010101;\nmov.b32 %r3, " +
                  start + ";\nmma.sync.aligned.m16n8k32.row.col" + how +
                  ".s32.s8.s8.s32 {%r0, %r4, %r5, %r6}, {%r1, %r1, %r1, %r1}, "
                  "{%r2, %r2}, {%r3, %r3, %r3, %r3};");
}

TEST(Warp, ProductsOfBytes) {
  auto values = multiplyBytes("1", "");
  auto wrapped = multiplyBytes("0x7fffffff", "");
  auto saturated = multiplyBytes("0x7fffffff", ".satfinite");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    int32_t sum = 64 * (int32_t(2 * (lane % 4)) - 3);
    EXPECT_EQ(int32_t(values[lane]), 1 + sum);
    EXPECT_EQ(wrapped[lane], 0x7fffffffu + uint32_t(sum));
    EXPECT_EQ(saturated[lane], sum > 0 ? 0x7fffffffu : wrapped[lane]);
  }
}
