//===- Quantized.cpp - Operators on quantized tensors ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise ones and pools are computed in float and rounded once; products
// are sums of integers.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Quantized.h"

#include "lib/Contrib/ChannelsLast.h"

#include "llvm/Support/MathExtras.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// Scales and zero points of a whole tensor come as scalars or lists of one.
static Name asScalar(Body &b, const Name &value) {
  return value.empty() ? value : b.reshape(value, {});
}

Name dequantize(Body &b, const Name &value, const Name &scale,
                const Name &zero) {
  return b.op("DequantizeLinear",
              {value, asScalar(b, scale), asScalar(b, zero)});
}

/// To the type of the zero point, or to `type` where there is none.
static Name quantize(Body &b, const Name &value, const Name &scale,
                     const Name &zero, int type) {
  if (!zero.empty())
    return b.op("QuantizeLinear",
                {value, asScalar(b, scale), asScalar(b, zero)});
  return b.op("QuantizeLinear", {value, asScalar(b, scale)},
              {{"output_dtype", type}});
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static void buildBinary(Body &b, const char *op) {
  Name left = dequantize(b, b.in("A"), b.in("A_scale"), b.in("A_zero_point"));
  Name right = dequantize(b, b.in("B"), b.in("B_scale"), b.in("B_zero_point"));
  b.give("C", quantize(b, b.op(op, {left, right}), b.in("C_scale"),
                       b.in("C_zero_point"), b.elementType("A")));
}

void buildQLinearAdd(Body &b) { buildBinary(b, "Add"); }
void buildQLinearMul(Body &b) { buildBinary(b, "Mul"); }

static void buildUnary(Body &b, const char *op, Attrs attrs) {
  Name x = dequantize(b, b.in("X"), b.in("X_scale"), b.in("X_zero_point"));
  b.give("Y", quantize(b, b.op(op, {x}, attrs), b.in("Y_scale"),
                       b.in("Y_zero_point"), b.elementType("X")));
}

void buildQLinearSigmoid(Body &b) { buildUnary(b, "Sigmoid", {}); }

void buildQLinearLeakyRelu(Body &b) {
  Attrs attrs;
  b.pass(attrs, {"alpha"});
  buildUnary(b, "LeakyRelu", attrs);
}

void buildQLinearConcat(Body &b) {
  Names parts;
  for (unsigned i = 2; i + 2 < b.numInputs(); i += 3)
    parts.push_back(
        dequantize(b, b.inputAt(i), b.inputAt(i + 1), b.inputAt(i + 2)));
  if (parts.empty() || b.numInputs() % 3 != 2)
    b.refuse("its inputs are no triples of tensor, scale and zero point");
  b.give("Y", quantize(b, b.concat(parts, b.getInt("axis")), b.in("Y_scale"),
                       b.in("Y_zero_point"), b.elementType("Y_zero_point")));
}

void buildQLinearWhere(Body &b) {
  Name x = dequantize(b, b.in("X"), b.in("x_scale"), b.in("x_zero_point"));
  Name y = dequantize(b, b.in("Y"), b.in("y_scale"), b.in("y_zero_point"));
  b.give("Z",
         quantize(b, b.op("Where", {b.in("condition"), x, y}), b.in("z_scale"),
                  b.in("z_zero_point"), b.elementType("z_zero_point")));
}

//===----------------------------------------------------------------------===//
// Means, pools and softmax
//===----------------------------------------------------------------------===//

void buildQLinearReduceMean(Body &b) {
  Name x =
      dequantize(b, b.in("data"), b.in("data_scale"), b.in("data_zero_point"));
  Attrs attrs;
  b.pass(attrs, {"keepdims"});
  Name mean = b.op("ReduceMean", {x, b.ints(b.getInts("axes"))}, attrs);
  b.give("reduced",
         quantize(b, mean, b.in("reduced_scale"), b.in("reduced_zero_point"),
                  b.elementType("data")));
}

static void buildPool(Body &b, const char *op, const Attrs &attrs) {
  Name x = dequantize(b, b.in("X"), b.in("x_scale"), b.in("x_zero_point"));
  bool isLast = b.getInt("channels_last") != 0;
  int64_t rank = isLast ? spatialRank(b, "X") : 0;
  Name pooled = b.op(op, {isLast ? toChannelsFirst(b, x, rank) : x}, attrs);
  if (isLast)
    pooled = toChannelsLast(b, pooled, rank);
  b.give("Y", quantize(b, pooled, b.in("y_scale"), b.in("y_zero_point"),
                       b.elementType("X")));
}

void buildQLinearAveragePool(Body &b) {
  Attrs attrs;
  b.pass(attrs, {"auto_pad", "kernel_shape", "strides", "pads", "ceil_mode",
                 "count_include_pad"});
  buildPool(b, "AveragePool", attrs);
}

void buildQLinearGlobalAveragePool(Body &b) {
  buildPool(b, "GlobalAveragePool", {});
}

void buildQLinearSoftmax(Body &b) {
  Name x = dequantize(b, b.in("X"), b.in("X_scale"), b.in("x_zero_point"));
  int64_t axis = b.getInt("axis");
  Name result;
  if (b.getInt("opset") < 13) {
    // All axes from this one on are one.
    Name rows = b.op("Flatten", {x}, {{"axis", axis}});
    result = b.op("Reshape", {b.op("Softmax", {rows}, {{"axis", -1}}),
                              b.op("Shape", {x})});
  } else {
    result = b.op("Softmax", {x}, {{"axis", axis}});
  }
  b.give("Y", quantize(b, result, b.in("y_scale"), b.in("y_zero_point"),
                       b.elementType("X")));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// One for the whole right-hand side, or one for each of its columns.
static Name perColumn(Body &b, llvm::StringRef input) {
  bool isList = b.has(input) && b.rank(input) == 1;
  return isList && b.size(input, 0) == 1 ? asScalar(b, b.in(input))
                                         : b.in(input);
}

void buildMatMulIntegerToFloat(Body &b) {
  Name product = b.op("MatMulInteger",
                      {b.in("A"), b.in("B"), asScalar(b, b.in("a_zero_point")),
                       perColumn(b, "b_zero_point")});
  Name scale = b.mul(asScalar(b, b.in("a_scale")), perColumn(b, "b_scale"));
  Name scaled = b.mul(b.cast(product, b.elementType("a_scale")), scale);
  b.give("Y", b.addIfThere(scaled, b.in("bias")));
}

void buildDynamicQuantizeMatMul(Body &b) {
  Names a = b.op(3, "DynamicQuantizeLinear", {b.in("A")});
  Name product = b.op("MatMulInteger",
                      {a[0], b.in("B"), a[2], perColumn(b, "b_zero_point")});
  Name scale = b.mul(a[1], perColumn(b, "b_scale"));
  Name scaled = b.mul(b.cast(product, TensorProto::FLOAT), scale);
  b.give("Y", b.addIfThere(scaled, b.in("bias")));
}

void buildQGemm(Body &b) {
  auto matrix = [&](llvm::StringRef input, llvm::StringRef trans) {
    return b.getInt(trans) ? b.transpose(b.in(input), {1, 0}) : b.in(input);
  };
  Name sum =
      b.op("MatMulInteger",
           {matrix("A", "transA"), matrix("B", "transB"),
            asScalar(b, b.in("a_zero_point")), perColumn(b, "b_zero_point")});
  sum = b.addIfThere(sum, b.in("C"));
  Name scale = b.mul(asScalar(b, b.in("a_scale")), perColumn(b, "b_scale"));
  if (float alpha = b.getFloat("alpha"); alpha != 1)
    scale = b.mul(scale, b.scalar(alpha, TensorProto::FLOAT));
  Name result = b.mul(b.cast(sum, TensorProto::FLOAT), scale);
  if (b.has("y_scale"))
    result = quantize(b, result, b.in("y_scale"), b.in("y_zero_point"),
                      b.elementType("A"));
  b.give("Y", result);
}

/// No product of two int16 leaves int32; sums wrap around.
void buildMatMulInteger16(Body &b) {
  for (const char *input : {"A", "B"})
    if (b.elementType(input) != TensorProto::INT16)
      b.refuse("input '" + llvm::Twine(input) +
               "' is of uint16, which is not supported");
  b.give("Y", b.op("MatMul", {b.cast(b.in("A"), TensorProto::INT32),
                              b.cast(b.in("B"), TensorProto::INT32)}));
}

//===----------------------------------------------------------------------===//
// Weights in blocks
//===----------------------------------------------------------------------===//

Name unpack(Body &b, const Name &bytes, int64_t bits, int64_t rank) {
  if (bits != 2 && bits != 4 && bits != 8)
    b.refuse("numbers of " + llvm::Twine(bits) + " bits are not supported");
  if (bits == 8)
    return bytes;
  Ints shifts;
  for (int64_t shift = 0; shift < 8; shift += bits)
    shifts.push_back(shift);
  Name each = b.op(
      "BitShift",
      {b.unsqueeze(bytes, {-1}), b.cast(b.ints(shifts), TensorProto::UINT8)},
      {{"direction", "RIGHT"}});
  Name mask = b.scalar((1 << bits) - 1, TensorProto::UINT8);
  // Not -1, which of an empty tensor may be anything.
  Name count = b.mul(b.sizeOf(bytes, rank - 1), b.ints({8 / bits}));
  Name shape = b.concat({b.ints(Ints(rank - 1, 0)), count}, 0);
  return b.op("Reshape", {b.op("BitwiseAnd", {each, mask}), shape});
}

void buildMatMulNBits(Body &b) {
  b.refuseInput("g_idx");
  b.refuseUnless("weight_prepacked", 0);
  int64_t k = b.getInt("K"), n = b.getInt("N"), bits = b.getInt("bits"),
          block = b.getInt("block_size");
  constexpr int64_t limit = int64_t(1) << 31;
  if (k < 1 || n < 1 || block < 1 || k > limit || n > limit || block > limit ||
      bits < 1 || bits > 8 || block * bits % 8 != 0)
    b.refuse("its sizes cannot be");
  int64_t blocks = (k + block - 1) / block;
  int type = b.elementType("A");
  Name bytes = b.reshape(b.in("B"), {n, blocks, block * bits / 8});
  Name numbers = b.cast(unpack(b, bytes, bits, 3), type);
  Name zero;
  if (!b.has("zero_points")) {
    zero = b.scalar(1 << (bits - 1), type);
  } else {
    zero = b.in("zero_points");
    if (b.elementType("zero_points") == TensorProto::UINT8) {
      Name rows = b.reshape(zero, {n, (blocks * bits + 7) / 8});
      zero = b.cast(b.slice(unpack(b, rows, bits, 2), 0, blocks, 1), type);
    }
    zero = b.reshape(zero, {n, blocks, 1});
  }
  Name scale = b.reshape(b.in("scales"), {n, blocks, 1});
  Name weights =
      b.reshape(b.mul(b.sub(numbers, zero), scale), {n, blocks * block});
  if (blocks * block != k)
    weights = b.slice(weights, 0, k, 1);
  Name product = b.op("MatMul", {b.in("A"), b.transpose(weights, {1, 0})});
  b.give("Y", b.addIfThere(product, b.in("bias")));
}

/// The numbers that 4 bits stand for, as bitsandbytes defines them.
static constexpr float kFP4[] = {0,
                                 5.208333333e-03f,
                                 0.66666667f,
                                 1,
                                 0.33333333f,
                                 0.5f,
                                 0.16666667f,
                                 0.25f,
                                 -0.0f,
                                 -5.208333333e-03f,
                                 -0.66666667f,
                                 -1,
                                 -0.33333333f,
                                 -0.5f,
                                 -0.16666667f,
                                 -0.25f};
static constexpr float kNF4[] = {-1,
                                 -0.6961928009986877f,
                                 -0.5250730514526367f,
                                 -0.39491748809814453f,
                                 -0.28444138169288635f,
                                 -0.18477343022823334f,
                                 -0.09105003625154495f,
                                 0,
                                 0.07958029955625534f,
                                 0.16093020141124725f,
                                 0.24611230194568634f,
                                 0.33791524171829224f,
                                 0.44070982933044434f,
                                 0.5626170039176941f,
                                 0.7229568362236023f,
                                 1};

void buildMatMulBnb4(Body &b) {
  int64_t k = b.getInt("K"), n = b.getInt("N"), block = b.getInt("block_size");
  constexpr int64_t limit = int64_t(1) << 31;
  if (k < 1 || n < 1 || k > limit || n > limit || block < 16 || block > limit ||
      !llvm::isPowerOf2_64(block))
    b.refuse("its sizes cannot be");
  int64_t kind = b.getInt("quant_type");
  if (kind != 0 && kind != 1)
    b.refuse("quant_type is " + llvm::Twine(kind) +
             ", which is neither FP4 (0) nor NF4 (1)");
  int type = b.elementType("A");
  // All rows are one list, the higher half of a byte first.
  Name bytes = b.unsqueeze(b.reshape(b.in("B"), {-1}), {1});
  Name shifts = b.cast(b.ints({4, 0}), TensorProto::UINT8);
  Name halves =
      b.op("BitwiseAnd",
           {b.op("BitShift", {bytes, shifts}, {{"direction", "RIGHT"}}),
            b.scalar(15, TensorProto::UINT8)});
  int64_t count = k * n, blocks = (count + block - 1) / block;
  Name codes = b.slice(b.reshape(halves, {-1}), 0, count, 0);
  Name table = b.cast(b.numbers(kind == 0 ? kFP4 : kNF4), type);
  Name values = b.op("Gather", {table, b.cast(codes, TensorProto::INT32)});
  Name scales = b.op("Expand", {b.reshape(b.in("absmax"), {blocks, 1}),
                                b.ints({blocks, block})});
  scales = b.slice(b.reshape(scales, {blocks * block}), 0, count, 0);
  Name weights = b.reshape(b.mul(values, scales), {n, k});
  if (b.getInt("transB"))
    weights = b.transpose(weights, {1, 0});
  b.give("Y", b.op("MatMul", {b.in("A"), weights}));
}

} // namespace sardonyx::contrib
