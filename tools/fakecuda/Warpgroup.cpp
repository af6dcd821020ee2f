//===- Warpgroup.cpp - Products of matrices by a warpgroup ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "Fragments.h"

namespace sardonyx::fakecuda {

// wgmma: D [64, N] += A [64, K] B [K, N]; K takes 32 bytes of a row. Each of
// the four warps makes 16 rows of D, so that a warp can run by itself.
constexpr unsigned kRows = 16, kMostColumns = 256, kMostDepth = 32;

// What Instruction::flag says.
enum WarpgroupFlag : uint8_t {
  kTransposedA = 1,
  kTransposedB = 2,
  kNegatedA = 4,
  kNegatedB = 8,
  kRegistersA = 16,
};

namespace {

/// A matrix in shared memory that a descriptor tells of.
struct Descriptor {
  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4), mode(unsigned(bits >> 62)) {}

  /// The byte of element `k` of row or column `r`. Rows of 128 bytes are
  /// swizzled: their chunks of 16 bytes change places by the row's number.
  uint32_t find(unsigned r, unsigned k, unsigned bytes, bool transposed) const {
    uint32_t at = transposed ? (r % 64) * bytes + r / 64 * leading +
                                   k % 8 * 128 + k / 8 * stride
                             : r % 8 * 128 + r / 8 * stride + k * bytes;
    at += start;
    return at ^ (at >> 7 & 7) << 4;
  }

  uint32_t start, leading, stride;
  unsigned mode;
};

} // namespace

// Reads `count` rows (of A) or columns (of B), from `first` on. Until the warp
// waits for the product nobody may write what is read.
template <class Element, class T>
static bool fetch(Warp &warp, uint64_t bits, unsigned first, unsigned count,
                  bool transposed, T *into) {
  Descriptor descriptor(bits);
  auto lane = unsigned(__builtin_ctz(warp.mask));
  if (descriptor.mode != 1) {
    warp.fault(lane, "a descriptor of another layout than the swizzle of 128 "
                     "bytes isn't known");
    return false;
  }
  constexpr unsigned kBytes = 4 / Element::kEach, kDepth = 32 / kBytes;
  for (unsigned r = 0; r < count; ++r)
    for (unsigned k = 0; k < kDepth; ++k) {
      uint32_t at = descriptor.find(first + r, k, kBytes, transposed);
      char *memory = warp.access(Space::Shared, lane, at, kBytes, false);
      // Chunks of 16 bytes are copied as a whole.
      bool starts = transposed || k * kBytes % 16 == 0;
      if (!memory ||
          (starts && !warp.block.touch(warp, lane, at, kBytes, Touch::Read)))
        return false;
      if (at % 16 == 0)
        warp.openReads.push_back({at, 16});
      uint32_t element = 0;
      memcpy(&element, memory, kBytes);
      into[r * kMostDepth + k] = T(Element::load(element, 0));
    }
  return true;
}

template <class Element, class T>
static void fetchRegisters(Warp &warp, const uint32_t *rows, T *into) {
  constexpr unsigned kEach = Element::kEach;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned e = 0; e < kEach; ++e) {
        unsigned row = lane / 4 + 8 * (i % 2);
        unsigned k = kEach * (lane % 4) + 4 * kEach * (i / 2) + e;
        into[row * kMostDepth + k] =
            T(Element::load(warp.get(rows[i], lane), e));
      }
}

// False if others of the warp have to come first, or after a fault.
static bool gatherAll(Warp &warp) {
  if (!warp.gather(~0u))
    return false;
  if (warp.mask == ~0u)
    return true;
  warp.fault(unsigned(__builtin_ctz(warp.mask)), "is run by a part of a warp");
  return false;
}

