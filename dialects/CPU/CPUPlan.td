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

def CPU_ConvPacking
    : I32EnumAttr<"ConvPacking", "how inputs of a panel come to its tiles", [
    // As the pass chooses.
    I32EnumAttrCase<"Chosen", 0, "chosen">,
    // They are packed before the tiles.
    I32EnumAttrCase<"Before", 1, "before">,
    // The first tile reads them from where they lie, and packs them.
    I32EnumAttrCase<"InFirstTile", 2, "in_first_tile">,
    // All tiles read them from where they lie.
    I32EnumAttrCase<"Never", 3, "never">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_ConvSharing : I32EnumAttr<"ConvSharing", "what threads share first", [
    // As the pass chooses.
    I32EnumAttrCase<"Chosen", 0, "chosen">,
    // Panels of output positions, each with what it needs.
    I32EnumAttrCase<"Panels", 1, "panels">,
    // Filters: all inputs are transformed before, or by each thread.
    I32EnumAttrCase<"Filters", 2, "filters">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_ConvPlanAttr : AttrDef<CPU_Dialect, "ConvPlan"> {
  let mnemonic = "conv_plan";
  let summary = "How the kernel of a convolution computes it";
  let description = [{
    The form of the loops and their numbers. `cpu-select-plans` sets it as
    `cpu.plan` of a kernel; one that is there stays, and is an error where the
    kernel cannot be computed so. Numbers that are not given, or 0, are chosen.

    - `polyphase`, of `im2col` and `bf16x3`: inputs of a convolution of stride 2
      are put into planes of even and odd rows and columns first, so that
      neighbouring outputs read neighbouring inputs.
    - `tile_rows`: filters of a register tile (`im2col`, `row_buffer`, `bf16x3`,
      `winograd`).
    - `columns`: vectors of positions beside each other in a tile (`im2col`,
      `row_buffer`), vectors of transformed tiles in a panel (`winograd`), blocks
      of channels at a time (`output_channels`).
    - `chunk_tiles`, of `im2col`: tiles of filters that one thread computes of a
      panel, at most.
    - `packing`, of `im2col`: how the inputs of a panel come to the tiles.
    - `group_rows`, of `winograd`: filters that go through a tap before the next.
    - `threads`, of `winograd` and `bf16x3`: what threads share first.
    - `panels`, `range_steps`, of `bf16x3`: panels of 32 positions in a chunk, and
      steps of 32 channels that are split into bf16 at a time.

    ```mlir
    func.func private @k0_conv(...) attributes {sdx.kernel, cpu.plan =
        #cpu.conv_plan<im2col, tile_rows = 8, columns = 3, chunk_tiles = 8,
                       packing = in_first_tile>}
    func.func private @k1_conv(...) attributes {
        sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, polyphase = true>}
    ```
  }];
  let parameters = (ins EnumParameter<CPU_ConvForm>:$form,
    DefaultValuedParameter<"bool", "false">:$polyphase,
    DefaultValuedParameter<"int64_t", "0">:$tile_rows,
    DefaultValuedParameter<"int64_t", "0">:$columns,
    DefaultValuedParameter<"int64_t", "0">:$chunk_tiles,
    DefaultValuedParameter<"::sardonyx::cpu::ConvPacking",
        "::sardonyx::cpu::ConvPacking::Chosen">:$packing,
    DefaultValuedParameter<"int64_t", "0">:$group_rows,
    DefaultValuedParameter<"::sardonyx::cpu::ConvSharing",
        "::sardonyx::cpu::ConvSharing::Chosen">:$threads,
    DefaultValuedParameter<"int64_t", "0">:$panels,
    DefaultValuedParameter<"int64_t", "0">:$range_steps);
  let builders = [AttrBuilder<(ins "::sardonyx::cpu::ConvForm":$form,
                                   CArg<"bool", "false">:$polyphase), [{
    return $_get($_ctxt, form, polyphase, 0, 0, 0, ConvPacking::Chosen, 0,
                 ConvSharing::Chosen, 0, 0);
  }]>];
  let assemblyFormat = [{
    `<` $form (`,` struct($polyphase, $tile_rows, $columns, $chunk_tiles,
                          $packing, $group_rows, $threads, $panels,
                          $range_steps)^)? `>`
  }];
}

def CPU_NarrowConvPlanAttr : AttrDef<CPU_Dialect, "NarrowConvPlan"> {
  let mnemonic = "narrow_conv_plan";
  let summary = "How the kernel of a narrow convolution computes it";
  let description = [{
    The loops of a `cpu.narrow_conv`, as a product of rows, which are windows of the
    input at output positions, by packed filters.

    - `micro`: the micro-kernel (MicroKernels/MicroKernels.def), such as
      `"amx_int8"`, `"vnni"`, `"maddwd"`, `"dot_bf16"`.
    - `tile_rows`, `tile_columns`: accumulators of a register tile in each of
      `panels` panels of filters.
    - `chunk_rows`: positions whose windows are copied to scratch memory (im2col)
      before filters pass. With `in_place`, for kernels of one tap and no strides
      and pads, they are read from where they lie. So tile registers can read
      those of larger kernels without strides: from the lines of the input that
      whole output lines, of `chunk_rows` positions, see, copied with their pads.
    - `threads` share `panels` of positions, or `filters`: the windows of all
      positions are copied first.

    ```mlir
    func.func private @k0_conv(...) attributes {sdx.kernel, cpu.plan =
        #cpu.narrow_conv_plan<"vnni", tile_rows = 6, tile_columns = 32, panels = 2,
                            chunk_rows = 192, threads = panels>}
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$micro, "int64_t":$tile_rows, "int64_t":$tile_columns,
    DefaultValuedParameter<"int64_t", "1">:$panels, "int64_t":$chunk_rows,
    DefaultValuedParameter<"bool", "false">:$in_place,
    DefaultValuedParameter<"::sardonyx::cpu::ConvSharing",
        "::sardonyx::cpu::ConvSharing::Panels">:$threads);
  let assemblyFormat = [{
    `<` $micro `,` struct($tile_rows, $tile_columns, $panels, $chunk_rows,
                          $in_place, $threads) `>`
  }];
}

def CPU_ChannelWindowPlanAttr : AttrDef<CPU_Dialect, "ChannelWindowPlan"> {
  let mnemonic = "channel_window_plan";
  let summary = "How windows of single channels are computed";
  let description = [{
    The loops of a `cpu.depthwise_narrow_conv` or a
    `cpu.channels_last_max_pool`: `lanes` neighbouring channels are a vector,
    and `positions` neighbouring outputs of a line are computed at a time.

    ```mlir
    func.func private @k0_conv(...) attributes {sdx.kernel,
        cpu.plan = #cpu.channel_window_plan<lanes = 16, positions = 7>}
    ```
  }];
  let parameters = (ins "int64_t":$lanes, "int64_t":$positions);
  let assemblyFormat = "`<` struct(params) `>`";
}

def CPU_MatmulOrder
    : I32EnumAttr<"MatmulOrder", "the order of the chunks of a product", [
    // All rows meet some panels before they meet the next.
    I32EnumAttrCase<"PanelsOuter", 0, "panels_outer">,
    // The rows of a chunk meet all panels before other rows do.
    I32EnumAttrCase<"RowsOuter", 1, "rows_outer">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_MatmulPrefetch
    : I32EnumAttr<"MatmulPrefetch", "what a product fetches of its next panel", [
    I32EnumAttrCase<"None", 0, "none">,
    // The next panel, into whichever cache lines reach first.
    I32EnumAttrCase<"Near", 1, "near">,
    // The next panel, into the L2 cache: more lines than the L1 cache holds.
    I32EnumAttrCase<"L2", 2, "l2">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_MatmulCaseAttr : AttrDef<CPU_Dialect, "MatmulCase"> {
  let mnemonic = "matmul_case";
  let summary = "How a matrix product of some rows is computed";
  let description = [{
    The loops of a product, a case of `#cpu.matmul_plan`.

    - `micro`: the micro-kernel (MicroKernels/MicroKernels.def), such as `"fma"`,
      `"vnni"`, `"amx_int8"`.
    - `rows`: how many rows the loops expect; any number is right.
    - `max_rows`: the case is for so many rows at most; 0: for any number. With 1
      it is for one row.
    - `tile_rows`, `tile_columns`: accumulators of a register tile in each of
      `panels` panels.
    - `chunk_tiles`: tiles one below the other that one thread computes at a time.
    - `order` of the chunks, and `prefetch` of the next panel.
    - `part_rows`, `part_depth`, `part_panels`: with `"amx_bf16x6"`, rows, values
      of k and panels that are split into bf16 at a time.
    - `strassen`: values of k whose halves are added to each other by Strassen's
      algorithm; 0: products are computed directly.

    ```mlir
    #cpu.matmul_case<"fma", rows = 128, tile_rows = 6, tile_columns = 32,
                     panels = 2, chunk_tiles = 4, prefetch = l2>
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$micro, "int64_t":$rows,
    DefaultValuedParameter<"int64_t", "0">:$max_rows,
    "int64_t":$tile_rows, "int64_t":$tile_columns,
    DefaultValuedParameter<"int64_t", "1">:$panels,
    DefaultValuedParameter<"int64_t", "1">:$chunk_tiles,
    DefaultValuedParameter<"::sardonyx::cpu::MatmulOrder",
        "::sardonyx::cpu::MatmulOrder::PanelsOuter">:$order,
    DefaultValuedParameter<"::sardonyx::cpu::MatmulPrefetch",
        "::sardonyx::cpu::MatmulPrefetch::None">:$prefetch,
    DefaultValuedParameter<"int64_t", "0">:$part_rows,
    DefaultValuedParameter<"int64_t", "0">:$part_depth,
    DefaultValuedParameter<"int64_t", "0">:$part_panels,
    DefaultValuedParameter<"int64_t", "0">:$strassen);
  let assemblyFormat = [{
    `<` $micro `,` struct($rows, $max_rows, $tile_rows, $tile_columns, $panels,
                          $chunk_tiles, $order, $prefetch, $part_rows,
                          $part_depth, $part_panels, $strassen) `>`
  }];
}

def CPU_MatmulPlanAttr : AttrDef<CPU_Dialect, "MatmulPlan"> {
  let mnemonic = "matmul_plan";
  let summary = "How the kernel of a matrix product computes it";
  let description = [{
    The cases of a product by its number of rows: the first whose `max_rows` are
    not exceeded, and the last for any number. One case where rows are known.
    `direct` is what the last case becomes where, in a run, rows are too few, or
    threads too many, for its algorithm. `cpu-select-plans` sets it as `cpu.plan`
    of a kernel; one that is there stays, and is an error where the kernel cannot
    be computed so.

    ```mlir
    func.func private @k0_matmul(...) attributes {sdx.kernel,
        cpu.plan = #cpu.matmul_plan<[
          <"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32,
           panels = 4, prefetch = near>,
          <"fma", rows = 128, tile_rows = 6, tile_columns = 32, panels = 2,
           chunk_tiles = 4, prefetch = l2>]>}
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::sardonyx::cpu::MatmulCaseAttr">:$cases,
    OptionalParameter<"::sardonyx::cpu::MatmulCaseAttr">:$direct);
  let assemblyFormat = [{
    `<` `[` $cases `]` (`,` `direct` `=` $direct^)? `>`
  }];
  let genVerifyDecl = 1;
}

def CPU_AttentionPlanAttr : AttrDef<CPU_Dialect, "AttentionPlan"> {
  let mnemonic = "attention_plan";
  let summary = "How the kernel of attention computes it";
  let description = [{
    Tasks of `queries` queries (those of all heads that share keys count) pass
    the keys in blocks of `keys`, which are packed for all of them; scores are
    computed, and used, of `rows` queries at a time. `cpu-select-plans` sets it as
    `cpu.plan` of a kernel; one that is there stays, and is an error where the
    kernel cannot be computed so.

    ```mlir
    func.func private @k0_attention(...) attributes {sdx.kernel,
        cpu.plan = #cpu.attention_plan<queries = 256, rows = 64, keys = 128>}
    ```
  }];
  let parameters = (ins "int64_t":$queries, "int64_t":$rows, "int64_t":$keys);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // SARDONYX_CPU_PLAN
