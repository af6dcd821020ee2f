#include "PtxTest.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace sardonyx::fakecuda;

static const char *const kShared = ".extern .shared .align 1024 .b8 dynamic[];";

// Half floats of small integers.
static uint16_t halfOf(int value) {
  if (value == 0)
    return 0;
  int magnitude = value < 0 ? -value : value, exponent = 0;
  while (magnitude >> (exponent + 1))
    ++exponent;
  int rest = (magnitude << (10 - exponent)) - 1024;
  return uint16_t((value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | rest);
}

// A matrix of halves, 64 to a row, and its map with boxes of `boxRows` rows.
static uint64_t makeMap(PtxKernel &kernel, const std::vector<uint16_t> &values,
                        uint16_t boxRows) {
  TensorMap map;
  map.type = 6;
  map.rank = 2;
  map.swizzle = 3;
  map.address = kernel.put(values);
  map.strides[0] = 128;
  map.sizes = {64, uint32_t(values.size() / 64), 0, 0, 0};
  map.box = {64, boxRows, 0, 0, 0};
  map.elementStrides = {1, 1, 0, 0, 0};
  return kernel.put(std::vector<TensorMap>{map});
}

// Thread 0 starts copies by TMA into byte 0 (and more); all wait for them. The
// mbarrier is at byte 16384.
static std::string copyAndWait(const std::string &copies, unsigned bytes) {
  return R"(
    mov.u32 %r31, %tid.x;
    mov.b32 %r30, dynamic;
    setp.ne.u32 %p1, %r31, 0;
    @%p1 bra $ready;
    mbarrier.init.shared.b64 [dynamic+16384], 1;
    fence.proxy.async.shared::cta;
  $ready:
    bar.sync 0;
    @%p1 bra $wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [dynamic+16384], )" +
         std::to_string(bytes) + ";\n" + copies + R"(
  $wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [dynamic+16384], 0;
    @!%p2 bra $wait;
  )";
}

/// Each thread stores 16 bytes of what was copied, at %rd2.
static const std::string kStoreBox = R"(
    shl.b32 %r3, %r31, 4;
    add.u32 %r3, %r3, %r30;
    ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];
    mul.wide.u32 %rd3, %r31, 16;
    add.s64 %rd2, %rd2, %rd3;
    st.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};)";

static const std::string kCopy =
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::"
    "bytes ";

TEST(Tensor, CopiesABoxWithItsSwizzle) {
  // Rows 6 to 13 of 10: the last four are outside, and zero.
  std::string body = "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\n"
                     "mov.b32 %r1, 0;\nmov.b32 %r2, 6;\n" +
                     copyAndWait(kCopy + "[dynamic], [%rd1, {%r1, %r2}], "
                                         "[dynamic+16384];",
                                 1024) +
                     kStoreBox;
  PtxKernel kernel(body, 2, kShared);
  std::vector<uint16_t> values(10 * 64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = uint16_t(i + 1);
  uint64_t map = makeMap(kernel, values, 8);
  uint64_t out = kernel.put(std::vector<uint16_t>(8 * 64));
  ASSERT_EQ(kernel.run({map, out}, 64, 1, 16392), "");
  auto result = kernel.get<uint16_t>(out, 8 * 64);
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t column = 0; column < 64; ++column) {
      uint32_t chunk = (column / 8) ^ row;
      uint16_t expected = row < 4 ? values[(row + 6) * 64 + column] : 0;
      EXPECT_EQ(result[row * 64 + chunk * 8 + column % 8], expected)
          << row << ", " << column;
    }
}