// Operands: the registers of D, then those of A if it is in registers. a and b
// are descriptors, p says whether D is added.
template <class A, class B, class Sum>
static void runWarpgroup(Warp &warp, const Instruction &instruction) {
  if (!gatherAll(warp))
    return;
  auto first = unsigned(__builtin_ctz(warp.mask));
  const size_t readBefore = warp.openReads.size();
  using T = typename Sum::Compute;
  static thread_local T a[kRows * kMostDepth], b[kMostColumns * kMostDepth];
  static thread_local T across[kMostDepth * kMostColumns];
  constexpr unsigned kDepth = 8 * A::kEach;
  unsigned flag = instruction.flag;
  unsigned inA = flag & kRegistersA ? 4 : 0;
  unsigned registers = instruction.count - inA;
  unsigned columns = registers * 2 * Sum::kEach;
  const uint32_t *d = &warp.program.operands[instruction.first];
  if (flag & kRegistersA)
    fetchRegisters<A>(warp, d + registers, a);
  else if (!fetch<A>(warp, warp.get(instruction.a, first),
                     warp.index % 4 * kRows, kRows, flag & kTransposedA, a))
    return;
  if (!fetch<B>(warp, warp.get(instruction.b, first), 0, columns,
                flag & kTransposedB, b))
    return;
  warp.block.markReading(Pieces(warp.openReads.begin() + ptrdiff_t(readBefore),
                                warp.openReads.end()),
                         1);
  for (unsigned k = 0; k < kDepth; ++k)
    for (unsigned n = 0; n < columns; ++n)
      across[k * kMostColumns + n] = b[n * kMostDepth + k];
  bool negates = bool(flag & kNegatedA) != bool(flag & kNegatedB);
  bool adds = warp.predicates[instruction.p] & 1u << first;
  for (unsigned row = 0; row < kRows; ++row) {
    T sums[kMostColumns] = {};
    for (unsigned k = 0; k < kDepth; ++k) {
      T value = a[row * kMostDepth + k];
      const T *with = across + k * kMostColumns;
      for (unsigned n = 0; n < columns; ++n)
        sums[n] += value * with[n];
    }
    // Register i of a lane holds row g or g + 8, and two columns of each 8.
    for (unsigned n = 0; n < columns; ++n) {
      unsigned lane = row % 8 * 4 + n % 8 / 2;
      unsigned element = n / 8 * 4 + row / 8 * 2 + n % 2;
      unsigned shift = 32 / Sum::kEach * (element % Sum::kEach);
      uint64_t &place = warp.row(d[element / Sum::kEach])[lane];
      T sum = negates ? T(0) - sums[n] : sums[n];
      if (adds)
        sum += Sum::load(place, element % Sum::kEach);
      uint64_t inside = (uint64_t(1) << (32 / Sum::kEach)) - 1;
      place = (place & ~(inside << shift)) | Sum::store(sum) << shift;
    }
  }
}

static void runNothing(Warp &, const Instruction &) {}

static void runCommit(Warp &warp, const Instruction &) {
  if (!gatherAll(warp))
    return;
  warp.readGroups.push_back(std::move(warp.openReads));
  warp.openReads.clear();
}

// Waits until all but so many groups are done.
static void runWait(Warp &warp, const Instruction &instruction) {
  if (!gatherAll(warp))
    return;
  while (warp.readGroups.size() > size_t(instruction.offset)) {
    warp.block.markReading(warp.readGroups.front(), -1);
    warp.readGroups.pop_front();
  }
}

/// Of floats of eight bits.
static Handler findByteFloats(const std::string &a, const std::string &b) {
  using Long = ByteFloatElement<3>;
  using Wide = ByteFloatElement<2>;
  if (a == "e4m3")
    return b == "e4m3"   ? runWarpgroup<Long, Long, FloatElement>
           : b == "e5m2" ? runWarpgroup<Long, Wide, FloatElement>
                         : nullptr;
  if (a == "e5m2")
    return b == "e4m3"   ? runWarpgroup<Wide, Long, FloatElement>
           : b == "e5m2" ? runWarpgroup<Wide, Wide, FloatElement>
                         : nullptr;
  return nullptr;
}

