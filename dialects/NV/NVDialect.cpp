//===- NVDialect.cpp - The nv dialect -------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

#include "dialects/NV/NVDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/NV/NVAttrs.cpp.inc"

void NVDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NV/NVAttrs.cpp.inc"
      >();
}

void NVDialect::initialize() { registerAttrs(); }
