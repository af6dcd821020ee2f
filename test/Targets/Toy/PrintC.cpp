//===- PrintC.cpp - Loops on memrefs as C ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sardonyx;

StringRef toy::getPrelude() {
  return R"(#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A piece of memory: sizes and strides count elements. */
typedef struct {
  char *memory, *data;
  int64_t offset, size[8], stride[8];
} view;

static void copy(view from, view to, int rank, int64_t bytes) {
  int64_t at[8] = {0}, i;
  for (i = 0; i < rank; ++i)
    if (from.size[i] == 0)
      return;
  for (;;) {
    int64_t a = from.offset, b = to.offset;
    for (i = 0; i < rank; ++i)
      a += at[i] * from.stride[i], b += at[i] * to.stride[i];
    memcpy(to.data + b * bytes, from.data + a * bytes, bytes);
    for (i = rank - 1; i >= 0 && ++at[i] == from.size[i]; --i)
      at[i] = 0;
    if (i < 0)
      return;
  }
}

/* As IEEE 754 has it: NaN if one of them is. */
#define MAXIMUM(T) \
  static T maximum_##T(T a, T b) { return a != a || a > b ? a : b; } \
  static T minimum_##T(T a, T b) { return a != a || a < b ? a : b; }
MAXIMUM(float)
MAXIMUM(double)

)";
}

namespace {

/// Writes one function.
class Printer {
public:
  explicit Printer(raw_ostream &os) : os(os) {}

  LogicalResult print(func::FuncOp kernel);

private:
  LogicalResult print(Block &block);
  LogicalResult print(Operation *op);
  LogicalResult printMemRefOp(Operation *op);
  LogicalResult printLoop(Operation *op);
  LogicalResult printScalarOp(Operation *op);
  /// Values that a region yields go to the results of the operation around it.
  void yield(Operation *terminator, ValueRange to);

  raw_ostream &line() { return os.indent(2 * depth); }
  std::string name(Value value) {
    auto [it, isNew] = names.try_emplace(value, names.size());
    return "v" + std::to_string(it->second);
  }
  /// Empty where C has no such type.
  static std::string typeName(Type type, bool isUnsigned = false);
  std::string element(Value memref, ValueRange indices);
  std::string constant(TypedAttr value);
  void declare(Value value) {
    line() << typeName(value.getType()) << " " << name(value) << ";\n";
  }
  LogicalResult assign(Operation *op, const Twine &value) {
    line() << typeName(op->getResult(0).getType()) << " "
           << name(op->getResult(0)) << " = " << value << ";\n";
    return success();
  }

  raw_ostream &os;
  unsigned depth = 1;
  llvm::DenseMap<Value, unsigned> names;
};

} // namespace

std::string Printer::typeName(Type type, bool isUnsigned) {
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (isa<MemRefType>(type))
    return "view";
  if (type.isIndex())
    return isUnsigned ? "uint64_t" : "int64_t";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    if (width == 1)
      return "uint8_t";
    if (width == 8 || width == 16 || width == 32 || width == 64)
      return (isUnsigned ? "uint" : "int") + std::to_string(width) + "_t";
  }
  return "";
}

std::string Printer::element(Value memref, ValueRange indices) {
  std::string text =
      "((" + typeName(cast<MemRefType>(memref.getType()).getElementType()) +
      " *)" + name(memref) + ".data)[" + name(memref) + ".offset";
  for (auto [i, index] : llvm::enumerate(indices))
    text += " + " + name(index) + " * " + name(memref) + ".stride[" +
            std::to_string(i) + "]";
  return text + "]";
}

std::string Printer::constant(TypedAttr value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    if (integer.getType().isInteger(1))
      return integer.getValue().isZero() ? "0" : "1";
    int64_t number = integer.getType().isIndex()
                         ? integer.getInt()
                         : integer.getValue().getSExtValue();
    // There is no literal for the lowest number.
    return number == INT64_MIN ? "INT64_MIN"
                               : "INT64_C(" + std::to_string(number) + ")";
  }
  auto number = dyn_cast<FloatAttr>(value);
  if (!number)
    return "";
  APFloat real = number.getValue();
  if (real.isNaN())
    return "NAN";
  if (real.isInfinity())
    return real.isNegative() ? "-INFINITY" : "INFINITY";
  bool isExact = false;
  real.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isExact);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%a", real.convertToDouble());
  return text;
}

void Printer::yield(Operation *terminator, ValueRange to) {
  // All at once: one may be what another was.
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    line() << typeName(value.getType()) << " y" << i << " = " << name(value)
           << ";\n";
  for (auto [i, value] : llvm::enumerate(to))
    line() << name(value) << " = y" << i << ";\n";
}

