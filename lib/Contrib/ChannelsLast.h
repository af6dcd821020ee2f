//===- ChannelsLast.h - Tensors [N, ..., C] -----------------------*- C++
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//-*-===//

#ifndef SARDONYX_LIB_CONTRIB_CHANNELSLAST_H
#define SARDONYX_LIB_CONTRIB_CHANNELSLAST_H

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// The rank of an input [N, ..., C], at least 3.
int64_t spatialRank(Body &b, llvm::StringRef input);
/// [N, ..., C] to [N, C, ...].
Name toChannelsFirst(Body &b, const Name &value, int64_t rank);
/// [N, C, ...] to [N, ..., C].
Name toChannelsLast(Body &b, const Name &value, int64_t rank);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_CHANNELSLAST_H
