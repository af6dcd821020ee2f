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
#include <string>
#include <vector>

namespace sardonyx {

/// The names of values, in order.
SARDONYX_API std::vector<std::string>
namesOf(const std::vector<ValueInfo> &values);

/// The names of dimensions that values leave open, each once.
SARDONYX_API std::vector<std::string>
openDimsOf(const std::vector<ValueInfo> &values);

} // namespace sardonyx

#endif // SARDONYX_MODEL_NAMES_H
