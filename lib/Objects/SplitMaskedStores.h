//===- SplitMaskedStores.h - Constant masks without masks -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_SPLITMASKEDSTORES_H
#define SARDONYX_LIB_OBJECTS_SPLITMASKEDSTORES_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// For processors without registers for masks. Makes masked stores whose mask
/// is a constant into stores of the lanes that it has: of registers of
/// `registerBits`, their halves, quarters and so on. Other masks are looked at
/// when code runs, where masked stores are so slow that this pays (`isSlow`): a
/// register with all its lanes is stored as any other, one with none is not.
void splitMaskedStores(llvm::Function &function, unsigned registerBits,
                       bool isSlow);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_SPLITMASKEDSTORES_H