static Handler findProduct(const std::string &sum, const std::string &a,
                           const std::string &b) {
  if (a == "f16" && b == "f16")
    return sum == "f32"   ? runWarpgroup<HalfElement, HalfElement, FloatElement>
           : sum == "f16" ? runWarpgroup<HalfElement, HalfElement, HalfElement>
                          : nullptr;
  if (sum == "f32" && a == "bf16" && b == "bf16")
    return runWarpgroup<BrainElement, BrainElement, FloatElement>;
  if (sum == "f32" && a == "tf32" && b == "tf32")
    return runWarpgroup<TensorFloatElement, TensorFloatElement, FloatElement>;
  if (sum == "s32" && a == "s8" && b == "s8")
    return runWarpgroup<SignedElement, SignedElement, WordElement>;
  if (sum == "s32" && a == "u8" && b == "u8")
    return runWarpgroup<UnsignedElement, UnsignedElement, WordElement>;
  return sum == "f32" ? findByteFloats(a, b) : nullptr;
}

// wgmma.mma_async.sync.aligned.SHAPE.D.A.B d, a, b, p{, negations{,
// transposes}}
static bool decodeProduct(Decoder &decoder) {
  const auto &parts = decoder.statement.parts;
  Instruction &instruction = decoder.instruction;
  if (parts.size() != 8)
    return false;
  const std::string &sum = parts[5], &a = parts[6], &b = parts[7];
  instruction.run = findProduct(sum, a, b);
  size_t n = parts[4].find('n');
  long long columns = 0, value = 0;
  if (!instruction.run || n == std::string::npos ||
      !parseInteger(parts[4].substr(n + 1, parts[4].find('k') - n - 1),
                    columns) ||
      columns < 8 || columns > kMostColumns || columns % 8)
    return false;
  decoder.destinations(decoder.operand(0));
  size_t count = decoder.program->operands.size() - instruction.first;
  if (count * 2 * (sum == "f16" ? 2 : 1) != size_t(columns))
    return decoder.fail("it has another number of registers than it says");
  if (decoder.operand(1)[0] == '{') {
    instruction.flag |= kRegistersA;
    decoder.sources(decoder.operand(1), "b32");
    if (decoder.program->operands.size() - instruction.first != count + 4)
      return decoder.fail("it has another number of registers than it says");
  } else {
    instruction.a = decoder.source(decoder.operand(1), "b64");
  }
  instruction.b = decoder.source(decoder.operand(2), "b64");
  instruction.p = decoder.predicate(decoder.operand(3));
  bool inRegisters = instruction.flag & kRegistersA;
  for (size_t i = 4; i < decoder.operandCount(); ++i) {
    if (!parseInteger(decoder.operand(i), value))
      return decoder.fail("'" + decoder.operand(i) + "' isn't a constant");
    size_t which = i - 4 + (inRegisters && i >= 6);
    if (which < 2 ? value != 1 && value != -1 : value != 0 && value != 1)
      return decoder.fail("'" + decoder.operand(i) + "' isn't known here");
    static const uint8_t kFlags[] = {kNegatedA, kNegatedB, kTransposedA,
                                     kTransposedB};
    if (which > 3)
      return decoder.fail("it has too many operands");
    if (value == (which < 2 ? -1 : 1))
      instruction.flag |= kFlags[which];
  }
  return true;
}

bool decodeWarpgroup(Decoder &decoder) {
  if (decoder.base() != "wgmma")
    return false;
  if (decoder.has("mma_async") && !decoder.has("sp"))
    return decodeProduct(decoder);
  if (decoder.has("wait_group")) {
    long long value = 0;
    if (!parseInteger(decoder.operand(0), value) || value < 0)
      return decoder.fail("the number of groups isn't a constant");
    decoder.instruction.run = runWait;
    decoder.instruction.offset = value;
    return true;
  }
  decoder.instruction.run = decoder.has("commit_group") ? runCommit
                            : decoder.has("fence")      ? runNothing
                                                        : nullptr;
  return decoder.instruction.run != nullptr;
}

} // namespace sardonyx::fakecuda
