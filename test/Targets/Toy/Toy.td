//===- Toy.td - A machine that runs C ----------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TOY_DIALECT
#define TOY_DIALECT

include "dialects/SDX/SDXInterfaces.td"

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"

def Toy_Dialect : Dialect {
  let name = "toy";
  let cppNamespace = "::toy";
  let useDefaultAttributePrinterParser = 1;
}

def Toy_MachineAttr : AttrDef<Toy_Dialect, "Machine", [
    DeclareAttrInterfaceMethods<SDX_TargetAttrInterface, ["getFusionLimits"]>]> {
  let mnemonic = "machine";
  let summary = "What a C compiler makes code for";
}

#endif // TOY_DIALECT
