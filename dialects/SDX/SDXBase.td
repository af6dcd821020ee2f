//===- SDXBase.td - The sdx dialect ------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_BASE
#define SARDONYX_SDX_BASE

include "mlir/IR/OpBase.td"

def SDX_Dialect : Dialect {
  let name = "sdx";
  let cppNamespace = "::sardonyx::sdx";
  let summary = "Dense operations on packed operands, kernels and their calls";
  let description = [{
    The level between linalg and machine code. Its dense operations name the
    layouts that the register-tiled micro-kernels read; its host operations
    call kernels and ask the runtime for memory.

    Discardable attributes of this dialect:
    - on a function: `sdx.kernel` (unit): a kernel, called by `sdx.call`;
    - on an argument of a host function, exactly one of `sdx.input = i`,
      `sdx.constant = <elements>`, `sdx.persistent = i` (result `i` of `@init`);
    - on a bufferized host function: `sdx.results`: for each result it had a
      dictionary of its attributes and its type, `sdx.type`;
    - on a module: `sdx.target = #sdx.target<...>`: the machine that its code
      is for; on a kernel that is for another one, too;
    - on a module: `sdx.strings`: the strings that handles 1, 2, ... stand for
      before a run makes others; 0 is the empty one;
    - on a module that is to be profiled: `sdx.profile`: for each site of an
      `sdx.record` a dictionary of its kernel, its form and its nodes;
    - on a constant or an argument: `sdx.source = {path, offset, length}`: the
      bytes of its value in a file.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerTargetAttr();
  }];
}

#endif // SARDONYX_SDX_BASE