LogicalResult Printer::printLoop(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // Carried values live in the results' variables.
    for (auto [result, init, arg] : llvm::zip_equal(
             loop.getResults(), loop.getInitArgs(), loop.getRegionIterArgs())) {
      declare(result);
      line() << name(result) << " = " << name(init) << ";\n";
    }
    std::string i = name(loop.getInductionVar());
    line() << "for (int64_t " << i << " = " << name(loop.getLowerBound())
           << "; " << i << " < " << name(loop.getUpperBound()) << "; " << i
           << " += " << name(loop.getStep()) << ") {\n";
    ++depth;
    for (auto [result, arg] :
         llvm::zip_equal(loop.getResults(), loop.getRegionIterArgs()))
      line() << typeName(arg.getType()) << " " << name(arg) << " = "
             << name(result) << ";\n";
    if (failed(print(*loop.getBody())))
      return failure();
    yield(loop.getBody()->getTerminator(), loop.getResults());
    --depth;
    line() << "}\n";
    return success();
  }
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return op->emitError("the toy has no C for '") << op->getName() << "'";
  for (Value result : branch.getResults())
    declare(result);
  line() << "if (" << name(branch.getCondition()) << ") {\n";
  for (Region *region : branch.getRegions()) {
    if (region->empty())
      continue;
    if (region->getRegionNumber() == 1)
      line() << "} else {\n";
    ++depth;
    if (failed(print(region->front())))
      return failure();
    yield(region->front().getTerminator(), branch.getResults());
    --depth;
  }
  line() << "}\n";
  return success();
}

LogicalResult Printer::printMemRefOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::LoadOp load) {
        return assign(op, element(load.getMemRef(), load.getIndices()));
      })
      .Case([&](memref::StoreOp store) {
        line() << element(store.getMemRef(), store.getIndices()) << " = "
               << name(store.getValueToStore()) << ";\n";
        return success();
      })
      .Case([&](memref::DimOp dim) {
        return assign(op, name(dim.getSource()) + ".size[" +
                              name(dim.getIndex()) + "]");
      })
      .Case([&](memref::CastOp cast) {
        return assign(op, name(cast.getSource()));
      })
      .Case([&](memref::CopyOp copy) {
        auto type = cast<MemRefType>(copy.getSource().getType());
        line() << "copy(" << name(copy.getSource()) << ", "
               << name(copy.getTarget()) << ", " << type.getRank()
               << ", sizeof(" << typeName(type.getElementType()) << "));\n";
        return success();
      })
      .Case([&](memref::AllocOp alloc) {
        MemRefType type = alloc.getType();
        std::string view = name(alloc.getResult());
        declare(alloc.getResult());
        line() << view << ".offset = 0;\n";
        line() << "{ int64_t n = 1;\n";
        auto dynamic = alloc.getDynamicSizes().begin();
        SmallVector<std::string> sizes;
        for (int64_t size : type.getShape())
          sizes.push_back(ShapedType::isDynamic(size) ? name(*dynamic++)
                                                      : std::to_string(size));
        for (int64_t i = type.getRank() - 1; i >= 0; --i)
          line() << view << ".stride[" << i << "] = n; " << view << ".size["
                 << i << "] = " << sizes[i] << "; n *= " << sizes[i] << ";\n";
        line() << view << ".memory = " << view
               << ".data = malloc((n ? n : 1) * "
               << "sizeof(" << typeName(type.getElementType()) << ")); }\n";
        return success();
      })
      .Case([&](memref::ExtractStridedMetadataOp meta) {
        std::string view = name(meta.getSource());
        line() << "view " << name(meta.getBaseBuffer()) << " = " << view
               << ";\n";
        line() << "int64_t " << name(meta.getOffset()) << " = " << view
               << ".offset;\n";
        for (auto [i, size] : llvm::enumerate(meta.getSizes()))
          line() << "int64_t " << name(size) << " = " << view << ".size[" << i
                 << "];\n";
        for (auto [i, stride] : llvm::enumerate(meta.getStrides()))
          line() << "int64_t " << name(stride) << " = " << view << ".stride["
                 << i << "];\n";
        return success();
      })
      .Case([&](memref::ReinterpretCastOp cast) {
        std::string view = name(cast.getResult());
        line() << "view " << view << " = " << name(cast.getSource()) << ";\n";
        auto text = [&](OpFoldResult value) {
          if (auto known = dyn_cast<Attribute>(value))
            return std::to_string(::cast<IntegerAttr>(known).getInt());
          return name(::cast<Value>(value));
        };
        line() << view << ".offset = " << text(cast.getMixedOffsets().front())
               << ";\n";
        for (auto [i, size] : llvm::enumerate(cast.getMixedSizes()))
          line() << view << ".size[" << i << "] = " << text(size) << ";\n";
        for (auto [i, stride] : llvm::enumerate(cast.getMixedStrides()))
          line() << view << ".stride[" << i << "] = " << text(stride) << ";\n";
        return success();
      })
      .Default([](Operation *other) {
        return other->emitError("the toy has no C for '")
               << other->getName() << "'";
      });
}

