#include "PtxTest.h"
#include <gtest/gtest.h>

using namespace sardonyx::fakecuda;

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
}

TEST(Cluster, FindsBlocksThatEndTooEarly) {
  // A block that has ended has no memory.
  const std::string end = "setp.eq.u32 %p1, %r4, 1;\n@%p1 exit;\n";
  std::string fault = run(readNext(end + kJoin, kJoin, "0"));
  EXPECT_NE(fault.find("of block 0 of the cluster, which has ended"),
            std::string::npos)
      << fault;
  // Even if all others have read it in fact.
  fault = run(readNext(kJoin, ""));
  EXPECT_NE(fault.find("ends without a barrier of the cluster since another "
                       "block has used its shared memory"),
            std::string::npos)
      << fault;
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

namespace {

/// What the blocks of a pair do that each load half of a tile of 16 rows of 128
/// bytes for both, twice, and store what each lane finds in its row.
struct Exchange {
  // Barriers are made before the other block's copies may come.
  std::string begin = kJoin;
  unsigned expected = 2048, mask = 3;
  // A block that has read what is there tells both.
  std::string tell = tellBlock(0) + tellBlock(1);
  std::string end = kJoin;

  static std::string tellBlock(int rank, const std::string &scope = "cluster") {
    return "mapa.shared::cluster.u32 %r21, %r19, " + std::to_string(rank) +
           ";\nmbarrier.arrive.release." + scope +
           ".shared::cluster.b64 _, [%r21];\n";
  }

  std::string body() const {
    return R"(
    ld.param.b64 %rd1, [p0];
    ld.param.b64 %rd2, [p1];
    mov.b32 %r18, dynamic;
    add.u32 %r19, %r18, 4104;
    mov.u32 %r31, %tid.x;
    mov.u32 %r30, %cluster_ctarank;
    mov.u32 %r29, 0;
    mul.lo.u32 %r28, %r30, 8;
    mul.lo.u32 %r27, %r30, 1024;
    add.u32 %r27, %r27, %r18;
    mov.b16 %rs1, )" +
           std::to_string(mask) + R"(;
    setp.ne.u32 %p1, %r31, 0;
    @%p1 bra $ready;
    mbarrier.init.shared.b64 [dynamic+4096], 1;
    mbarrier.init.shared.b64 [dynamic+4104], 2;
    fence.mbarrier_init.release.cluster;
  $ready:
    bar.sync 0;
    )" + begin +
           R"(
    mov.u32 %r26, 0;
  $next:
    @%p1 bra $wait;
    // Free is the phase before the first.
    xor.b32 %r25, %r26, 1;
  $free:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [dynamic+4104], %r25;
    @!%p2 bra $free;
    mbarrier.arrive.expect_tx.shared.b64 _, [dynamic+4096], )" +
           std::to_string(expected) + R"(;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r27], [%rd1, {%r29, %r28}], [dynamic+4096], %rs1;
  $wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [dynamic+4096], %r26;
    @!%p2 bra $wait;
    and.b32 %r3, %r31, 15;
    mul.lo.u32 %r3, %r3, 128;
    add.u32 %r3, %r3, %r18;
    ld.shared.b32 %r4, [%r3];
    // The word of block, step and lane.
    shl.b32 %r5, %r30, 1;
    add.u32 %r5, %r5, %r26;
    shl.b32 %r5, %r5, 5;
    add.u32 %r5, %r5, %r31;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd3, %rd3, %rd2;
    st.global.b32 [%rd3], %r4;
    bar.warp.sync 0xffffffff;
    @%p1 bra $told;
    )" + tell +
           R"(
  $told:
    add.u32 %r28, %r28, 16;
    add.u32 %r26, %r26, 1;
    setp.lt.u32 %p3, %r26, 2;
    @%p3 bra $next;
    )" + end;
  }

  std::string run(std::vector<uint32_t> *result = nullptr) const {
    PtxKernel kernel(body(), 2, ".extern .shared .align 1024 .b8 dynamic[];",
                     ".reqnctapercluster 2, 1, 1\n");
    std::vector<uint16_t> values(32 * 64);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = uint16_t(i);
    TensorMap map;
    map.type = 6;
    map.rank = 2;
    map.address = kernel.put(values);
    map.strides[0] = 128;
    map.sizes = {64, 32, 0, 0, 0};
    map.box = {64, 8, 0, 0, 0};
    map.elementStrides = {1, 1, 0, 0, 0};
    uint64_t maps = kernel.put(std::vector<TensorMap>{map});
    uint64_t out = kernel.put(std::vector<uint32_t>(128));
    std::string fault = kernel.run({maps, out}, 32, 2, 4112);
    if (result)
      *result = kernel.get<uint32_t>(out, 128);
    return fault;
  }

  /// Whether it fails with a sentence that has this part.
  testing::AssertionResult failsBy(const char *part) const {
    const std::string fault = run();
    if (fault.find(part) != std::string::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << "got: " << fault;
  }
};

} // namespace

