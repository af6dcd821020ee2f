//===- SplitLongBlocks.h - Bound what is selected at once -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_SPLITLONGBLOCKS_H
#define SARDONYX_LIB_OBJECTS_SPLITLONGBLOCKS_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// Moves runs of instructions of blocks that are very long to functions of
/// their own. The instruction selector looks at a block as one graph, and part
/// of its time grows with the square of it; a host program is a block of as
/// many calls, or of kernels made part of it, as the model has operators. Of
/// no use for kernels, whose values are in registers.
void splitLongBlocks(llvm::Function &function);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_SPLITLONGBLOCKS_H