// Eight pixels of 3 images of 4 x 5, which have 64 channels, in steps of 2 x 1
// from a row and a column before the image on, each seen by the tap (2, 1).
TEST(Tensor, CopiesPixelsOfImages) {
  std::string body =
      "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\nmov.b32 %r1, 0;\n"
      "mov.b32 %r2, 3;\nmov.b32 %r3, 1;\nmov.b32 %r4, 1;\n"
      "mov.b16 %rs1, 1;\nmov.b16 %rs2, 2;\n" +
      copyAndWait(
          "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
          "complete_tx::bytes [dynamic], [%rd1, {%r1, %r2, %r3, %r4}], "
          "[dynamic+16384], {%rs1, %rs2};",
          1024) +
      kStoreBox;
  PtxKernel kernel(body, 2, kShared);
  std::vector<uint16_t> values(3 * 4 * 5 * 64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = uint16_t(i + 1);
  TensorMap map;
  map.type = 6;
  map.rank = 4;
  map.swizzle = 3;
  map.address = kernel.put(values);
  map.strides = {128, 128 * 5, 128 * 20, 0};
  map.sizes = {64, 5, 4, 3, 0};
  map.isIm2col = 1;
  map.box = {64, 8};
  map.elementStrides = {1, 1, 2, 1, 0};
  map.lower = {-1, -1};
  map.upper = {-1, 0};
  uint64_t maps = kernel.put(std::vector<TensorMap>{map});
  uint64_t out = kernel.put(std::vector<uint16_t>(8 * 64));
  ASSERT_EQ(kernel.run({maps, out}, 64, 1, 16392), "");
  auto result = kernel.get<uint16_t>(out, 8 * 64);
  // The bounding box has columns -1 to 3, and rows -1, 1 and 3.
  int w = 3, h = 1, n = 1;
  for (int row = 0; row < 8; ++row) {
    const int x = w + 1, y = h + 2;
    const bool inside = x < 5 && y < 4 && n < 3;
    for (int column = 0; column < 64; ++column) {
      int chunk = (column / 8) ^ row;
      int expected =
          inside ? values[size_t(((n * 4 + y) * 5 + x) * 64 + column)] : 0;
      EXPECT_EQ(result[size_t(row * 64 + chunk * 8 + column % 8)], expected)
          << row << ", " << column;
    }
    if (++w > 3) {
      w = -1;
      h += 2;
      if (h > 3) {
        h = -1;
        ++n;
      }
    }
  }
}

TEST(Tensor, CopiesBytesInAndOut) {
  std::string body =
      "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\n" +
      copyAndWait("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::"
                  "bytes [dynamic+64], [%rd1+16], 96, [dynamic+16384];",
                  96) +
      "@%p1 bra $end;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2+32], "
      "[dynamic+80], 64;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;\n$end:";
  PtxKernel kernel(body, 2, kShared);
  std::vector<uint32_t> values(28);
  for (uint32_t i = 0; i < 28; ++i)
    values[i] = i + 1;
  uint64_t in = kernel.put(values), out = kernel.put(std::vector<uint32_t>(24));
  ASSERT_EQ(kernel.run({in, out}, 32, 1, 16392), "");
  auto result = kernel.get<uint32_t>(out, 24);
  for (uint32_t i = 0; i < 24; ++i)
    EXPECT_EQ(result[i], i < 8 ? 0 : values[i]) << i;
  uint64_t small = kernel.put(std::vector<uint32_t>(27));
  std::string fault = kernel.run({small, out}, 32, 1, 16392);
  EXPECT_NE(fault.find("reads 96 bytes out of bounds"), std::string::npos)
      << fault;
}

TEST(Tensor, CopiesThatNobodyWaitsForAreSeen) {
  std::string body = "ld.param.b64 %rd1, [p0];\nmov.b32 %r1, 0;\n" +
                     copyAndWait(kCopy + "[dynamic], [%rd1, {%r1, %r1}], "
                                         "[dynamic+16384];",
                                 1024);
  size_t wait = body.find("$wait:\n");
  body.resize(wait + 7);
  body += "ld.shared.b32 %r5, [%r30+64];\nst.shared.b32 [%r30+8192], %r5;";
  PtxKernel kernel(body, 1, kShared);
  uint64_t map = makeMap(kernel, std::vector<uint16_t>(8 * 64), 8);
  std::string fault = kernel.run({map}, 1, 1, 16392);
  EXPECT_NE(fault.find("unfinished async copy"), std::string::npos) << fault;
}

/// A thread fills a row with halves of 1, has it stored as row 1 of a tensor,
/// does `between`, fills it with halves of 2 and does what is `last`.
static std::string storeARow(const std::string &between,
                             const std::string &last) {
  std::string body = "ld.param.b64 %rd1, [p0];\nmov.b32 %r1, 0;\n"
                     "mov.b32 %r2, 1;\nmov.b32 %r3, 0x3C003C00;\n"
                     "mov.b32 %r4, 0x40004000;\n";
  auto fill = [&](const std::string &value) {
    for (int at = 0; at < 128; at += 16)
      body += "st.shared.v4.b32 [dynamic+" + std::to_string(at) + "], {" +
              value + ", " + value + ", " + value + ", " + value + "};\n";
  };
  fill("%r3");
  body += "fence.proxy.async.shared::cta;\n"
          "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, "
          "{%r1, %r2}], [dynamic];\ncp.async.bulk.commit_group;\n" +
          between;
  fill("%r4");
  return body + last;
}

TEST(Tensor, StoresReadBeforeTheyAreWaitedFor) {
  auto run = [](const std::string &body, std::vector<uint16_t> &result) {
    PtxKernel kernel(body, 1, kShared);
    EXPECT_EQ(kernel.error, "");
    std::vector<uint16_t> zeros(3 * 64);
    uint64_t map = makeMap(kernel, zeros, 1);
    std::string fault = kernel.run({map}, 1, 1, 1024);
    result = kernel.get<uint16_t>(kernel.get<TensorMap>(map, 1)[0].address,
                                  zeros.size());
    return fault;
  };
  std::vector<uint16_t> result;
  for (const char *wait : {"cp.async.bulk.wait_group.read 0;\n",
                           "cp.async.bulk.wait_group 0;\n"}) {
    EXPECT_EQ(run(storeARow(wait, ""), result), "");
    for (size_t i = 0; i < result.size(); ++i)
      EXPECT_EQ(result[i], i / 64 == 1 ? 0x3C00 : 0) << i;
  }
  // One group may be on its way, and this is the only one.
  for (const char *wait : {"", "cp.async.bulk.wait_group.read 1;\n"}) {
    std::string fault =
        run(storeARow(wait, "cp.async.bulk.wait_group 0;\n"), result);
    EXPECT_NE(fault.find("writes byte 0 of shared memory, which an unfinished "
                         "bulk store or wgmma reads"),
              std::string::npos)
        << fault;
  }
  std::string fault = run(storeARow("ret;\n", ""), result);
  EXPECT_NE(fault.find("ends while its bulk stores may still read"),
            std::string::npos)
      << fault;
}

TEST(Tensor, RefusesWhatIsNoMap) {
  std::string body = "ld.param.b64 %rd1, [p0];\nmov.b32 %r1, 0;\n" +
                     copyAndWait(kCopy + "[dynamic], [%rd1, {%r1, %r1}], "
                                         "[dynamic+16384];",
                                 1024);
  PtxKernel kernel(body, 1, kShared);
  uint64_t zeros = kernel.put(std::vector<uint64_t>(16));
  std::string fault = kernel.run({zeros}, 1, 1, 16392);
  EXPECT_NE(fault.find("isn't a tensor map"), std::string::npos) << fault;
}

/// Copies a tile of 8 KiB by the map that is the first parameter to the start
/// of shared memory and one of 1 KiB by the second behind it; %rd3 is the
/// third.
static std::string copyOperands() {
  return "ld.param.b64 %rd1, [p0];\nld.param.b64 %rd2, [p1];\n"
         "ld.param.b64 %rd3, [p2];\nmov.b32 %r1, 0;\n" +
         copyAndWait(
             kCopy + "[dynamic], [%rd1, {%r1, %r1}], [dynamic+16384];\n" +
                 kCopy + "[dynamic+8192], [%rd2, {%r1, %r1}], [dynamic+16384];",
             8192 + 1024);
}

/// Each float of eight bits times 1, by its code: row m of A has code m + 64 *
/// `part` at k = 0 and zeros behind it, column 0 of B is 1.
static std::vector<float> decodeByWarpgroups(const std::string &type,
                                             uint8_t one, unsigned part) {
  std::string body =
      copyOperands() +
      "mov.b64 %rd10, 0x4000004000010000;\nor.b64 %rd11, %rd10, 512;\n"
      "mov.pred %p3, 0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32." +
      type + "." + type + R"( {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p3, 1, 1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd4, %r31, 16;
    add.s64 %rd3, %rd3, %rd4;
    st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3};)";
  PtxKernel kernel(body, 3, kShared);
  EXPECT_EQ(kernel.error, "");
  // Two floats in the place of a half.
  std::vector<uint16_t> left(64 * 64), right(8 * 64);
  for (unsigned m = 0; m < 64; ++m)
    left[m * 64] = uint16_t(m + 64 * part);
  right[0] = one;
  uint64_t mapA = makeMap(kernel, left, 64), mapB = makeMap(kernel, right, 8);
  uint64_t out = kernel.put(std::vector<float>(512));
  EXPECT_EQ(kernel.run({mapA, mapB, out}, 128, 1, 16392), "");
  auto result = kernel.get<float>(out, 512);
  std::vector<float> values;
  for (size_t m = 0; m < 64; ++m)
    values.push_back(result[(m / 16 * 32 + m % 8 * 4) * 4 + m % 16 / 8 * 2]);
  return values;
}

