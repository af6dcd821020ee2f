//===- SDXAttrs.cpp - Attributes of the sdx dialect -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#define GET_ATTRDEF_CLASSES
#include "dialects/SDX/SDXAttrs.cpp.inc"

// All tasks are of one kind, which no processing unit has a number in.
int64_t TaskAttr::getMappingId() const { return 0; }
bool TaskAttr::isLinearMapping() const { return false; }
int64_t TaskAttr::getRelativeIndex() const { return 0; }

void SDXDialect::registerAttrs() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/SDX/SDXAttrs.cpp.inc"
      >();
}
