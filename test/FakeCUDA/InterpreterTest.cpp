#include "PtxTest.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace sardonyx::fakecuda;

TEST(Interpreter, AddsVectorsWithinBounds) {
  // p3 is the number of elements; the last block has threads beyond it.
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    ld.param.b64 %rd2, [p1];
    ld.param.b64 %rd3, [p2];
    ld.param.b64 %rd4, [p3];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    cvt.u64.u32 %rd5, %r4;
    setp.ge.u64 %p1, %rd5, %rd4;
    @%p1 bra $end;
    shl.b64 %rd6, %rd5, 2;
    add.s64 %rd7, %rd1, %rd6;
    add.s64 %rd8, %rd2, %rd6;
    add.s64 %rd9, %rd3, %rd6;
    ld.global.f32 %f1, [%rd7];
    ld.global.f32 %f2, [%rd8];
    add.rn.f32 %f3, %f1, %f2;
    st.global.f32 [%rd9], %f3;
  $end:)",
                   4);
  std::vector<float> a(1000), b(1000);
  std::iota(a.begin(), a.end(), 0.5f);
  std::iota(b.begin(), b.end(), -300.0f);
  uint64_t x = kernel.put(a), y = kernel.put(b);
  uint64_t z = kernel.put(std::vector<float>(1000));
  ASSERT_EQ(kernel.run({x, y, z, 1000}, 96, 11), "");
  std::vector<float> sums = kernel.get<float>(z, 1000);
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(sums[i], a[i] + b[i]) << i;
  EXPECT_EQ(kernel.memory.checkGuards(), "");
}

TEST(Interpreter, RunsLoopsThatLanesLeaveAtDifferentTimes) {
  // Steps of the Collatz sequence of lane + 1, with a branch in a loop.
  auto steps = runLanes(R"(
    add.u32 %r1, %r31, 1;
    mov.b32 %r0, 0;
  $loop:
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra $done;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra $even;
    mad.lo.u32 %r1, %r1, 3, 1;
    bra.uni $next;
  $even:
    shr.u32 %r1, %r1, 1;
  $next:
    add.u32 %r0, %r0, 1;
    bra.uni $loop;
  $done:)");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t count = 0;
    for (uint32_t x = lane + 1; x != 1; ++count)
      x = x % 2 ? 3 * x + 1 : x / 2;
    EXPECT_EQ(steps[lane], count) << lane;
  }
}

TEST(Interpreter, BranchesByTables) {
  auto values = runLanes(R"(
    rem.u32 %r1, %r31, 3;
    { $table: .branchtargets $a, $b, $c;
    brx.idx %r1, $table; }
  $a: mov.b32 %r0, 10; bra $end;
  $b: mov.b32 %r0, 20; bra $end;
  $c: mov.b32 %r0, 30;
  $end:)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], 10 + lane % 3 * 10);
}

// Each block sums 256 floats in shared memory; `barrier` comes between steps.
static std::string sumInShared(const std::string &barrier) {
  return R"(
    ld.param.b64 %rd1, [p0];
    ld.param.b64 %rd2, [p1];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 256, %r1;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd3, %rd1, %rd3;
    ld.global.f32 %f1, [%rd3];
    mov.b32 %r4, sums;
    shl.b32 %r5, %r1, 2;
    add.s32 %r5, %r4, %r5;
    st.shared.f32 [%r5], %f1;
    bar.sync 0;
    mov.b32 %r6, 128;
  $loop:
    setp.ge.u32 %p1, %r1, %r6;
    @%p1 bra $skip;
    shl.b32 %r7, %r6, 2;
    add.s32 %r7, %r5, %r7;
    ld.shared.f32 %f2, [%r7];
    ld.shared.f32 %f1, [%r5];
    add.f32 %f1, %f1, %f2;
    st.shared.f32 [%r5], %f1;
  $skip:
    )" + barrier +
         R"(
    shr.u32 %r6, %r6, 1;
    setp.ne.u32 %p2, %r6, 0;
    @%p2 bra $loop;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra $end;
    mul.wide.u32 %rd4, %r2, 4;
    add.s64 %rd4, %rd2, %rd4;
    st.global.f32 [%rd4], %f1;
  $end:)";
}

TEST(Interpreter, ReducesInSharedMemory) {
  PtxKernel kernel(sumInShared("bar.sync 0;"), 2,
                   ".shared .align 4 .b8 sums[1024];");
  std::vector<float> values(3 * 256);
  std::iota(values.begin(), values.end(), 1.0f);
  uint64_t in = kernel.put(values), out = kernel.put(std::vector<float>(3));
  ASSERT_EQ(kernel.run({in, out}, 256, 3), "");
  auto sums = kernel.get<float>(out, 3);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(sums[i],
              std::accumulate(&values[256 * i], &values[256 * i] + 256, 0.0f));
}

TEST(Interpreter, FindsTheMissingBarrierOfAReduction) {
  PtxKernel kernel(sumInShared(""), 2, ".shared .align 4 .b8 sums[1024];");
  uint64_t in = kernel.put(std::vector<float>(256));
  uint64_t out = kernel.put(std::vector<float>(1));
  std::string fault = kernel.run({in, out}, 256);
  EXPECT_NE(fault.find("race on byte"), std::string::npos) << fault;
}

