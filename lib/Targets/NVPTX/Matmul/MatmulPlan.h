//===- MatmulPlan.h - Which tiles a product goes by -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H

#include "dialects/NV/NV.h"
#include "dialects/SDX/SDX.h"

#include <optional>

namespace sardonyx::nv {

/// Whether there are tiles for what the operation multiplies.
bool hasTiles(sdx::MatmulOp op);
bool hasTiles(sdx::ConvOp op);
/// Whether its packed weights are unpacked in registers.
bool hasTiles(sdx::DequantMatmulOp op);

/// The tiles that are chosen for a product, or none.
std::optional<MatmulPlanAttr> chooseMatmulPlan(sdx::MatmulOp op,
                                               TargetAttr target);
/// The same for a convolution, whose filters are the rows of the product.
std::optional<MatmulPlanAttr> chooseConvPlan(sdx::ConvOp op, TargetAttr target);
/// The same for a product whose weights are unpacked to the type of the other
/// side on their way to the tiles.
std::optional<MatmulPlanAttr> chooseDequantPlan(sdx::DequantMatmulOp op,
                                                TargetAttr target);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H
