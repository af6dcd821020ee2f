//===- Tokens.h - The numbers that stand for words --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_TOKENS_H
#define SARDONYX_LIB_CONTRIB_TOKENS_H

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// Which of the words would, behind the ids [rows, any], repeat an n-gram of
/// `length` that their row has already: booleans of the shape of `scores`,
/// [rows, words].
Name findRepeats(Body &b, const Name &ids, const Name &scores, int64_t length);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_TOKENS_H