TEST(Tensor, WarpgroupsMultiplyFloatsOfEightBits) {
  const std::vector<float> zeros = decodeByWarpgroups("e4m3", 0x38, 0);
  EXPECT_EQ(zeros[0], 0.0f);
  EXPECT_EQ(zeros[1], std::ldexp(1.0f, -9));
  EXPECT_EQ(zeros[9], 9 * std::ldexp(1.0f, -9));
  const std::vector<float> e4m3 = decodeByWarpgroups("e4m3", 0x38, 1);
  EXPECT_EQ(e4m3[0x7e - 64], 448.0f);
  EXPECT_TRUE(std::isnan(e4m3[0x7f - 64]));
  EXPECT_EQ(decodeByWarpgroups("e4m3", 0x38, 3)[0xc0 - 192], -2.0f);
  const std::vector<float> e5m2 = decodeByWarpgroups("e5m2", 0x3c, 1);
  EXPECT_EQ(e5m2[0x7b - 64], 57344.0f);
  EXPECT_EQ(e5m2[0x7c - 64], INFINITY);
  EXPECT_TRUE(std::isnan(e5m2[0x7d - 64]));
  EXPECT_EQ(decodeByWarpgroups("e5m2", 0x3c, 0)[3], 3 * std::ldexp(1.0f, -16));
}

