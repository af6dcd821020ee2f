//===- Tokens.cpp - Strings and the numbers of words ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime computes them: it reads texts, and finds out how many there are.
//
//===----------------------------------------------------------------------===//

#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

LogicalResult lowerMurmurHash3(Lowering<onnx::MSMurmurHash3Op> &b) {
  Value x = b.in.getX();
  Type onnxType =
      cast<RankedTensorType>(b.op.getX().getType()).getElementType();
  StringRef function =
      isStringType(onnxType) ? "sdx_rt_hash_strings" : "sdx_rt_hash_numbers";
  SmallVector<Value> operands = {x};
  if (!isStringType(onnxType))
    operands.push_back(
        asNumber(b, elementTypeOf(x).getIntOrFloatBitWidth() / 32));
  operands.push_back(asNumber(b, b.op.getSeed()));
  return b.replace(
      callRuntime(b, function, operands, b.dims(x), b.getI32Type()));
}

LogicalResult lowerTokenizer(Lowering<onnx::MSTokenizerOp> &b) {
  Value x = b.in.getX();
  int64_t rank = b.rank(x);
  if (rank != 1 && rank != 2)
    return b.refuse("the input has rank " + Twine(rank) +
                    ", and must be a list or rows of strings");
  if (b.op.getMincharnum() < 1)
    return b.refuseAlways("mincharnum is " + Twine(b.op.getMincharnum()) +
                          ", and must be positive");
  ArrayAttr separators = b.op.getSeparatorsAttr();
  StringRef expression = b.op.getTokenexp().value_or("");
  if (separators ? separators.empty() : expression.empty())
    return b.refuseAlways("it has neither separators nor a tokenexp");
  SmallVector<StringRef> patterns;
  if (separators)
    for (auto separator : separators.getAsRange<StringAttr>())
      patterns.push_back(separator.getValue());
  else
    patterns.push_back(expression);
  bool isByCharacter =
      patterns.size() == 1 && patterns[0] == (separators ? "" : ".");
  if (isByCharacter && b.op.getMincharnum() > 1)
    return b.refuseAlways("mincharnum is " + Twine(b.op.getMincharnum()) +
                          ", but each token is one character");
  // Without strings there is no axis of tokens.
  if (getStaticSize(b.dim(x, rank - 1)) == 0)
    return b.replace(x);
  SmallVector<Value> handles;
  for (StringRef pattern : patterns)
    handles.push_back(b.literal(pattern));
  Type i64 = b.getI64Type();
  auto listType = RankedTensorType::get({int64_t(handles.size())}, i64);
  Value list = tensor::FromElementsOp::create(b, listType, handles);
  int64_t kind = isByCharacter ? 0 : separators ? 1 : 2;
  SmallVector<Value> operands = {x, list, asNumber(b, kind),
                                 asNumber(b, b.op.getMincharnum()),
                                 asNumber(b, b.op.getMark() != 0)};
  Value width = callRuntime(b, "sdx_rt_tokenize_width", operands, {}, i64);
  operands.push_back(b.literal(b.op.getPadValue()));
  Sizes sizes = b.dims(x);
  sizes.push_back(b.convert(b.extract(width, {}), b.getIndexType()));
  return b.replace(callRuntime(b, "sdx_rt_tokenize", operands, sizes, i64));
}

LogicalResult
lowerBifurcationDetector(Lowering<onnx::MSBifurcationDetectorOp> &b) {
  Value source = b.in.getSrcTokens(), current = b.in.getCurTokens();
  Value match = b.in.getPrevSuffixMatchIdx(), predicted = b.in.getPredTokens();
  int64_t least = b.op.getMinNgramSize(), most = b.op.getMaxNgramSize();
  if (least < 1 || most < least)
    return b.refuseAlways("min_ngram_size and max_ngram_size are " +
                          Twine(least) + " and " + Twine(most));
  for (Value list : {source, current, predicted})
    if (list && b.rank(list) != 1)
      return b.refuse("its tokens must be lists");
  Type i64 = b.getI64Type();
  OpFoldResult length = b.dim(current, 0);
  if (!b.sameSize(b.product(b.dims(match)), b.size(1),
                  "prev_suffix_match_idx must be one number"))
    return b.refuse("prev_suffix_match_idx must be one number");
  Value start = b.reshape(match, {b.size(1)});
  Value tokens = current;
  if (predicted) {
    Value agreed = callRuntime(b, "sdx_rt_agreed_tokens",
                               {source, start, predicted}, {}, i64);
    OpFoldResult more = b.convert(b.extract(agreed, {}), b.getIndexType());
    OpFoldResult all = b.plus(length, more);
    Value joined = b.empty({all}, i64);
    joined = b.insert(current, joined, {b.size(0)}, {length});
    tokens = b.insert(b.slice(predicted, {b.size(0)}, {more}), joined, {length},
                      {more});
  }
  Value found =
      callRuntime(b, "sdx_rt_find_suffix",
                  {source, tokens, asNumber(b, least), asNumber(b, most)},
                  {b.size(1)}, i64);
  return b.replace({tokens, b.reshape(found, b.dims(match))});
}

} // namespace

void populateTokenPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns) {
  addLowering<onnx::MSMurmurHash3Op, lowerMurmurHash3>(patterns, converter);
  addLowering<onnx::MSTokenizerOp, lowerTokenizer>(patterns, converter);
  addLowering<onnx::MSBifurcationDetectorOp, lowerBifurcationDetector>(
      patterns, converter);
}

} // namespace sardonyx
