//===- ProcessorFeatures.cpp - What this processor can do -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/ProcessorFeatures.h"
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

using namespace sardonyx::runtime;

//===----------------------------------------------------------------------===//
// x86-64: CPUID, and which registers the system saves (XCR0)
//===----------------------------------------------------------------------===//

namespace {
enum Leaf : uint8_t { Leaf1, Leaf7, Leaf7Sub1, Extended, LeafCount };
enum Register : uint8_t { A, B, C, D };
enum State : uint8_t { Always, Avx, Avx512, Tiles };

struct X86Feature {
  const char *name;
  Leaf leaf;
  Register where;
  uint8_t bit;
  State state;
};

/// Linux's AT_HWCAP, or AT_HWCAP2.
struct ArmFeature {
  const char *name;
  bool isSecond;
  uint8_t bit;
};
} // namespace

static constexpr X86Feature kX86[] = {
    {"sse3", Leaf1, C, 0, Always},
    {"pclmul", Leaf1, C, 1, Always},
    {"ssse3", Leaf1, C, 9, Always},
    {"fma", Leaf1, C, 12, Avx},
    {"cx16", Leaf1, C, 13, Always},
    {"sse4.1", Leaf1, C, 19, Always},
    {"sse4.2", Leaf1, C, 20, Always},
    {"movbe", Leaf1, C, 22, Always},
    {"popcnt", Leaf1, C, 23, Always},
    {"aes", Leaf1, C, 25, Always},
    {"avx", Leaf1, C, 28, Avx},
    {"f16c", Leaf1, C, 29, Avx},
    {"bmi", Leaf7, B, 3, Always},
    {"avx2", Leaf7, B, 5, Avx},
    {"bmi2", Leaf7, B, 8, Always},
    {"avx512f", Leaf7, B, 16, Avx512},
    {"avx512dq", Leaf7, B, 17, Avx512},
    {"avx512ifma", Leaf7, B, 21, Avx512},
    {"avx512cd", Leaf7, B, 28, Avx512},
    {"sha", Leaf7, B, 29, Always},
    {"avx512bw", Leaf7, B, 30, Avx512},
    {"avx512vl", Leaf7, B, 31, Avx512},
    {"avx512vbmi", Leaf7, C, 1, Avx512},
    {"avx512vbmi2", Leaf7, C, 6, Avx512},
    {"gfni", Leaf7, C, 8, Always},
    {"vaes", Leaf7, C, 9, Avx},
    {"vpclmulqdq", Leaf7, C, 10, Avx},
    {"avx512vnni", Leaf7, C, 11, Avx512},
    {"avx512bitalg", Leaf7, C, 12, Avx512},
    {"avx512vpopcntdq", Leaf7, C, 14, Avx512},
    {"amx-bf16", Leaf7, D, 22, Tiles},
    {"avx512fp16", Leaf7, D, 23, Avx512},
    {"amx-tile", Leaf7, D, 24, Tiles},
    {"amx-int8", Leaf7, D, 25, Tiles},
    {"avxvnni", Leaf7Sub1, A, 4, Avx},
    {"avx512bf16", Leaf7Sub1, A, 5, Avx512},
    {"avxifma", Leaf7Sub1, A, 23, Avx},
    {"lzcnt", Extended, C, 5, Always},
    {"sse4a", Extended, C, 6, Always},
};

static constexpr ArmFeature kArm[] = {
    {"neon", false, 1},      {"fp-armv8", false, 0}, {"aes", false, 3},
    {"sha2", false, 6},      {"crc", false, 7},      {"lse", false, 8},
    {"fullfp16", false, 10}, {"rdm", false, 12},     {"dotprod", false, 20},
    {"sve", false, 22},      {"fp16fml", false, 23}, {"sve2", true, 1},
    {"i8mm", true, 13},      {"bf16", true, 14},
};

#if defined(__x86_64__)

bool sardonyx::runtime::requestTileRegisters() {
  // A thread has no room for them until its process has asked.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted =
      syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

namespace {
class Processor {
public:
  Processor() {
    read(Leaf1, 1, 0);
    read(Leaf7, 7, 0);
    read(Leaf7Sub1, 7, 1);
    read(Extended, 0x80000001, 0);
    // OSXSAVE: XCR0 can be read.
    if (words[Leaf1][C] >> 27 & 1) {
      uint32_t low, high;
      __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      saved = low;
    }
  }

  bool has(const X86Feature &feature) const {
    constexpr uint32_t kNeeded[] = {0, 0x6, 0xe6, 0x60000};
    uint32_t needed = kNeeded[feature.state];
    return (words[feature.leaf][feature.where] >> feature.bit & 1) &&
           (saved & needed) == needed &&
           (feature.state != Tiles || requestTileRegisters());
  }

private:
  void read(Leaf leaf, unsigned number, unsigned sub) {
    uint32_t *w = words[leaf];
    if (!__get_cpuid_count(number, sub, &w[A], &w[B], &w[C], &w[D]))
      memset(w, 0, sizeof(words[leaf]));
  }

  uint32_t words[LeafCount][4] = {};
  uint32_t saved = 0;
};
} // namespace

static bool hasFeature(std::string_view name) {
  static const Processor processor;
  for (const X86Feature &feature : kX86)
    if (name == feature.name)
      return processor.has(feature);
  return false;
}

#else

bool sardonyx::runtime::requestTileRegisters() { return false; }

static bool hasFeature(std::string_view name) {
#if defined(__aarch64__)
  constexpr unsigned long kHwcap = 16, kHwcap2 = 26;
  for (const ArmFeature &feature : kArm)
    if (name == feature.name)
      return getauxval(feature.isSecond ? kHwcap2 : kHwcap) >> feature.bit & 1;
#endif
  (void)name;
  return false;
}

#endif

std::vector<std::string_view>
sardonyx::runtime::knownFeatures(std::string_view architecture) {
  std::vector<std::string_view> names;
  if (architecture == "x86_64")
    for (const X86Feature &feature : kX86)
      names.push_back(feature.name);
  if (architecture == "aarch64")
    for (const ArmFeature &feature : kArm)
      names.push_back(feature.name);
  return names;
}

std::string sardonyx::runtime::missingFeatures(std::string_view features) {
  std::string missing;
  while (!features.empty()) {
    size_t end = features.find(',');
    std::string_view name = features.substr(0, end);
    features.remove_prefix(end == std::string_view::npos ? features.size()
                                                         : end + 1);
    if (name.empty() || hasFeature(name))
      continue;
    missing += missing.empty() ? "" : ",";
    missing += name;
  }
  return missing;
}
