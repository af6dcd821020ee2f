//===- SDXInterfaces.td - What dense operations have in common ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_INTERFACES
#define SARDONYX_SDX_INTERFACES

include "mlir/IR/OpBase.td"

def SDX_DenseOpInterface : OpInterface<"DenseOpInterface"> {
  let cppNamespace = "::sardonyx::sdx";
  let description = [{
    An operation on all elements of tensors that is no linalg operation and
    belongs in a kernel. The passes that cut a program into kernels know no
    other thing of it, so an operation of a target's own needs nothing but this
    interface to be grouped, outlined, verified, profiled and hoisted.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether a kernel is made around it: elementwise operations on its result
      are computed with it. Otherwise it is a kernel by itself.
    }], "bool", "isRoot", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether it adds up products, so that its result is best left alone until
      all that reads it is known.
    }], "bool", "isContraction", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether it only moves elements to a layout, as early as it can.
    }], "bool", "isPacking", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether runs read its result in the place of weights, so that it is
      computed once however much larger it is.
    }], "bool", "replacesWeights", (ins), "", "return false;">,
    InterfaceMethod<[{
      The word in the names of kernels around it, which profiles show.
    }], "::llvm::StringRef", "getKernelName", (ins), "",
    "return $_op->getName().stripDialect();">,
    InterfaceMethod<[{
      The operation and its parameters in a few words, as
      "conv 3x3 stride 2x2"; empty where the name says it all.
    }], "std::string", "describeForm", (ins), "", "return \"\";">,
    InterfaceMethod<[{
      Additions and multiplications: of a convolution those of the direct sum,
      whatever its algorithm.
    }], "::sardonyx::sdx::DenseWork", "countFlops", (ins), "",
    "return ::sardonyx::sdx::DenseWork();">
  ];
}

def SDX_TargetAttrInterface : AttrInterface<"TargetAttrInterface"> {
  let cppNamespace = "::sardonyx::sdx";
  let description = [{
    The machine that code is for: what `sdx.target` of a module is. The dialect
    that an attribute belongs to is that of its target, and has the interface
    that makes code (Targets/Target.h).
  }];
  let methods = [
    InterfaceMethod<[{
      How much a kernel may hold.
    }], "::sardonyx::sdx::FusionLimits", "getFusionLimits", (ins), "",
    "return ::sardonyx::sdx::FusionLimits();">,
    InterfaceMethod<[{
      Whether attention of such sizes is better one operation (sdx.attention)
      than two products and a softmax.
    }], "bool", "hasAttention",
    (ins "const ::sardonyx::sdx::AttentionSizes &":$sizes), "",
    "return false;">,
    InterfaceMethod<[{
      The memory space in which kernels have their operands; null: the host's.
    }], "::mlir::Attribute", "getMemorySpace", (ins), "", "return {};">
  ];
}

#endif // SARDONYX_SDX_INTERFACES
