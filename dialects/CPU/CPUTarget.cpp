//===- CPUTarget.cpp - The machine that code is for -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

TargetAttr TargetAttr::getDefault(MLIRContext *context) {
  // As parameters that are left out are.
  return cast<TargetAttr>(parseAttribute("#cpu.target<>", context));
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef, StringRef, StringRef,
                                 unsigned vectorBits, unsigned vectorRegisters,
                                 unsigned l1KiB, unsigned l2KiB, F32Product,
                                 Int8Product, Bf16Product, TargetTraits) {
  if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
    return emitError() << "vectors have 128, 256 or 512 bits, not "
                       << vectorBits;
  if (vectorRegisters != 0 && (vectorRegisters < 16 || vectorRegisters > 64))
    return emitError() << "there are 16 to 64 vector registers, not "
                       << vectorRegisters;
  constexpr unsigned kMaxKiB = 1 << 20;
  if (l1KiB == 0 || l2KiB == 0 || l1KiB > kMaxKiB || l2KiB > kMaxKiB)
    return emitError() << "caches of " << l1KiB << " and " << l2KiB
                       << " KiB are none";
  return success();
}

unsigned TargetAttr::countVectorRegisters() const {
  if (getVectorRegisters())
    return getVectorRegisters();
  return getVectorBits() >= 512 ? 32 : 16;
}

int64_t TargetAttr::getBytesBesideTile() const {
  // Measured with 32 KiB; larger ones were not.
  return std::min(getL1Kib(), 32u) * 1024 * 7 / 8;
}

int64_t TargetAttr::getBytesOfFastL3() const {
  return has(TargetTraits::FastL3) && getVectorBits() < 512 ? 8 << 20 : 0;
}

/// Whether a kernel without scores in memory is at least as fast as two
/// products and a softmax (measured with 256 bits and 16 registers), or saves
/// most of the memory.
bool TargetAttr::hasAttention(const sdx::AttentionSizes &sizes) const {
  // Rows that are longer leave no room in the second cache for enough of them.
  constexpr int64_t kLongest = 512;
  auto isWithin = [](int64_t size, int64_t most) {
    return !ShapedType::isDynamic(size) && size > 0 && size <= most;
  };
  if ((!sizes.type.isF32() && !sizes.type.isBF16()) ||
      !isWithin(sizes.depth, kLongest) || !isWithin(sizes.columns, kLongest))
    return false;
  // Other products would first need them as floats in memory.
  if (sizes.areBytes)
    return sizes.type.isF32();
  // Its products are multiply-adds of f32, unless pairs of bf16 are multiplied.
  // Sums of bf16 in tile registers are no faster: scores go through memory
  // then.
  const bool arePairs =
      sizes.type.isBF16() && getBf16() != Bf16Product::Generic;
  const bool isWidened = sizes.type.isBF16() && !arePairs;
  const bool isOpen = ShapedType::isDynamic(sizes.keys);
  const int64_t queries =
      ShapedType::isDynamic(sizes.queries) ? sizes.keys : sizes.queries;
  // Scores that are some times as many as all operands and results.
  constexpr double kTimes = 4;
  if (!isOpen &&
      double(queries) * sizes.keys >= kTimes * (double(queries) + sizes.keys) *
                                          (double(sizes.depth) + sizes.columns))
    return true;
  // Of longer rows fewer queries share packed keys. Few keys are as soon packed
  // and multiplied by other kernels, unless bf16 are widened there first.
  constexpr int64_t kLong = 128, kFewQueries = 4, kManyKeys = 192;
  if (arePairs)
    return true;
  return isWithin(sizes.depth, kLong) && isWithin(sizes.columns, kLong) &&
         (isOpen || isWidened || sizes.keys >= kManyKeys ||
          isWithin(sizes.queries, kFewQueries));
}

bool TargetAttr::hasRoomyL1() const { return getL1Kib() >= 48; }

static TargetAttr with(TargetAttr target, F32Product f32, Int8Product int8,
                       Bf16Product bf16) {
  return TargetAttr::get(target.getContext(), target.getTriple(),
                         target.getCpu(), target.getFeatures(),
                         target.getVectorBits(), target.getVectorRegisters(),
                         target.getL1Kib(), target.getL2Kib(), f32, int8, bf16,
                         target.getTraits());
}

TargetAttr TargetAttr::withF32Product(F32Product product) const {
  return with(*this, product, getInt8(), getBf16());
}

TargetAttr TargetAttr::withoutTiles() const {
  return with(*this, F32Product::Fma, std::min(getInt8(), Int8Product::Vnni),
              std::min(getBf16(), Bf16Product::Dot));
}

TargetAttr cpu::getTarget(Operation *op) {
  return dyn_cast_or_null<TargetAttr>(sdx::getTarget(op));
}

TargetAttr cpu::getTargetOrDefault(Operation *op) {
  if (TargetAttr target = getTarget(op))
    return target;
  return TargetAttr::getDefault(op->getContext());
}