TEST(Multicast, SharesTiles) {
  std::vector<uint32_t> result;
  ASSERT_EQ(Exchange().run(&result), "");
  for (uint32_t block = 0; block < 2; ++block)
    for (uint32_t step = 0; step < 2; ++step)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        uint32_t element = (step * 16 + lane % 16) * 64;
        EXPECT_EQ(result[(block * 2 + step) * 32 + lane],
                  element | (element + 1) << 16);
      }
}

TEST(Multicast, WaitsForWhatNeverComes) {
  // Nobody tells the other block that a tile has been read.
  Exchange exchange;
  exchange.tell = "mbarrier.arrive.shared::cta.b64 _, [%r19];";
  EXPECT_TRUE(exchange.failsBy("deadlock"));
  // A barrier counts bytes that do not come, or fewer than come.
  for (unsigned bytes : {1024u, 3072u}) {
    exchange = Exchange();
    exchange.expected = bytes;
    EXPECT_TRUE(exchange.failsBy("deadlock"));
  }
}

TEST(Multicast, FindsCopiesOverTilesThatOthersNeed) {
  // Each block tells itself twice, and so waits for nobody else.
  Exchange exchange;
  exchange.tell = "mbarrier.arrive.shared::cta.b64 _, [%r19], 2;";
  EXPECT_TRUE(exchange.failsBy("which an unfinished async copy will write"));
}

TEST(Multicast, FindsBarriersThatMayNotBeThere) {
  Exchange exchange;
  exchange.begin = "";
  EXPECT_TRUE(exchange.failsBy("there is no mbarrier at byte 4096 of shared "
                               "memory of block 1 of the cluster"));
  // The first block has made it in fact, but need not have.
  exchange.begin = "setp.eq.u32 %p4, %r30, 0;\n@%p4 mov.b16 %rs1, 1;\n";
  EXPECT_TRUE(exchange.failsBy("of block 0 of the cluster was made since the "
                               "last barrier of the cluster"));
}

TEST(Multicast, FindsBlocksThatEndTooEarly) {
  Exchange exchange;
  exchange.end = "";
  EXPECT_TRUE(exchange.failsBy("ends without a barrier of the cluster since "
                               "another block has used its shared memory"));
  exchange.begin += "setp.eq.u32 %p4, %r30, 1;\n@%p4 exit;\n";
  EXPECT_TRUE(exchange.failsBy("uses the shared memory of block 1 of the "
                               "cluster, which has ended"));
}

TEST(Multicast, FindsArrivalsThatOrderNothingForOthers) {
  Exchange exchange;
  exchange.tell = Exchange::tellBlock(0, "cta") + Exchange::tellBlock(1, "cta");
  EXPECT_TRUE(exchange.failsBy("the mbarrier is another block's"));
}

TEST(Multicast, FindsBlocksThatAreNotThere) {
  Exchange exchange;
  exchange.mask = 5;
  EXPECT_TRUE(exchange.failsBy("there is no block 2 in a cluster of 2"));
  exchange.mask = 0;
  EXPECT_TRUE(exchange.failsBy("is for no block of the cluster"));
}
