//===- CPUAttrs.cpp - How packed operands lie in memory -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/CPU/Winograd.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

#include "dialects/CPU/CPUEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/CPU/CPUAttrs.cpp.inc"

void CPUDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/CPU/CPUAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// PackingAttr
//===----------------------------------------------------------------------===//

static int64_t countBits(PackedElement element) {
  switch (element) {
  case PackedElement::U2:
    return 2;
  case PackedElement::U4:
  case PackedElement::F4:
    return 4;
  default:
    return 8;
  }
}

LogicalResult PackingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  PackedElement element, int64_t panel) {
  constexpr int64_t kWidest = 1 << 16;
  if (panel < 1 || panel > kWidest)
    return emitError() << "a panel has 1 to " << kWidest << " columns, not "
                       << panel;
  constexpr int64_t kLeastCompressed = 8;
  bool isCompressed =
      element == PackedElement::W21 || element == PackedElement::W24;
  if (isCompressed && (panel < kLeastCompressed || !llvm::isPowerOf2_64(panel)))
    return emitError()
           << "panels of numbers of 21 or 24 bits must have a power "
              "of two of columns, from "
           << kLeastCompressed << " on, but have " << panel;
  int64_t perByte = 8 / countBits(element);
  if (panel % perByte)
    return emitError() << "a panel of " << panel << " columns has no bytes of "
                       << perByte << " integers";
  return success();
}

int64_t PackingAttr::getDepthGroup() const {
  switch (getElement()) {
  case PackedElement::I8:
    return 4;
  case PackedElement::I16:
  case PackedElement::BF16:
    return 2;
  default:
    return 1;
  }
}

int64_t PackingAttr::getPackedDepth(int64_t depth) const {
  return llvm::divideCeil(depth, isQuantized() ? kQuantizedGroup
                                 : getElement() == PackedElement::W21
                                     ? kW21Group
                                     : getDepthGroup());
}

int64_t PackingAttr::getRowSize() const {
  if (isQuantized())
    return getPanel() * getBits() / 8 * kQuantizedGroup;
  if (getElement() == PackedElement::W24)
    return getPanel() * 3;
  return getPanel() * getDepthGroup();
}

Type PackingAttr::getStoredType() const {
  Builder b(getContext());
  switch (getElement()) {
  case PackedElement::F32:
    return b.getF32Type();
  case PackedElement::BF16:
    return b.getBF16Type();
  case PackedElement::F16:
    return b.getF16Type();
  case PackedElement::I16:
    return b.getI16Type();
  case PackedElement::W21:
    return b.getI64Type();
  default:
    return b.getI8Type();
  }
}

bool PackingAttr::isOfBytes() const {
  return getElement() == PackedElement::I8 ||
         getElement() == PackedElement::I16;
}

bool PackingAttr::isQuantized() const {
  return getElement() == PackedElement::U2 ||
         getElement() == PackedElement::U4 ||
         getElement() == PackedElement::U8 || getSmallFloat();
}

FloatType PackingAttr::getSmallFloat() const {
  switch (getElement()) {
  case PackedElement::F4:
    return Float4E2M1FNType::get(getContext());
  case PackedElement::F8E4M3:
    return Float8E4M3FNType::get(getContext());
  case PackedElement::F8E5M2:
    return Float8E5M2Type::get(getContext());
  default:
    return nullptr;
  }
}

bool PackingAttr::isCompressed() const {
  return getElement() == PackedElement::W21 ||
         getElement() == PackedElement::W24;
}

int64_t PackingAttr::getBits() const { return countBits(getElement()); }

//===----------------------------------------------------------------------===//
// FiltersAttr
//===----------------------------------------------------------------------===//

LogicalResult FiltersAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  FilterElement element, int64_t rows,
                                  bool inLanes, int64_t winograd,
                                  int64_t stride) {
  constexpr int64_t kMax = 1 << 16;
  if (rows < 1 || rows > kMax)
    return emitError() << "a block has 1 to " << kMax << " filters, not "
                       << rows;
  if (winograd != 0 && winograd != 2 && winograd != 4)
    return emitError() << "'winograd' must be 2 or 4, got " << winograd;
  if (stride != 1 && (stride != 2 || !winograd))
    return emitError() << "'stride' must be 1 or 2, and is for 'winograd'; got "
                       << stride;
  if (inLanes && rows != kPanelWidth)
    return emitError() << "filters in the lanes of vectors come in blocks of "
                       << kPanelWidth << ", not of " << rows;
  if (element == FilterElement::BF16x2 &&
      (winograd || inLanes || rows != kBf16x2Block))
    return emitError() << "sums of bf16 come in blocks of " << kBf16x2Block
                       << " filters, and neither for 'winograd' nor in lanes";
  return success();
}

const Winograd *FiltersAttr::getAlgorithm() const {
  return getWinograd() ? &cpu::getWinograd(getWinograd(), getStride())
                       : nullptr;
}

//===----------------------------------------------------------------------===//
// MatmulPlanAttr
//===----------------------------------------------------------------------===//

LogicalResult
MatmulPlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       ArrayRef<MatmulCaseAttr> cases, MatmulCaseAttr direct) {
  constexpr size_t kMaxCases = 16;
  constexpr int64_t kMaxRows = int64_t(1) << 31;
  if (cases.empty() || cases.size() > kMaxCases)
    return emitError() << "a plan has 1 to " << kMaxCases << " cases, not "
                       << cases.size();
  int64_t before = 0;
  for (MatmulCaseAttr one : cases.drop_back()) {
    if (one.getMaxRows() <= before)
      return emitError() << "'max_rows' must grow from case to case, but "
                         << one.getMaxRows() << " comes after " << before;
    before = one.getMaxRows();
    if (before > kMaxRows)
      return emitError() << "'max_rows' is at most " << kMaxRows << ", not "
                         << before;
  }
  if (cases.back().getMaxRows() || (direct && direct.getMaxRows()))
    return emitError() << "the last case and 'direct' have no 'max_rows'";
  return success();
}
