//===- ChannelsLast.h - Tensors [N, ..., C] -----------------------*- C++
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
