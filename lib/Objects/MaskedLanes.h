//===- MaskedLanes.h - Some lanes of masked accesses ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_MASKEDLANES_H
#define SARDONYX_LIB_OBJECTS_MASKEDLANES_H

#include "llvm/IR/IRBuilder.h"

namespace sardonyx {

/// Lanes [first, first + count) of `vector`; one as an element.
llvm::Value *sliceLanes(llvm::IRBuilder<> &b, llvm::Value *vector,
                        unsigned first, unsigned count);

/// Where lane `lane` of elements of type `element` lies that begin at `first`,
/// which is aligned to `align`, and its own alignment.
std::pair<llvm::Value *, llvm::Align>
placeOfLane(llvm::IRBuilder<> &b, llvm::Value *first, llvm::Align align,
            llvm::Type *element, unsigned lane);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_MASKEDLANES_H
