//===- Activations.h - Activations that are part of an op -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_ACTIVATIONS_H
#define SARDONYX_LIB_CONTRIB_ACTIVATIONS_H

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// The activation that the attribute `activation` names, with the parameters
/// that are given for it; `value` where there is none.
Name activate(Body &b, const Name &value, llvm::ArrayRef<float> params,
              int elementType);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_ACTIVATIONS_H
