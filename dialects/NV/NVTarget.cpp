//===- NVTarget.cpp - The device that code is for -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

namespace {
/// What is known of the devices from one compute capability on.
struct Facts {
  unsigned sm, ptx, registers, sharedBytes, multiprocessors, l2MiB;
};
} // namespace

constexpr unsigned kLeastSm = 80;
constexpr unsigned kMostSm = 199;

/// Shared memory: "Maximum amount of shared memory per thread block" of CUDA's
/// programming guide, appendix "Compute Capabilities". Multiprocessors and
/// caches: the largest product, A100, A10, L40, H100, B200. PTX: the first
/// version that knows the capability, but for 80's.
static constexpr Facts kFacts[] = {
    {80, 70, 65536, 163 * 1024, 108, 40},
    {86, 71, 65536, 99 * 1024, 72, 6},
    {87, 74, 65536, 163 * 1024, 16, 4},
    {89, 78, 65536, 99 * 1024, 142, 96},
    {90, 78, 65536, 227 * 1024, 132, 50},
    {100, 86, 65536, 227 * 1024, 148, 126},
    {120, 87, 65536, 99 * 1024, 188, 128},
};

static const Facts &getFacts(unsigned sm) {
  const Facts *found = &kFacts[0];
  for (const Facts &facts : kFacts)
    if (facts.sm <= sm)
      found = &facts;
  return *found;
}

/// Instructions of one capability alone came with version 8.0.
static unsigned getLeastPtx(unsigned sm, StringRef feature) {
  return std::max(getFacts(sm).ptx, feature.empty() ? 0u : 80u);
}

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 unsigned sm, StringRef feature, unsigned ptx,
                                 unsigned registers, unsigned sharedBytes,
                                 unsigned multiprocessors, unsigned l2MiB) {
  if (sm < kLeastSm || sm > kMostSm)
    return emitError() << "code is for compute capabilities from " << kLeastSm
                       << " on, not for " << sm;
  if (!feature.empty() && feature != "a" && feature != "f")
    return emitError() << "the letter of a compute capability is a or f, not '"
                       << feature << "'";
  if (ptx && (ptx < getLeastPtx(sm, feature) || ptx > 99))
    return emitError() << "sm_" << sm << feature << " needs PTX "
                       << getLeastPtx(sm, feature) << " or later, not " << ptx;
  if (registers > 1 << 20 || sharedBytes > 1 << 20 ||
      multiprocessors > 1 << 16 || l2MiB > 1 << 16)
    return emitError() << "no device is as large as this one";
  return success();
}

TargetAttr TargetAttr::getKnown(MLIRContext *context, unsigned sm,
                                StringRef feature) {
  const Facts &facts = getFacts(sm);
  return get(context, sm, feature, getLeastPtx(sm, feature), facts.registers,
             facts.sharedBytes, facts.multiprocessors, facts.l2MiB);
}

std::string TargetAttr::getChip() const {
  // Code for an older capability runs on the newer ones, but for a letter's.
  unsigned sm = getFeature().empty() ? getFacts(getSm()).sm : getSm();
  return ("sm_" + Twine(sm) + getFeature()).str();
}

unsigned TargetAttr::getPtxVersion() const {
  return getPtx() ? getPtx() : getLeastPtx(getSm(), getFeature());
}

unsigned TargetAttr::countRegisters() const {
  return getRegisters() ? getRegisters() : getFacts(getSm()).registers;
}

unsigned TargetAttr::getSharedBytesOfBlock() const {
  return getSharedBytes() ? getSharedBytes() : getFacts(getSm()).sharedBytes;
}

unsigned TargetAttr::countMultiprocessors() const {
  return getMultiprocessors() ? getMultiprocessors()
                              : getFacts(getSm()).multiprocessors;
}

unsigned TargetAttr::getL2MiB() const {
  return getL2Mib() ? getL2Mib() : getFacts(getSm()).l2MiB;
}

/// A kernel has 512 words of parameters, of which a tensor of open sizes takes
/// one and one for each of them.
sdx::FusionLimits TargetAttr::getFusionLimits() const {
  return sdx::FusionLimits();
}

Attribute TargetAttr::getMemorySpace() const {
  return gpu::AddressSpaceAttr::get(getContext(), gpu::AddressSpace::Global);
}

/// The longest rows of queries, keys and values are as long as a thread has
/// registers for.
bool TargetAttr::hasAttention(const sdx::AttentionSizes &sizes) const {
  constexpr int64_t kLongest = 256;
  auto isPossible = [](int64_t size) {
    return !ShapedType::isDynamic(size) && size > 0 && size <= kLongest;
  };
  return !sizes.areBytes &&
         (sizes.type.isF16() || sizes.type.isBF16() || sizes.type.isF32()) &&
         isPossible(sizes.depth) && isPossible(sizes.columns);
}

TargetAttr nv::findDevice(MLIRContext *context, StringRef name) {
  unsigned sm = 0;
  if (!name.consume_front("sm_") || name.consumeInteger(10, sm) ||
      sm < kLeastSm || sm > kMostSm ||
      (!name.empty() && name != "a" && name != "f"))
    return {};
  return TargetAttr::getKnown(context, sm, name);
}

TargetAttr nv::getTargetOrDefault(Operation *op) {
  TargetAttr known = getTarget(op);
  return known ? known : findDevice(op->getContext(), "sm_80");
}

TargetAttr nv::getTarget(Operation *op) {
  return dyn_cast_or_null<TargetAttr>(sdx::getTarget(op));
}