TEST(Interpreter, CallsFunctionsOfTheModule) {
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    {
      .param .b32 argument;
      st.param.b32 [argument], %r1;
      .param .b32 result;
      call.uni (result), twice, (argument);
      ld.param.b32 %r2, [result];
    }
    {
      .param .b32 argument;
      st.param.b32 [argument], %r2;
      .param .b32 result;
      call.uni (result), twice, (argument);
      ld.param.b32 %r3, [result];
    }
    st.global.b32 [%rd1], %r3;)",
                   1, R"(
    .func (.param .b32 out) twice(.param .b32 in) {
      .reg .b32 %r<4>;
      .reg .pred %p<2>;
      ld.param.b32 %r1, [in];
      setp.eq.u32 %p1, %r1, 4;
      add.u32 %r2, %r1, %r1;
      st.param.b32 [out], %r2;
      @!%p1 ret;
      st.param.b32 [out], 1000;
      ret;
    })");
  uint64_t out = kernel.put(std::vector<uint32_t>(40));
  ASSERT_EQ(kernel.run({out}, 40), "");
  auto values = kernel.get<uint32_t>(out, 40);
  for (uint32_t i = 0; i < 40; ++i) {
    auto twice = [](uint32_t x) { return x == 4 ? 1000 : 2 * x; };
    EXPECT_EQ(values[i], twice(twice(i))) << i;
  }
}

TEST(Interpreter, KeepsLocalArraysOfEachThread) {
  // Writes 8 numbers and reads them in another order, by generic addresses.
  auto values = runLanes(R"(
    .local .align 16 .b8 array[32];
    mov.b64 %rd1, array;
    cvta.local.u64 %rd2, %rd1;
    mov.b32 %r1, 0;
  $loop:
    mad.lo.u32 %r2, %r1, %r31, 7;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    st.local.b32 [%rd4], %r2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 8;
    @%p1 bra $loop;
    and.b32 %r3, %r31, 7;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.b32 %r0, [%rd4];)");
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane % 8 * lane + 7);
}

TEST(Interpreter, ReadsAndWritesVariablesOfTheModule) {
  PtxKernel kernel(R"(
    ld.param.b64 %rd1, [p0];
    mov.b64 %rd2, table;
    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd2];
    st.global.v4.b32 [%rd1], {%r4, %r3, %r2, %r1};
    ld.const.b16 %rs1, [small + 2];
    st.global.b16 [zeros], %rs1;)",
                   1, R"(
    .global .align 16 .b32 table[4] = {1, 2, 3, 0x40};
    .const .align 2 .b8 small[4] = {1, 2, 3, 4};
    .visible .global .align 4 .b8 zeros[4];)");
  uint64_t out = kernel.put(std::vector<uint32_t>(4));
  ASSERT_EQ(kernel.run({out}, 1), "");
  EXPECT_EQ(kernel.get<uint32_t>(out, 4),
            (std::vector<uint32_t>{0x40, 3, 2, 1}));
  size_t bytes = 0;
  uint64_t zeros = kernel.module->findGlobal("zeros", bytes);
  ASSERT_EQ(bytes, 4u);
  EXPECT_EQ(kernel.get<uint32_t>(zeros, 1)[0], 0x403u);
  EXPECT_EQ(kernel.module->findGlobal("nothing", bytes), 0u);
}

TEST(Interpreter, TellsWhatAKernelNeeds) {
  Memory memory;
  std::string error;
  auto module = Module::parse(R"(
.version 7.0
.target sm_80
.address_size 64
.shared .align 16 .b8 used[40];
.shared .align 16 .b8 unused[4000];
.extern .shared .align 128 .b8 dynamic[];
.visible .entry first(.param .u8 a, .param .u64 .ptr .global .align 16 b,
                      .param .align 64 .b8 c[128])
.maxntid 64, 2, 1
.minnctapersm 1
{
  .reg .b32 %r<3>;
  mov.b32 %r1, used;
  mov.b32 %r2, dynamic;
  ret;
}
.visible .entry second() { ret; }
)",
                              memory, error);
  ASSERT_NE(module, nullptr) << error;
  const Function *first = module->find("first");
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->parameters.size(), 3u);
  EXPECT_EQ(first->parameters[1].offset, 8u);
  EXPECT_EQ(first->parameters[2].offset, 64u);
  EXPECT_EQ(first->parameters[2].alignment, 64u);
  EXPECT_EQ(first->parameterBytes, 192u);
  EXPECT_EQ(first->staticSharedBytes, 128u);
  EXPECT_EQ(first->maxThreads, 128u);
  EXPECT_EQ(module->find("second")->maxThreads, 1024u);
  EXPECT_EQ(module->find("third"), nullptr);
}

TEST(Interpreter, RefusesWhatItDoesNotKnow) {
  auto errorOf = [](const std::string &body) { return PtxKernel(body).error; };
  EXPECT_EQ(errorOf("\nbogus.b32 %r1, %r2;"),
            "line 14 of the PTX, bogus.b32: the interpreter doesn't know this "
            "instruction");
  EXPECT_NE(errorOf("add.s32 %r1, %r2, %nothing;").find("%nothing"),
            std::string::npos);
  EXPECT_NE(errorOf("bra $nowhere;").find("$nowhere"), std::string::npos);
  EXPECT_NE(errorOf("add.s32 %r1, %r2;").find("2 operands"), std::string::npos);
  EXPECT_NE(errorOf("{ .param .b32 a; call.uni f, (a); }").find("call"),
            std::string::npos);
  // What is known in part is not run in part.
  for (const char *text :
       {"add.cc.s32 %r1, %r2, %r3;", "fma.rn.oob.f32 %f1, %f1, %f1, %f1;",
        "add.f32.f16 %f1, %rs1, %f2;", "shl.new.b32 %r1, %r2, 3;",
        "min.xorsign.abs.f32 %f1, %f2, %f3;",
        "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;",
        "st.async.b32 [%r1], %r2;"})
    EXPECT_NE(errorOf(text).find("doesn't know this instruction"),
              std::string::npos)
        << text;
  EXPECT_EQ(errorOf("ret;"), "");
}
