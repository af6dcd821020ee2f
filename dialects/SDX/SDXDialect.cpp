//===- SDXDialect.cpp - The sdx dialect -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXDialect.cpp.inc"

std::string sdx::describeOrigin(Location loc) {
  std::string result;
  loc->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto text = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata())
                      : StringAttr();
    if (!text)
      return WalkResult::advance();
    result = text.str();
    return WalkResult::interrupt();
  });
  return result;
}

void SDXDialect::initialize() {
  registerTargetAttr();
  addOperations<
#define GET_OP_LIST
#include "dialects/SDX/SDXOps.cpp.inc"
      >();
}
