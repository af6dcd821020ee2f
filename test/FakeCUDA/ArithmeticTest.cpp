#include "PtxTest.h"
#include <cmath>
#include <gtest/gtest.h>

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static uint32_t first(const std::string &body) { return runLanes(body)[0]; }

TEST(Arithmetic, Integers) {
  EXPECT_EQ(first("mul.hi.u32 %r0, 0x80000000, 6;"), 3u);
  EXPECT_EQ(first("mul.hi.s32 %r0, -2, 3;"), ~0u);
  EXPECT_EQ(first("div.s32 %r0, -7, 2;"), uint32_t(-3));
  EXPECT_EQ(first("div.s32 %r0, 0x80000000, -1;"), 0x80000000u);
  EXPECT_EQ(first("div.u32 %r0, 7, 0;"), ~0u);
  EXPECT_EQ(first("rem.s32 %r0, -7, 4;"), uint32_t(-3));
  EXPECT_EQ(first("add.sat.s32 %r0, 0x7fffffff, 5;"), 0x7fffffffu);
  EXPECT_EQ(first("abs.s32 %r0, -5;"), 5u);
  EXPECT_EQ(first("min.s32 %r0, -5, 3;"), uint32_t(-5));
  EXPECT_EQ(first("min.u32 %r0, -5, 3;"), 3u);
  EXPECT_EQ(runWideLanes("mul.wide.s32 %rd0, -3, 5;")[0], uint64_t(-15));
  EXPECT_EQ(runWideLanes("mad.wide.u32 %rd0, 0xffffffff, 2, 1;")[0],
            0x1ffffffffu);
  EXPECT_EQ(runWideLanes("mul.hi.u64 %rd0, 0x8000000000000000, 6;")[0], 3u);
  EXPECT_EQ(first("dp4a.s32.s32 %r0, 0x01ff02fe, 0x01010101, 10;"), 10u);
  EXPECT_EQ(first("sub.s16 %rs1, 3, 5;\ncvt.s32.s16 %r0, %rs1;"), uint32_t(-2));
}

TEST(Arithmetic, Bits) {
  EXPECT_EQ(first("shl.b32 %r0, 1, 32;"), 0u);
  EXPECT_EQ(first("shr.s32 %r0, -8, 40;"), ~0u);
  EXPECT_EQ(first("bfe.u32 %r0, 0xabcd1234, 8, 8;"), 0x12u);
  EXPECT_EQ(first("bfe.s32 %r0, 0xabcd1234, 16, 8;"), 0xffffffcdu);
  EXPECT_EQ(first("bfe.s32 %r0, 0x80000000, 28, 8;"), 0xfffffff8u);
  EXPECT_EQ(first("bfi.b32 %r0, 0xff, 0x11111111, 4, 8;"), 0x11111ff1u);
  EXPECT_EQ(first("lop3.b32 %r0, 12, 10, 6, 0x96;"), 12u ^ 10u ^ 6u);
  EXPECT_EQ(first("prmt.b32 %r0, 0x33221100, 0x77665584, 0xc740;"),
            0xff778400u);
  EXPECT_EQ(first("shf.l.wrap.b32 %r0, 0x80000001, 0x00000010, 4;"), 0x108u);
  EXPECT_EQ(first("shf.r.clamp.b32 %r0, 1, 0x55, 40;"), 0x55u);
  EXPECT_EQ(first("popc.b64 %r0, -1;"), 64u);
  EXPECT_EQ(first("clz.b32 %r0, 1;"), 31u);
  EXPECT_EQ(first("brev.b32 %r0, 1;"), 0x80000000u);
  EXPECT_EQ(first("bfind.u32 %r0, 0x100;"), 8u);
  EXPECT_EQ(first("bfind.s32 %r0, -1;"), ~0u);
  EXPECT_EQ(first("mov.b32 {%rs1, %rs2}, 0x12345678;\n"
                  "mov.b32 %r0, {%rs2, %rs1};"),
            0x56781234u);
}

