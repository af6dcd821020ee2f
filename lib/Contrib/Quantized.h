//===- Quantized.h - Integers that stand for floats -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_QUANTIZED_H
#define SARDONYX_LIB_CONTRIB_QUANTIZED_H

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// Floats of a tensor with one scale and one zero point, which may be missing,
/// each a scalar or a list of one.
Name dequantize(Body &b, const Name &value, const Name &scale,
                const Name &zero);

/// The numbers of `bits` bits that lie packed along the last axis of bytes, the
/// lowest bits first.
Name unpack(Body &b, const Name &bytes, int64_t bits, int64_t rank);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_QUANTIZED_H
