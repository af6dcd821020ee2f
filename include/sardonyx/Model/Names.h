//===- Names.h - Names that a model has -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_NAMES_H
#define SARDONYX_MODEL_NAMES_H

#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/UnknownName.h"
#include <map>
#include <string>
#include <vector>

namespace sardonyx {

/// The names of values, in order.
SARDONYX_API std::vector<std::string>
namesOf(const std::vector<ValueInfo> &values);

/// The names of dimensions that values leave open, each once: those in the
/// model, and `X[0]` for the first one of X where its own name, if there is
/// one, does not stand for one size (isNameOfSize()).
SARDONYX_API std::vector<std::string>
openDimsOf(const std::vector<ValueInfo> &values);

/// Of `sizes` by such names the one of a dimension that is open, or null.
SARDONYX_API const int64_t *
sizeGivenFor(const ValueInfo &value, size_t index,
             const std::map<std::string, int64_t> &sizes);

/// What such a dimension is called: its name in the model, or `X[0]`.
SARDONYX_API std::string nameOfOpenDim(const ValueInfo &value, size_t index);

} // namespace sardonyx

#endif // SARDONYX_MODEL_NAMES_H
