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
  let summary = "Dense operations, kernels and their calls";
  let description = [{
    The level between linalg and machine code, for any target. Its dense
    operations are those that linalg has not: of operands in the order that the
    model has them, of any element types. Its host operations call kernels and
    ask the runtime for memory.

    Discardable attributes of this dialect:
    - on a function: `sdx.kernel` (unit): a kernel, called by `sdx.call`;
    - on a kernel: `sdx.plan_reason`: why it has none of the forms that its target
      computes fast, as a noun;
    - on an argument of a host function, exactly one of `sdx.input = i`,
      `sdx.constant = <elements>`, `sdx.persistent = i` (result `i` of `@init`);
    - on a bufferized host function: `sdx.results`: for each result it had a
      dictionary of its attributes and its type, `sdx.type`;
    - on a module: `sdx.target`: the machine that its code is for, an attribute
      of the target's dialect, as `#cpu.target<...>`; on a kernel that is for
      another one, too;
    - on a module: `sdx.images = [{target, bytes}, ...]`: code for its kernels, of
      which there are declarations, in a form that their target knows;
    - on a module: `sdx.strings`: the strings that handles 1, 2, ... stand for
      before a run makes others; 0 is the empty one;
    - on a module that is to be profiled: `sdx.profile`: for each site of an
      `sdx.record` a dictionary of its kernel, its form and its nodes;
    - on a module whose values are observed: `sdx.observations`: for each site of
      `sdx.observe` a dictionary of the tensor's name and kinds;
    - on a constant or an argument: `sdx.source = {path, offset, length}`: the
      bytes of its value in a file.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttrs();
  }];
}

#endif // SARDONYX_SDX_BASE
