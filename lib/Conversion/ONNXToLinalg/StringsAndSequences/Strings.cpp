//===- Strings.cpp - Operators on strings ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What needs the text of strings is a call of the runtime; what moves or
// compares them works on their handles, by the lowerings for numbers.
//
//===----------------------------------------------------------------------===//

#include "StringsAndSequences/Strings.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "Support/RuntimeCalls.h"
#include "Support/SmallFloats.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// Cast
//===----------------------------------------------------------------------===//

/// `input` with its elements cast, without strings.
static Value castNumbers(TensorBuilder &b, Value input, Type from, Type to) {
  if (from == to)
    return input;
  auto body = [&](OpBuilder &builder, Location loc, ValueRange args) {
    return castScalar(builder, loc, args[0], from, to);
  };
  return createMapped(b, b.getLoc(), TypedTensor{input, from},
                      b.identityMap(rankedType(input).getRank()), b.dims(input),
                      to, body);
}

static Value numbersToStrings(TensorBuilder &b, Value input, Type from) {
  StringRef function;
  Type wide = from;
  if (isBoolType(from)) {
    function = "sdx_rt_string_of_bool";
  } else if (from.isF64()) {
    function = "sdx_rt_string_of_f64";
  } else if (isa<FloatType>(from)) {
    wide = b.getF32Type();
    function = from.isF32()    ? "sdx_rt_string_of_f32"
               : from.isBF16() ? "sdx_rt_string_of_bf16"
                               : "sdx_rt_string_of_f16";
  } else {
    bool isUnsigned = isUnsignedType(from);
    wide = isUnsigned ? b.getIntegerType(64, /*isSigned=*/false)
                      : Type(b.getI64Type());
    function = isUnsigned ? "sdx_rt_string_of_u64" : "sdx_rt_string_of_i64";
  }
  input = castNumbers(b, input, from, wide);
  return callRuntime(b, function, input, b.dims(input), b.getI64Type());
}

static Value stringsToNumbers(TensorBuilder &b, Value input, Type to) {
  StringRef function;
  Type wide;
  if (to.isF64()) {
    function = "sdx_rt_string_parse_f64";
    wide = to;
  } else if (isa<FloatType>(to)) {
    function = "sdx_rt_string_parse_f32";
    wide = b.getF32Type();
  } else if (isUnsignedType(to)) {
    function = "sdx_rt_string_parse_u64";
    wide = b.getIntegerType(64, /*isSigned=*/false);
  } else {
    function = "sdx_rt_string_parse_i64";
    wide = b.getI64Type();
  }
  Value numbers =
      callRuntime(b, function, input, b.dims(input), convertElementType(wide));
  return castNumbers(b, numbers, wide, to);
}

Value castStrings(TensorBuilder &b, Value input, Type from, Type to) {
  Type number = isStringType(to) ? from : to;
  // A boolean has no one text that is read.
  bool isSmall = number.getIntOrFloatBitWidth() < 8 || isSmallFloat(number);
  if (isSmall && !isBoolType(from))
    return {};
  return isStringType(to) ? numbersToStrings(b, input, from)
                          : stringsToNumbers(b, input, to);
}

//===----------------------------------------------------------------------===//
// The operators
//===----------------------------------------------------------------------===//

