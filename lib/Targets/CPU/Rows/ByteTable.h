//===- ByteTable.h - Bytes picked from a table in registers -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_BYTETABLE_H
#define SARDONYX_LIB_TARGETS_CPU_BYTETABLE_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace sardonyx::cpu {

/// Whether `op` takes the element of a table of 256 bytes whose place is a
/// byte.
bool isByteTable(mlir::tensor::ExtractOp op);

/// A table of 256 bytes as the processor's instructions that shuffle bytes want
/// it: they pick from 16 to 128 bytes of registers.
class ByteTable {
public:
  /// Loads the table from `memref` at the builder's place.
  ByteTable(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);

  /// The byte of the table for each of `bytes`, a vector.
  mlir::Value lookUp(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::Value bytes) const;

private:
  /// What there is to pick bytes by.
  enum Form {
    /// Loads, one byte at a time.
    Loads,
    /// 16 bytes of a register (x86: pshufb): the table is in 16 parts, each but
    /// the first of a half as its difference, by exclusive or, to the part
    /// before.
    Parts16,
    /// 64 bytes of four registers (aarch64: tbl).
    Parts64,
    /// 128 bytes of two registers (AVX512_VBMI: vpermi2b).
    Parts128
  };

  mlir::Value lookUpRegister(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value bytes) const;
  mlir::Value lookUpParts16(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value bytes) const;
  mlir::Value loadEach(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value bytes) const;

  mlir::Value memref;
  Form form = Loads;
  /// Bytes of a register.
  int64_t width = 16;
  llvm::SmallVector<mlir::Value> parts;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_BYTETABLE_H
