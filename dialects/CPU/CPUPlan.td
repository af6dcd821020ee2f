//===- CPUPlan.td - How kernels are computed ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_PLAN
#define SARDONYX_CPU_PLAN

include "dialects/CPU/CPUBase.td"

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def CPU_ConvForm : I32EnumAttr<"ConvForm", "a form of a convolution", [
    // Inputs of a panel of positions are gathered to [K][width], then multiplied
    // by all filters.
    I32EnumAttrCase<"Im2col", 0, "im2col">,
    // Rows of the padded input lie in a buffer that all taps read.
    I32EnumAttrCase<"RowBuffer", 1, "row_buffer">,
    // Output channels lie in the lanes of vectors, positions in tiles' rows.
    I32EnumAttrCase<"OutputChannels", 2, "output_channels">,
    // One channel and one or two filters a group, read in place.
    I32EnumAttrCase<"Depthwise", 3, "depthwise">,
    // Winograd's algorithm, on filters that were transformed for it.
    I32EnumAttrCase<"Winograd", 4, "winograd">,
    // Products of bf16 in tile registers, on filters that are sums of two.
    I32EnumAttrCase<"Bf16x3", 5, "bf16x3">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_ConvPlanAttr : AttrDef<CPU_Dialect, "ConvPlan"> {
  let mnemonic = "conv_plan";
  let summary = "How the kernel of a convolution computes it";
  let description = [{
    The form of the loops. With `polyphase` the inputs of a convolution of stride
    2 are put into planes of even and odd rows and columns first, so that
    neighbouring outputs read neighbouring inputs. `cpu-select-plans` sets it as
    `cpu.plan` of a kernel; one that is there stays, and is an error where the
    kernel cannot be computed so.

    ```mlir
    func.func private @k0_conv(...)
        attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col>}
    func.func private @k1_conv(...) attributes {
        sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, polyphase = true>}
    ```
  }];
  let parameters = (ins EnumParameter<CPU_ConvForm>:$form,
                        DefaultValuedParameter<"bool", "false">:$polyphase);
  let assemblyFormat = [{
    `<` $form (`,` `polyphase` `=` $polyphase^)? `>`
  }];
}

#endif // SARDONYX_CPU_PLAN