TEST(Arithmetic, Floats) {
  EXPECT_EQ(first("fma.rn.f32 %f1, 0f3F800001, 0f3F800001, 0fBF800002;\n"
                  "mov.b32 %r0, %f1;"),
            bitsOf(0x1p-46f));
  EXPECT_EQ(first("add.rz.f32 %f1, 0f3F800000, 0f33FFFFFF;\nmov.b32 %r0, %f1;"),
            bitsOf(1.0f));
  EXPECT_EQ(first("add.rp.f32 %f1, 0f3F800000, 0f00000001;\nmov.b32 %r0, %f1;"),
            0x3f800001u);
  EXPECT_EQ(first("sub.rm.f32 %f1, 0f3F800000, 0f00000001;\nmov.b32 %r0, %f1;"),
            0x3f7fffffu);
  EXPECT_EQ(
      first("mul.ftz.f32 %f1, 0f00800000, 0f3F000000;\nmov.b32 %r0, %f1;"), 0u);
  EXPECT_EQ(first("max.f32 %f1, 0f7FC00000, 0f3F800000;\nmov.b32 %r0, %f1;"),
            bitsOf(1.0f));
  EXPECT_TRUE(std::isnan(floatOf(
      first("max.NaN.f32 %f1, 0f7FC00000, 0f3F800000;\nmov.b32 %r0, %f1;"))));
  EXPECT_EQ(first("max.f32 %f1, 0f80000000, 0f00000000;\nmov.b32 %r0, %f1;"),
            0u);
  EXPECT_EQ(first("add.sat.f32 %f1, 0f3F800000, 0f3F800000;\n"
                  "mov.b32 %r0, %f1;"),
            bitsOf(1.0f));
  EXPECT_EQ(first("ex2.approx.ftz.f32 %f1, 0f40400000;\nmov.b32 %r0, %f1;"),
            bitsOf(8.0f));
  EXPECT_EQ(first("rsqrt.approx.f32 %f1, 0f41800000;\nmov.b32 %r0, %f1;"),
            bitsOf(0.25f));
  EXPECT_EQ(runWideLanes("div.rn.f64 %fd1, 0d3FF0000000000000, "
                         "0d4008000000000000;\nmov.b64 %rd0, %fd1;")[0],
            0x3fd5555555555555u);
}

TEST(Arithmetic, HalvesAndBrainFloats) {
  // 1 + 2^-11 is a tie, to even; 2049 is one, too.
  EXPECT_EQ(first("cvt.rn.f16.f32 %rs1, 0f3F801000;\ncvt.u32.u16 %r0, %rs1;"),
            0x3c00u);
  EXPECT_EQ(first("cvt.rn.f16.f32 %rs1, 0f3F803000;\ncvt.u32.u16 %r0, %rs1;"),
            0x3c02u);
  EXPECT_EQ(first("cvt.rn.f16.f32 %rs1, 0f477FF000;\ncvt.u32.u16 %r0, %rs1;"),
            0x7c00u);
  EXPECT_EQ(first("cvt.rn.f16.f32 %rs1, 0f33800000;\ncvt.u32.u16 %r0, %rs1;"),
            0x0001u);
  EXPECT_EQ(first("cvt.rn.f16x2.f32 %r0, 0f3F800000, 0fC0000000;"),
            0x3c00c000u);
  EXPECT_EQ(first("cvt.rn.bf16x2.f32 %r0, 0f3F808000, 0f3F818000;"),
            0x3f803f82u);
  EXPECT_EQ(first("add.rn.f16x2 %r0, 0x3c004000, 0x3c00c000;"), 0x40000000u);
  EXPECT_EQ(first("fma.rn.bf16x2 %r0, 0x3f804000, 0x40404040, 0x3f803f80;"),
            0x408040e0u);
  EXPECT_EQ(first("mul.rn.f16 %rs1, 0x3555, 0x4200;\ncvt.u32.u16 %r0, %rs1;"),
            0x3c00u);
  EXPECT_EQ(first("cvt.f32.f16 %f1, 0x0001;\nmov.b32 %r0, %f1;"),
            bitsOf(0x1p-24f));
  EXPECT_EQ(first("cvt.f32.bf16 %f1, 0x4049;\nmov.b32 %r0, %f1;"), 0x40490000u);
}

