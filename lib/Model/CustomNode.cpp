//===- CustomNode.cpp - Nodes of operators that callers bring -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/CustomNode.h"

using namespace sardonyx;

const CustomAttribute *CustomNode::find(std::string_view wanted,
                                        CustomAttribute::Kind kind) const {
  for (const CustomAttribute &attribute : attributes)
    if (attribute.name == wanted)
      return attribute.kind == kind ? &attribute : nullptr;
  return nullptr;
}
