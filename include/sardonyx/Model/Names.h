//===- Names.h - Names that a model does not have ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_NAMES_H
#define SARDONYX_MODEL_NAMES_H

#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include <string>
#include <vector>

namespace sardonyx {

/// The one of `known` that a person who wrote `name` may have meant: with few
/// letters changed, left out, added or swapped, or longer or shorter by a part.
/// Empty where none is near.
SARDONYX_API std::string nearestName(const std::string &name,
                                     const std::vector<std::string> &known);

/// "the model has no input 'ids'; it has input_ids, mask (did you mean
/// input_ids?)" for the kind "input".
SARDONYX_API std::string unknownName(const std::string &kind,
                                     const std::string &name,
                                     const std::vector<std::string> &known);

SARDONYX_API std::vector<std::string>
namesOf(const std::vector<ValueInfo> &values);

/// The names of dimensions that values leave open, each once.
SARDONYX_API std::vector<std::string>
openDimsOf(const std::vector<ValueInfo> &values);

/// "a, b, c and 3 more": as many items as a line holds.
SARDONYX_API std::string listOf(const std::vector<std::string> &items);

} // namespace sardonyx

#endif // SARDONYX_MODEL_NAMES_H
