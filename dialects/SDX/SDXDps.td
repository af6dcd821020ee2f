//===- SDXDps.td - Operations in destination style ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_DPS
#define SARDONYX_SDX_DPS

include "dialects/SDX/SDXInterfaces.td"

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// An operation in destination style on one tensor or buffer: result i (on
/// tensors) is tied to the i-th of the outs.
class SDX_DpsOpOf<Dialect dialect, string mnemonic, list<Trait> traits = []>
    : Op<dialect, mnemonic, !listconcat([
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>], traits)> {
  let hasVerifier = 1;
}

def SDX_F32Shaped : TypeConstraint<
    Or<[RankedTensorOf<[F32]>.predicate, MemRefOf<[F32]>.predicate]>,
    "tensor or memref of f32", "::mlir::ShapedType">;

/// The same where an operand may be left out.
def SDX_OptionalF32Shaped
    : Type<SDX_F32Shaped.predicate, SDX_F32Shaped.summary, "::mlir::ShapedType">;

def SDX_NumberShaped : TypeConstraint<
    Or<[RankedTensorOf<[AnyFloat, AnySignlessInteger]>.predicate,
        MemRefOf<[AnyFloat, AnySignlessInteger]>.predicate]>,
    "tensor or memref of floats or integers", "::mlir::ShapedType">;

/// The same where an operand may be left out.
def SDX_OptionalNumberShaped
    : Type<SDX_NumberShaped.predicate, SDX_NumberShaped.summary, "::mlir::ShapedType">;

#endif // SARDONYX_SDX_DPS
