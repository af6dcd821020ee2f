//===- Dot.cpp - Sums of products of narrow numbers on vectors
//----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernels/MicroKernel.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// `value` (a vector of i32) as lanes of `bits`.
static Value asLanes(ImplicitLocOpBuilder &b, Value value, int64_t bits) {
  int64_t count = cast<VectorType>(value.getType()).getNumElements();
  return vector::BitCastOp::create(
      b, VectorType::get({count * 32 / bits}, b.getIntegerType(bits)), value);
}

static Value emitIntrinsic(ImplicitLocOpBuilder &b, StringRef name, Type type,
                           ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), operands)
      .getResult(0);
}

/// One register: four products and sums in an instruction.
static Value emitQuads(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                       Value accumulator) {
  int64_t bits = cast<VectorType>(lhs.getType()).getNumElements() * 32;
  return emitIntrinsic(b, "llvm.x86.avx512.vpdpbusd." + std::to_string(bits),
                       accumulator.getType(),
                       {accumulator, asLanes(b, lhs, 8), asLanes(b, rhs, 8)});
}

/// One register: two products, and their sum.
static Value emitPairs(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                       Value accumulator) {
  int64_t bits = cast<VectorType>(lhs.getType()).getNumElements() * 32;
  StringRef name = bits == 512   ? "llvm.x86.avx512.pmaddw.d.512"
                   : bits == 256 ? "llvm.x86.avx2.pmadd.wd"
                                 : "llvm.x86.sse2.pmadd.wd";
  Value sum = emitIntrinsic(b, name, accumulator.getType(),
                            {asLanes(b, lhs, 16), asLanes(b, rhs, 16)});
  return arith::AddIOp::create(b, accumulator, sum);
}

/// Products of 32 bits, of bytes or of integers of 16 bits.
template <int64_t bits>
static Value emitGeneric(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value accumulator) {
  Type type = lhs.getType();
  auto splat = [&](int64_t value) { return emitSplat(b, type, value); };
  for (int64_t at = 0; at < 32; at += bits) {
    Value left = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, lhs, splat(at)), splat((1 << bits) - 1));
    Value right = arith::ShRSIOp::create(
        b, arith::ShLIOp::create(b, rhs, splat(32 - bits - at)),
        splat(32 - bits));
    accumulator = arith::AddIOp::create(b, accumulator,
                                        arith::MulIOp::create(b, left, right));
  }
  return accumulator;
}

/// A bf16 is the upper half of an f32.
static Value emitWidePairs(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                           Value accumulator) {
  Type type = accumulator.getType();
  Value half = emitSplat(b, lhs.getType(), 16),
        upper = emitSplat(b, lhs.getType(), 0xffff0000);
  auto low = [&](Value pairs) -> Value {
    return arith::BitcastOp::create(b, type,
                                    arith::ShLIOp::create(b, pairs, half));
  };
  auto high = [&](Value pairs) -> Value {
    return arith::BitcastOp::create(b, type,
                                    arith::AndIOp::create(b, pairs, upper));
  };
  accumulator = vector::FMAOp::create(b, low(lhs), low(rhs), accumulator);
  return vector::FMAOp::create(b, high(lhs), high(rhs), accumulator);
}

static Value emitBf16Pairs(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                           Value accumulator) {
  auto type = cast<VectorType>(lhs.getType());
  auto pairs = VectorType::get({type.getNumElements() * 2}, b.getBF16Type());
  auto asPairs = [&](Value value) -> Value {
    return vector::BitCastOp::create(b, pairs, value);
  };
  int64_t bits = type.getNumElements() * 32;
  return emitIntrinsic(
      b, "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(bits),
      accumulator.getType(), {accumulator, asPairs(lhs), asPairs(rhs)});
}

namespace {

/// Products of lanes of 32 bits by an instruction on registers, or by code for
/// any vectors.
class Dot : public MicroKernel {
public:
  using Emit = Value (*)(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value accumulator);

  Value emitStep(ImplicitLocOpBuilder &b, TargetAttr target, Value lhs,
                 Value rhs, Value accumulator) const override {
    Value sum;
    if (onRegisters)
      sum =
          emitByRegisters(b, b.getLoc(), target.getVectorBits(),
                          {lhs, rhs, accumulator}, [&](ValueRange parts) {
                            return onRegisters(b, parts[0], parts[1], parts[2]);
                          });
    return sum ? sum : onVectors(b, lhs, rhs, accumulator);
  }

protected:
  /// `onRegisters` is null where there is no instruction.
  Dot(StringRef name, PackedElement element, Emit onRegisters, Emit onVectors)
      : MicroKernel(name, element), onRegisters(onRegisters),
        onVectors(onVectors) {}

private:
  const Emit onRegisters, onVectors;
};

/// accumulator[i] + sum_j lhs[G * i + j] * rhs[G * i + j] for j in 0..G-1,
/// exact modulo 2^32; a lane of `lhs` is G = 4 unsigned bytes, one of `rhs`
/// four signed ones, or both are G = 2 such bytes widened to 16 bits.
class Int8 : public Dot {
public:
  Int8(StringRef name, PackedElement element, Int8Product product,
       Emit onRegisters)
      : Dot(name, element, onRegisters,
            element == PackedElement::I8 ? emitGeneric<8> : emitGeneric<16>),
        product(product) {}

  bool isSupported(TargetAttr target) const override {
    return target.getInt8() >= product;
  }
  bool isShort() const override { return product != Int8Product::Generic; }

private:
  const Int8Product product;
};

/// accumulator[i] + sum_j lhs[2 * i + j] * rhs[2 * i + j] for j in 0..1 onto
/// f32; lanes of `lhs` and `rhs` are two bf16. The instruction takes subnormal
/// numbers as zero.
class Bf16 : public Dot {
public:
  Bf16(StringRef name, Bf16Product product, Emit onRegisters)
      : Dot(name, PackedElement::BF16, onRegisters, emitWidePairs),
        product(product) {}

  bool isSupported(TargetAttr target) const override {
    return target.getBf16() >= product;
  }
  bool isShort() const override { return product >= Bf16Product::Dot; }

private:
  const Bf16Product product;
};

} // namespace

namespace sardonyx::cpu {

const MicroKernel &getVnni() {
  static const Int8 kernel("vnni", PackedElement::I8, Int8Product::Vnni,
                           emitQuads);
  return kernel;
}

const MicroKernel &getWidenInt8() {
  static const Int8 kernel("widen_int8", PackedElement::I8,
                           Int8Product::Generic, nullptr);
  return kernel;
}

const MicroKernel &getMaddwd() {
  static const Int8 kernel("maddwd", PackedElement::I16, Int8Product::Maddwd,
                           emitPairs);
  return kernel;
}

const MicroKernel &getWidenInt16() {
  static const Int8 kernel("widen_int16", PackedElement::I16,
                           Int8Product::Generic, nullptr);
  return kernel;
}

const MicroKernel &getDotBf16() {
  static const Bf16 kernel("dot_bf16", Bf16Product::Dot, emitBf16Pairs);
  return kernel;
}

const MicroKernel &getWidenBf16() {
  static const Bf16 kernel("widen_bf16", Bf16Product::Generic, nullptr);
  return kernel;
}

} // namespace sardonyx::cpu