/// The C operator or function for an operation of two operands of the same type
/// as its result, with `%` in the place of a function's type.
static StringRef findBinary(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Cases({"arith.addf", "arith.addi"}, "+")
      .Cases({"arith.subf", "arith.subi"}, "-")
      .Cases({"arith.mulf", "arith.muli"}, "*")
      .Cases({"arith.divf", "arith.divsi"}, "/")
      .Case("arith.remsi", "%")
      .Case("arith.andi", "&")
      .Case("arith.ori", "|")
      .Case("arith.xori", "^")
      .Case("arith.shli", "<<")
      .Case("arith.shrsi", ">>")
      .Case("arith.divui", "u/")
      .Case("arith.remui", "u%")
      .Case("arith.shrui", "u>>")
      .Case("arith.minsi", "?<")
      .Case("arith.maxsi", "?>")
      .Case("arith.minui", "u?<")
      .Case("arith.maxui", "u?>")
      .Case("arith.maximumf", "maximum")
      .Case("arith.minimumf", "minimum")
      .Case("arith.maxnumf", "fmax")
      .Case("arith.minnumf", "fmin")
      .Case("math.powf", "pow")
      .Default("");
}

static StringRef findUnary(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("arith.negf", "-")
      .Case("math.absf", "fabs")
      .Case("math.exp", "exp")
      .Case("math.log", "log")
      .Case("math.sqrt", "sqrt")
      .Case("math.rsqrt", "1 / sqrt")
      .Case("math.tanh", "tanh")
      .Case("math.erf", "erf")
      .Case("math.sin", "sin")
      .Case("math.cos", "cos")
      .Case("math.floor", "floor")
      .Case("math.ceil", "ceil")
      .Case("math.trunc", "trunc")
      .Case("math.roundeven", "rint")
      .Cases({"arith.index_cast", "arith.extf", "arith.truncf", "arith.extsi",
              "arith.trunci", "arith.sitofp", "arith.fptosi"},
             "(signed)")
      .Cases({"arith.index_castui", "arith.extui", "arith.uitofp"},
             "(unsigned)")
      .Default("");
}

/// The operator of a comparison; whether operands are unsigned, and whether it
/// also holds where one is NaN.
static std::tuple<StringRef, bool, bool> findComparison(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    using P = arith::CmpIPredicate;
    switch (compare.getPredicate()) {
    case P::eq:
      return {"==", false, false};
    case P::ne:
      return {"!=", false, false};
    case P::slt:
      return {"<", false, false};
    case P::sle:
      return {"<=", false, false};
    case P::sgt:
      return {">", false, false};
    case P::sge:
      return {">=", false, false};
    case P::ult:
      return {"<", true, false};
    case P::ule:
      return {"<=", true, false};
    case P::ugt:
      return {">", true, false};
    case P::uge:
      return {">=", true, false};
    }
  }
  using P = arith::CmpFPredicate;
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case P::OEQ:
    return {"==", false, false};
  case P::OGT:
    return {">", false, false};
  case P::OGE:
    return {">=", false, false};
  case P::OLT:
    return {"<", false, false};
  case P::OLE:
    return {"<=", false, false};
  case P::UNE:
    return {"!=", false, false};
  case P::UGT:
    return {">", false, true};
  case P::UGE:
    return {">=", false, true};
  case P::ULT:
    return {"<", false, true};
  case P::ULE:
    return {"<=", false, true};
  default:
    return {"", false, false};
  }
}

