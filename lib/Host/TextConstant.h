//===- TextConstant.h - Texts for the runtime -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_HOST_TEXTCONSTANT_H
#define SARDONYX_LIB_CODEGEN_HOST_TEXTCONSTANT_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace sardonyx {

/// A constant at the top of `module` that holds `text` as C has it, with a zero
/// at its end.
inline mlir::LLVM::GlobalOp createText(mlir::ModuleOp module,
                                       mlir::Location loc,
                                       const llvm::Twine &name,
                                       llvm::StringRef text) {
  auto b = mlir::OpBuilder::atBlockBegin(module.getBody());
  std::string bytes = text.str() + '\0';
  return mlir::LLVM::GlobalOp::create(
      b, loc, mlir::LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
      /*isConstant=*/true, mlir::LLVM::Linkage::Internal, name.str(),
      b.getStringAttr(bytes));
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CODEGEN_HOST_TEXTCONSTANT_H