TEST(Arithmetic, AllHalvesComeBack) {
  auto bits = runLanes(R"(
    mov.b32 %r0, 0;
    mov.b32 %r1, 0;
  $loop:
    shl.b32 %r2, %r1, 5;
    add.u32 %r2, %r2, %r31;
    cvt.u16.u32 %rs1, %r2;
    cvt.f32.f16 %f1, %rs1;
    cvt.rn.f16.f32 %rs2, %f1;
    setp.ne.b16 %p1, %rs1, %rs2;
    setp.num.and.f32 %p2, %f1, %f1, %p1;
    @%p2 add.u32 %r0, %r0, 1;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p3, %r1, 2048;
    @%p3 bra $loop;)");
  for (uint32_t wrong : bits)
    EXPECT_EQ(wrong, 0u);
}

TEST(Arithmetic, Conversions) {
  EXPECT_EQ(first("cvt.rni.s32.f32 %r0, 0f40200000;"), 2u);
  EXPECT_EQ(first("cvt.rzi.s32.f32 %r0, 0fC0200000;"), uint32_t(-2));
  EXPECT_EQ(first("cvt.rmi.s32.f32 %r0, 0fC0200000;"), uint32_t(-3));
  EXPECT_EQ(first("cvt.rzi.s32.f32 %r0, 0f7F800000;"), 0x7fffffffu);
  EXPECT_EQ(first("cvt.rzi.u32.f32 %r0, 0fC0200000;"), 0u);
  EXPECT_EQ(first("cvt.rzi.s32.f32 %r0, 0f7FC00000;"), 0u);
  EXPECT_EQ(first("cvt.rn.f32.u32 %f1, 0xffffffff;\nmov.b32 %r0, %f1;"),
            bitsOf(0x1p32f));
  EXPECT_EQ(first("cvt.rpi.f32.f32 %f1, 0f3F8CCCCD;\nmov.b32 %r0, %f1;"),
            bitsOf(2.0f));
  EXPECT_EQ(first("cvt.sat.u8.s32 %r0, 300;"), 255u);
  EXPECT_EQ(first("cvt.s8.s32 %r0, 200;"), uint32_t(-56));
  EXPECT_EQ(first("cvt.rna.tf32.f32 %r0, 0f3F801000;"), 0x3f802000u);
  EXPECT_EQ(runWideLanes("cvt.s64.s32 %rd0, -5;")[0], uint64_t(-5));
  EXPECT_EQ(runWideLanes("cvt.u64.u32 %rd0, -5;")[0], 0xfffffffbu);
}

TEST(Arithmetic, Comparisons) {
  auto chosen = [](const std::string &comparison) {
    return first(comparison + "\nselp.b32 %r0, 1, 0, %p1;");
  };
  EXPECT_EQ(chosen("setp.lt.s32 %p1, -1, 1;"), 1u);
  EXPECT_EQ(chosen("setp.lt.u32 %p1, -1, 1;"), 0u);
  EXPECT_EQ(chosen("setp.ne.f32 %p1, 0f7FC00000, 0f7FC00000;"), 0u);
  EXPECT_EQ(chosen("setp.neu.f32 %p1, 0f7FC00000, 0f7FC00000;"), 1u);
  EXPECT_EQ(chosen("setp.ltu.f32 %p1, 0f3F800000, 0f7FC00000;"), 1u);
  EXPECT_EQ(chosen("setp.eq.f16 %p1, 0x0000, 0x8000;"), 1u);
  EXPECT_EQ(chosen("setp.eq.s32 %p2|%p1, 1, 1;"), 0u);
  EXPECT_EQ(chosen("mov.pred %p3, 1;\nsetp.eq.and.s32 %p1, 1, 1, !%p3;"), 0u);
  EXPECT_EQ(first("set.gt.u32.s32 %r0, 2, 1;"), ~0u);
}