namespace {

LogicalResult lowerConcat(Lowering<onnx::StringConcatOp> &b) {
  Value x = b.in.getX(), y = b.in.getY();
  FailureOr<Sizes> sizes = broadcastSizes(b, b.getLoc(), {x, y}, b.declared());
  if (failed(sizes))
    return b.refuse("its shapes don't agree");
  return b.replace(callRuntime(b, "sdx_rt_string_concat",
                               {b.broadcast(x, *sizes), b.broadcast(y, *sizes)},
                               *sizes, b.getI64Type()));
}

LogicalResult lowerSplit(Lowering<onnx::StringSplitOp> &b) {
  Value x = b.in.getX();
  // Handle 0, the empty string, stands for white space.
  Value separator = b.literal(b.op.getDelimiter().value_or(""));
  std::optional<int64_t> most = b.op.getMaxsplit();
  SmallVector<Value> operands = {x, separator, asNumber(b, most.value_or(-1))};
  Sizes sizes = b.dims(x);
  Type i64 = b.getI64Type();
  SmallVector<Value> counts =
      callRuntime(b, "sdx_rt_string_split_counts", operands,
                  {b.empty(sizes, i64), b.empty({}, i64)});
  Value width = b.convert(b.extract(counts[1], {}), b.getIndexType());
  sizes.push_back(width);
  Value parts =
      callRuntime(b, "sdx_rt_string_split_parts", operands, sizes, i64);
  return b.replace({parts, counts[0]});
}

LogicalResult lowerRegexFullMatch(Lowering<onnx::RegexFullMatchOp> &b) {
  Value x = b.in.getX();
  if (!b.op.getPattern())
    return b.refuseAlways("it has no pattern");
  return b.replace(callRuntime(b, "sdx_rt_string_matches",
                               {x, b.literal(*b.op.getPattern())}, b.dims(x),
                               b.getI8Type()));
}

/// The handles that stay, in order, and one empty string where none does.
Value compress(TensorBuilder &b, Value words, Value stays) {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), length = b.index(b.dim(words, 0));
  Value count = runOnce(
      b, b.empty({b.size(1)}, i64),
      [&](TensorBuilder &s, ValueRange made) -> Values {
        auto add = [&](TensorBuilder &t, Value i, ValueRange sum) -> Values {
          return {t.add(sum[0], t.convert(t.extract(stays, i), i64))};
        };
        Value sum = loop(s, zero, length, s.integer(i64, 0), add).front();
        return {put(s, sum, made.front(), zero)};
      })[0];
  count = b.convert(b.extract(count, zero), b.getIndexType());
  OpFoldResult size = b.atLeast(count, 1);
  auto write = [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
    Value here = s.convert(s.extract(stays, i), s.getIndexType());
    // What does not stay is overwritten by the next, if there is one.
    Value last = s.sub(s.index(size), s.index(1));
    Value at = s.minimum(state[0], last);
    Value isIn = s.compare(arith::CmpIPredicate::ne, here, zero);
    Value next = s.select(isIn, s.extract(words, i), s.extract(state[1], at));
    return {s.add(state[0], here), put(s, next, state[1], at)};
  };
  Values filled =
      forEachRow(b, b.zeros({b.size(1), size}, i64),
                 [&](TensorBuilder &s, Value, ValueRange rows) -> Values {
                   return {loop(s, zero, length, {zero, rows[0]}, write)[1]};
                 });
  return onlyRow(b, filled.front());
}

LogicalResult lowerNormalizer(Lowering<onnx::StringNormalizerOp> &b) {
  Value x = b.in.getX();
  int64_t rank = b.rank(x);
  if (rank != 1 && rank != 2)
    return b.refuse("the input must be a list or a row of strings");
  if (rank == 2) {
    checkSameSize(b, b.getLoc(), b.dim(x, 0), b.size(1),
                  "the input must have one row");
    x = b.subTensor(x, 0, b.size(0));
  }
  StringRef action = b.op.getCaseChangeAction();
  Type i64 = b.getI64Type();
  Value words = x;
  if (action != "NONE")
    words = callRuntime(b, "sdx_rt_string_to_case",
                        {x, asNumber(b, action == "UPPER")}, b.dims(x), i64);
  SmallVector<Value> handles;
  if (ArrayAttr stopWords = b.op.getStopwordsAttr())
    for (auto word : stopWords.getAsRange<StringAttr>())
      handles.push_back(b.literal(word.getValue()));
  // Of no strings at all one empty string is made, too.
  std::optional<int64_t> length = getStaticSize(b.dim(words, 0));
  if (!handles.empty() || length.value_or(0) == 0) {
    auto type = RankedTensorType::get({int64_t(handles.size())}, i64);
    Value list = tensor::FromElementsOp::create(b, type, handles);
    Value caseMatters = asNumber(b, b.op.getIsCaseSensitive() != 0);
    Value stays = callRuntime(b, "sdx_rt_string_is_no_stop_word",
                              {x, list, caseMatters}, b.dims(x), i64);
    words = compress(b, words, stays);
  }
  if (rank == 2)
    words = b.reshape(words, {b.size(1), b.dim(words, 0)});
  return b.replace(words);
}

} // namespace

void populateStringPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::StringConcatOp, lowerConcat>(patterns, converter);
  addLowering<onnx::StringSplitOp, lowerSplit>(patterns, converter);
  addLowering<onnx::RegexFullMatchOp, lowerRegexFullMatch>(patterns, converter);
  addLowering<onnx::StringNormalizerOp, lowerNormalizer>(patterns, converter);
}

} // namespace sardonyx