LogicalResult Printer::printScalarOp(Operation *op) {
  auto fail = [&]() -> LogicalResult {
    return op->emitError("the toy has no C for '") << op->getName() << "'";
  };
  if (op->getNumResults() != 1 || typeName(op->getResult(0).getType()).empty())
    return fail();
  for (Type type : op->getOperandTypes())
    if (typeName(type).empty())
      return fail();
  if (auto value = dyn_cast<arith::ConstantOp>(op)) {
    std::string text = constant(value.getValue());
    return text.empty() ? fail() : assign(op, text);
  }
  if (isa<arith::SelectOp>(op))
    return assign(op, name(op->getOperand(0)) + " ? " +
                          name(op->getOperand(1)) + " : " +
                          name(op->getOperand(2)));
  Type result = op->getResult(0).getType();
  if (isa<arith::CmpIOp, arith::CmpFOp>(op)) {
    auto [sign, isUnsigned, holdsForNaN] = findComparison(op);
    if (sign.empty())
      return fail();
    std::string a = name(op->getOperand(0)), b = name(op->getOperand(1));
    std::string cast =
        isUnsigned ? "(" + typeName(op->getOperand(0).getType(), true) + ")"
                   : "";
    std::string text = cast + a + " " + sign.str() + " " + cast + b;
    if (holdsForNaN)
      text += " || " + a + " != " + a + " || " + b + " != " + b;
    return assign(op, text);
  }
  if (StringRef sign = findBinary(op); !sign.empty()) {
    const bool isUnsigned = sign.consume_front("u");
    const bool isChoice = sign.consume_front("?");
    // Sums of integers wrap, which those of signed ones may not in C.
    const bool wraps =
        isa<IntegerType, IndexType>(result) &&
        (sign == "+" || sign == "-" || sign == "*" || sign == "<<");
    std::string cast =
        isUnsigned || wraps ? "(" + typeName(result, true) + ")" : "";
    std::string a = cast + name(op->getOperand(0));
    std::string b = cast + name(op->getOperand(1));
    if (isChoice)
      return assign(op, a + " " + sign + " " + b + " ? " + a + " : " + b);
    if (sign == "maximum" || sign == "minimum")
      return assign(op,
                    sign + "_" + typeName(result) + "(" + a + ", " + b + ")");
    if (sign.size() > 2)
      return assign(op, sign + (result.isF32() ? "f" : "") + "(" + a + ", " +
                            b + ")");
    if (result.isInteger(1) && sign != "&" && sign != "|" && sign != "^")
      return fail();
    return assign(op, a + " " + sign + " " + b);
  }
  StringRef function = findUnary(op);
  if (function.empty())
    return fail();
  std::string a = name(op->getOperand(0));
  Type from = op->getOperand(0).getType();
  if (function == "-")
    return assign(op, "-" + a);
  if (function == "(signed)") {
    // A bit counts as -1.
    if (from.isInteger(1))
      return assign(op, "-(int64_t)" + a);
    if (result.isInteger(1))
      return assign(op, a + " & 1");
    return assign(op, "(" + typeName(result) + ")" + a);
  }
  if (function == "(unsigned)")
    return assign(op, "(" + typeName(from, true) + ")" + a);
  return assign(op, function + (result.isF32() ? "f" : "") + "(" + a + ")");
}

LogicalResult Printer::print(Operation *op) {
  if (isa<scf::YieldOp, func::ReturnOp>(op))
    return success();
  if (isa<scf::SCFDialect>(op->getDialect()))
    return printLoop(op);
  if (isa<memref::MemRefDialect>(op->getDialect()))
    return printMemRefOp(op);
  return printScalarOp(op);
}

LogicalResult Printer::print(Block &block) {
  for (Operation &op : block)
    if (failed(print(&op)))
      return failure();
  // Memory that a block takes is its own, unless it is yielded.
  for (auto alloc : block.getOps<memref::AllocOp>())
    if (!llvm::is_contained(block.getTerminator()->getOperands(),
                            alloc.getResult()))
      line() << "free(" << name(alloc.getResult()) << ".memory);\n";
  return success();
}

LogicalResult Printer::print(func::FuncOp kernel) {
  constexpr int64_t kMostRank = 8;
  os << "void " << kernel.getName() << "(";
  StringRef separator;
  for (BlockArgument arg : kernel.getArguments()) {
    std::string view = name(arg);
    os << separator;
    separator = ", ";
    auto type = dyn_cast<MemRefType>(arg.getType());
    Type element = type ? type.getElementType() : arg.getType();
    if (typeName(element).empty() || (type && type.getRank() > kMostRank))
      return kernel.emitError("the toy has no C for an argument of type ")
             << arg.getType();
    if (!type) {
      os << typeName(arg.getType()) << " " << view;
      continue;
    }
    os << "void *" << view << "m, void *" << view << "d, int64_t " << view
       << "o";
    for (const char *what : {"n", "s"})
      for (int64_t i = 0; i < type.getRank(); ++i)
        os << ", int64_t " << view << what << i;
  }
  os << ") {\n";
  for (BlockArgument arg : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type)
      continue;
    std::string view = name(arg);
    line() << "view " << view << " = {" << view << "m, " << view << "d, "
           << view << "o};\n";
    for (int64_t i = 0; i < type.getRank(); ++i)
      line() << view << ".size[" << i << "] = " << view << "n" << i << "; "
             << view << ".stride[" << i << "] = " << view << "s" << i << ";\n";
  }
  if (failed(print(kernel.getBody().front())))
    return failure();
  os << "}\n\n";
  return success();
}

LogicalResult toy::printKernel(func::FuncOp kernel, raw_ostream &os) {
  return Printer(os).print(kernel);
}
