//===- Lowering.h - An operator's lowering as a function --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operator is a function and a row:
//
//   static LogicalResult lowerFoo(Lowering<onnx::FooOp> &b) {
//     if (b.rank(b.in.getX()) != 2)
//       return b.refuse("the input must be a matrix");
//     return b.replace(b.map(b.in.getX(), ...));
//   }
//   ... addLowering<onnx::FooOp, lowerFoo>(patterns, converter);
//
// The context is a TensorBuilder at the op's place: it makes ops there, under
// the op's location.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_LOWERING_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_LOWERING_H

#include "Support/Common.h"
#include "Support/TensorBuilder.h"

namespace sardonyx {

/// What the lowering of one op works with. The type converter has converted all
/// operands and the caller only replaces or refuses.
template <typename OpT> class Lowering : public TensorBuilder {
public:
  /// The op, with its attributes and original operands and results.
  OpT op;
  /// The converted operands, by the names of the schema; null when left out.
  typename OpT::Adaptor in;
  /// For what moves regions; ops are made through the builder itself.
  mlir::ConversionPatternRewriter &rewriter;
  const mlir::TypeConverter &converter;

  Lowering(OpT op, typename OpT::Adaptor in,
           mlir::ConversionPatternRewriter &rewriter,
           const mlir::TypeConverter &converter)
      : TensorBuilder(op.getLoc(), rewriter), op(op), in(in),
        rewriter(rewriter), converter(converter) {}

  /// The converted type of a result; null when its rank is not known or nobody
  /// asks for it.
  mlir::RankedTensorType declared(unsigned result = 0) const {
    return getConvertedType(op->getResult(result));
  }
  static int64_t rank(Value tensor) { return rankedType(tensor).getRank(); }

  /// The handle of a string (Common.h), and the same as an i64.
  int64_t handleOf(llvm::StringRef text) {
    auto &types = static_cast<const ONNXTypeConverter &>(converter);
    return types.literals(getContext()).handleOf(text);
  }
  Value literal(llvm::StringRef text) {
    return integer(getI64Type(), handleOf(text));
  }

  /// Replaces the op; a value may be null where the result has no uses. Each is
  /// cast to its declared type.
  mlir::LogicalResult replace(mlir::ValueRange values) {
    return replaceOp(rewriter, converter, op, values);
  }
  /// Fails for a reason that the user is told: what this form of the op has
  /// that there is no lowering for.
  mlir::LogicalResult refuse(const llvm::Twine &why) {
    return sardonyx::refuse(op, why);
  }
  /// The same for attributes and element types, so that no sizes and values of
  /// inputs could help: the model is refused when it is loaded.
  mlir::LogicalResult refuseAlways(const llvm::Twine &why) {
    return sardonyx::refuse(op, why, /*isForGood=*/true);
  }
  /// Fails for a reason that no lowering could help: what no sound model has.
  mlir::LogicalResult reject(const llvm::Twine &why) {
    contradict(why);
    return mlir::failure();
  }
};

/// The benefits of patterns, which MLIR tries from the highest on.
constexpr unsigned short kGeneral = 1, kSpecialCase = 10;

template <typename OpT>
using LoweringFunction = mlir::LogicalResult (*)(Lowering<OpT> &);

/// The pattern around a lowering.
template <typename OpT, LoweringFunction<OpT> lower>
struct LoweringPattern : mlir::OpConversionPattern<OpT> {
  using mlir::OpConversionPattern<OpT>::OpConversionPattern;
  mlir::LogicalResult
  matchAndRewrite(OpT op, typename OpT::Adaptor in,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    Lowering<OpT> b(op, in, rewriter, *this->getTypeConverter());
    mlir::LogicalResult result = lower(b);
    if (failed(result))
      noteContradiction(op, b.contradiction());
    return result;
  }
};

/// `lower` takes every form of the op that there is a lowering for.
template <typename OpT, LoweringFunction<OpT> lower>
void addLowering(mlir::RewritePatternSet &patterns,
                 const mlir::TypeConverter &converter) {
  patterns.add<LoweringPattern<OpT, lower>>(converter, patterns.getContext(),
                                            kGeneral);
}

/// `lower` is asked before the op's lowering, which takes what this one
/// refuses. The user is told the reason of the last one only.
template <typename OpT, LoweringFunction<OpT> lower>
void addSpecialCase(mlir::RewritePatternSet &patterns,
                    const mlir::TypeConverter &converter) {
  patterns.add<LoweringPattern<OpT, lower>>(converter, patterns.getContext(),
                                            kSpecialCase);
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_LOWERING_H
