//===- Half.cpp - Products of f32 with f16 --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of f16 become f32 on their way from memory, exactly, and are
// multiplied and summed up as such.
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/Half.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Value cpu::emitHalves(ImplicitLocOpBuilder &b, const PackedTile &tile,
                      Value panel, Value k) {
  Value halves = emitLoad(b, tile.rhs, {panel, k, tile.column}, tile.width);
  return arith::ExtFOp::create(b, VectorType::get({tile.width}, b.getF32Type()),
                               halves);
}

namespace {

class Half : public MicroKernel {
public:
  Half() : MicroKernel("half", PackedElement::F16) {}

  bool isSupported(TargetAttr target) const override {
    return target.has(TargetTraits::ConvertsHalves);
  }

protected:
  Value emitRhs(ImplicitLocOpBuilder &b, const PackedTile &tile, Value panel,
                Value k) const override {
    return emitHalves(b, tile, panel, k);
  }
};

} // namespace

namespace sardonyx::cpu {

const MicroKernel &getHalf() {
  static const Half kernel;
  return kernel;
}

} // namespace sardonyx::cpu