TEST(Tensor, WarpgroupsReadUntilTheyAreWaitedFor) {
  auto run = [](const std::string &wait) {
    const std::string body =
        copyOperands() +
        "mov.b64 %rd10, 0x4000004000010000;\nor.b64 %rd11, %rd10, 512;\n"
        "mov.pred %p3, 0;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%f0, %f1, %f2, %f3}, %rd10, %rd11, %p3, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned;\n" +
        wait + "bar.sync 0;\nst.shared.b32 [dynamic+8192], %r31;";
    PtxKernel kernel(body, 3, kShared);
    uint64_t mapA = makeMap(kernel, std::vector<uint16_t>(64 * 64), 64);
    uint64_t mapB = makeMap(kernel, std::vector<uint16_t>(8 * 64), 8);
    return kernel.run({mapA, mapB, 0}, 128, 1, 16392);
  };
  EXPECT_EQ(run("wgmma.wait_group.sync.aligned 0;\n"), "");
  for (const char *wait : {"", "wgmma.wait_group.sync.aligned 1;\n"}) {
    const std::string fault = run(wait);
    EXPECT_NE(fault.find("writes byte 8192 of shared memory, which an "
                         "unfinished bulk store or wgmma reads"),
              std::string::npos)
        << fault;
  }
}

TEST(Tensor, WarpgroupsMultiply) {
  // D [64, 8] = A [64, 16] B [8, 16]^T, twice: once without D, once on top.
  std::string product =
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
      "{%f0, %f1, %f2, %f3}, %rd10, %rd11, %p3, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  std::string body =
      copyOperands() +
      "mov.f32 %f0, 0f42C80000;\nmov.b64 %rd10, 0x4000004000010000;\n"
      "or.b64 %rd11, %rd10, 512;\nmov.pred %p3, 0;\n" +
      product + "mov.pred %p3, 1;\n" + product + R"(
    mul.wide.u32 %rd4, %r31, 16;
    add.s64 %rd3, %rd3, %rd4;
    st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3};)";
  PtxKernel kernel(body, 3, kShared);
  ASSERT_EQ(kernel.error, "");
  auto a = [](int m, int k) { return (m * 3 + k * 5) % 11 - 5; };
  auto b = [](int n, int k) { return (n * 7 + k * 2) % 13 - 6; };
  std::vector<uint16_t> left(64 * 64), right(8 * 64);
  for (int k = 0; k < 64; ++k) {
    for (int m = 0; m < 64; ++m)
      left[size_t(m * 64 + k)] = halfOf(a(m, k));
    for (int n = 0; n < 8; ++n)
      right[size_t(n * 64 + k)] = halfOf(b(n, k));
  }
  uint64_t mapA = makeMap(kernel, left, 64), mapB = makeMap(kernel, right, 8);
  uint64_t out = kernel.put(std::vector<float>(512));
  ASSERT_EQ(kernel.run({mapA, mapB, out}, 128, 1, 16392), "");
  auto result = kernel.get<float>(out, 512);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 4; ++i) {
      int m = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2);
      int n = thread % 4 * 2 + i % 2, sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += a(m, k) * b(n, k);
      EXPECT_EQ(result[size_t(thread * 4 + i)], 2.0f * float(sum))
          << m << ", " << n;
    }
}
