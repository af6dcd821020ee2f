//===- SDXDialect.cpp - The sdx dialect -------------------------*- C++ -*-===//

#include "dialects/SDX/SDX.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::sdx;

#include "dialects/SDX/SDXDialect.cpp.inc"

void SDXDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/SDX/SDXOps.cpp.inc"
      >();
}
