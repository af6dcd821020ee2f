//===- ONNXToLinalg.h - Lower the onnx dialect to linalg --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CONVERSION_ONNXTOLINALG_H
#define SARDONYX_CONVERSION_ONNXTOLINALG_H

#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace sardonyx {

/// All patterns of the conversion.
void populateONNXToLinalgPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);

/// Lets the onnx dialect tell which ops have a lowering here.
void registerONNXToLinalgInterface(mlir::DialectRegistry &registry);

/// Whether values of this type are lowered, if need be once their rank is
/// known.
bool hasLinalgType(mlir::Type type);

/// Whether an operator has complex numbers among its operands or results and
/// does more with them than move them, for which there is no lowering.
bool computesOnComplex(mlir::Operation *op);

/// Whether operations of a name ("onnx.Softmax") have a lowering; others should
/// be expanded to their function bodies first. `ofSpecialCases`: also where it
/// takes some of them only, say those of a known rank.
bool hasLinalgLowering(llvm::StringRef operationName,
                       bool ofSpecialCases = false);

} // namespace sardonyx

#endif // SARDONYX_CONVERSION_ONNXTOLINALG_H
