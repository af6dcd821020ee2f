//===- Fma.cpp - Products of f32 by multiply-adds -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/MicroKernel.h"

using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

class Fma : public MicroKernel {
public:
  /// Others than f32 are unpacked before (MatmulPlan::unpacksPanels).
  Fma()
      : MicroKernel("fma",
                    withQuantized({PackedElement::F32, PackedElement::F16})) {}

  bool isSupported(TargetAttr) const override { return true; }
};

} // namespace

namespace sardonyx::cpu {

const MicroKernel &getFma() {
  static const Fma kernel;
  return kernel;
}

} // namespace sardonyx::cpu
