//===- ONNXVerify.cpp - Verifiers: by schema for all, by hand for some ----===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNX.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace sardonyx::onnx {

//===----------------------------------------------------------------------===//
// By schema
//===----------------------------------------------------------------------===//

namespace {
/// The words that a string attribute, or each of a list, may be.
struct Words {
  StringLiteral operation, attribute;
  SmallVector<StringLiteral, 8> known;
};
} // namespace

/// The words of an operation's attributes (words.py).
static ArrayRef<Words> findWords(StringRef operation) {
  static const Words table[] = {
#define WORDS(operation, attribute, ...) {operation, attribute, {__VA_ARGS__}},
#include "dialects/ONNX/ONNXWords.inc"
#undef WORDS
  };
  // Rows are in the order of operations.
  static const llvm::StringMap<ArrayRef<Words>> byOperation = [] {
    llvm::StringMap<ArrayRef<Words>> rows;
    for (const Words &row : table) {
      ArrayRef<Words> &known = rows[row.operation];
      known = known.empty() ? ArrayRef(row)
                            : ArrayRef(known.data(), known.size() + 1);
    }
    return rows;
  }();
  return byOperation.lookup(operation);
}

static LogicalResult verifyWords(Operation *op, const OpSchema &schema) {
  for (const Words &words : findWords(schema.mnemonic)) {
    Attribute attribute = op->getAttr(words.attribute);
    SmallVector<StringAttr> given;
    if (auto word = dyn_cast_or_null<StringAttr>(attribute))
      given.push_back(word);
    else if (auto list = dyn_cast_or_null<ArrayAttr>(attribute))
      llvm::append_range(given, list.getAsRange<StringAttr>());
    for (StringAttr word : given) {
      if (llvm::is_contained(words.known, word.getValue()))
        continue;
      InFlightDiagnostic error = op->emitOpError("attribute '");
      error << words.attribute << "' is '" << word.getValue()
            << "', and ONNX's " << schema.opType << " knows ";
      llvm::interleave(
          llvm::make_filter_range(
              words.known, [](StringRef known) { return !known.empty(); }),
          [&](StringRef known) { error << "'" << known << "'"; },
          [&] { error << ", "; });
      return error << ".";
    }
  }
  return success();
}

/// An attribute without a dialect's prefix is the schema's or a mistake.
static LogicalResult verifyAttributes(Operation *op, const OpSchema &schema) {
  for (NamedAttribute named : op->getDiscardableAttrs()) {
    StringRef name = named.getName();
    if (!name.contains('.') && !schema.findAttribute(name))
      return op->emitOpError("has an attribute '")
             << name << "', which ONNX's " << schema.opType
             << " does not know.";
  }
  for (const AttrInfo &info : schema.attributes) {
    auto value = op->getAttrOfType<IntegerAttr>(info.name);
    if (!value || info.kind != AttrKind::Int || !isDataTypeAttribute(info.name))
      continue;
    int64_t number = value.getValue().getSExtValue();
    bool known = number >= 0 && number <= INT32_MAX &&
                 getElementType(op->getContext(), int(number));
    // Where 0 is the default it means that nothing is said.
    if (!known && !(number == 0 && info.hasDefault && info.defaultInt == 0))
      return op->emitOpError("attribute '")
             << info.name << "' is " << number
             << ", which is the number of no element type.";
  }
  return success();
}

namespace {
/// Walks operands or results together with their schema parameters.
class ParamWalker {
public:
  ParamWalker(Operation *op, const OpSchema &schema)
      : op(op), schema(schema), bound(schema.types.size()) {}

  LogicalResult verify(ArrayRef<Value> values, ArrayRef<ParamInfo> params,
                       StringRef kind) {
    size_t position = 0;
    for (const ParamInfo &param : params) {
      bool variadic = param.option == ParamOption::Variadic;
      size_t end = variadic ? std::max(values.size(), position) : position + 1;
      if (variadic && position + param.minArity > end)
        return op->emitOpError("needs at least ")
               << param.minArity << " of the " << kind << " '" << param.name
               << "', but has " << end - position << ".";
      for (; position < end; ++position)
        if (position < values.size() && values[position] &&
            failed(check(values[position].getType(), param, kind, position)))
          return failure();
    }
    return success();
  }

private:
  LogicalResult check(Type type, const ParamInfo &param, StringRef kind,
                      size_t position) {
    const TypeSet &types = schema.types[param.typeIndex];
    if (!types.contains(type))
      return op->emitOpError()
             << kind << " " << position << " '" << param.name << "' must be "
             << types.describe() << ", but is " << type << ".";
    bool exempt = param.option == ParamOption::Variadic && !param.homogeneous;
    Type erased = eraseShapes(type);
    if (types.name.empty() || exempt || !isKnown(erased))
      return success();
    Binding &binding = bound[param.typeIndex];
    if (!binding.type) {
      binding = {erased, &param, kind};
      return success();
    }
    if (binding.type == erased)
      return success();
    return op->emitOpError()
           << kind << " '" << param.name << "' of type " << type << " and "
           << binding.kind << " '" << binding.param->name
           << "' must have one element type ('" << types.name
           << "' in the schema), but that one has " << elementOf(binding.type)
           << ".";
  }

  static bool isKnown(Type type) {
    return !type.walk([](UnknownType) { return WalkResult::interrupt(); })
                .wasInterrupted();
  }

  static Type elementOf(Type type) {
    auto tensor = dyn_cast<TensorType>(type);
    return tensor ? tensor.getElementType() : type;
  }

  struct Binding {
    Type type;
    const ParamInfo *param = nullptr;
    StringRef kind;
  };
  Operation *op;
  const OpSchema &schema;
  SmallVector<Binding> bound;
};
} // namespace

LogicalResult verifySchema(Operation *op) {
  const OpSchema &schema = cast<ONNXOpInterface>(op).getSchema();
  if (failed(verifyAttributes(op, schema)) || failed(verifyWords(op, schema)))
    return failure();
  ParamWalker walker(op, schema);
  if (failed(walker.verify(getPositionalInputs(op), schema.inputs, "input")) ||
      failed(walker.verify(getPositionalOutputs(op), schema.outputs, "output")))
    return failure();
  for (auto [info, region] : llvm::zip(schema.regions, op->getRegions()))
    if (region.empty()
            ? info.required
            : region.front().empty() || !isa<YieldOp>(region.front().back()))
      return op->emitOpError("graph '")
             << info.name << "' must end in onnx.Yield.";
  return success();
}

//===----------------------------------------------------------------------===//
// By hand
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  unsigned given = 0;
  for (const AttrInfo &info : getSchema().attributes)
    given += !!(*this)->getAttr(info.name);
  if (given != 1)
    return emitOpError(
               "must have exactly one of its value attributes, but has ")
           << given << ".";
  ElementsAttr elements =
      getValueAttr() ? getValueAttr() : getSparseValueAttr();
  auto type = dyn_cast<TensorType>(getOutput().getType());
  if (!elements || !type)
    return success();
  ShapedType given_ = elements.getShapedType();
  if (given_.getElementType() != type.getElementType() ||
      (type.hasRank() &&
       failed(verifyCompatibleShape(given_.getShape(), type.getShape()))))
    return emitOpError("has a value of type ")
           << given_ << ", which does not fit its result type " << type << ".";
  return success();
}

/// Checks that the body of `op` has as many arguments and yields as many values
/// as the operator's rules say.
static LogicalResult verifyGraph(Operation *op, Region &region, StringRef name,
                                 size_t arguments, size_t yields) {
  if (region.empty())
    return success(); // said by others
  Block &block = region.front();
  if (block.getNumArguments() != arguments)
    return op->emitOpError("graph '")
           << name << "' must have " << arguments << " inputs, but has "
           << block.getNumArguments() << ".";
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (yield && yield.getNumOperands() != yields)
    return op->emitOpError("graph '")
           << name << "' must yield " << yields << " values, but yields "
           << yield.getNumOperands() << ".";
  return success();
}

/// Checks that a value of a graph is a tensor of this element type, if its type
/// is known.
static LogicalResult verifyElements(Operation *op, Value value,
                                    const Twine &what, Type element,
                                    StringRef name) {
  auto type = dyn_cast<TensorType>(value.getType());
  if (isa<UnknownType>(value.getType()) ||
      (type && (type.getElementType() == element ||
                isa<UnknownType>(type.getElementType()))))
    return success();
  return op->emitOpError(what) << " of its body must be a tensor of " << name
                               << ", but is " << value.getType() << ".";
}

LogicalResult IfOp::verify() {
  size_t results = getNumResults();
  if (failed(verifyGraph(*this, getThenBranch(), "then_branch", 0, results)))
    return failure();
  return verifyGraph(*this, getElseBranch(), "else_branch", 0, results);
}

LogicalResult LoopOp::verify() {
  // The body takes the iteration number and the condition first and yields the
  // condition first.
  size_t carried = getVInitial().size();
  if (getNumResults() < carried)
    return emitOpError("must have a result for each of its ")
           << carried << " loop-carried values, but has " << getNumResults()
           << " results.";
  if (failed(verifyGraph(*this, getBody(), "body", carried + 2,
                         getNumResults() + 1)) ||
      getBody().empty())
    return failure(getBody().empty());
  Block &body = getBody().front();
  MLIRContext *context = getContext();
  Type i64 = IntegerType::get(context, 64), i1 = IntegerType::get(context, 1);
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (failed(verifyElements(*this, body.getArgument(0), "input 0", i64,
                            "int64")) ||
      failed(verifyElements(*this, body.getArgument(1), "input 1", i1, "bool")))
    return failure();
  return yield ? verifyElements(*this, yield.getOperand(0), "output 0", i1,
                                "bool")
               : success();
}

LogicalResult ScanOp::verify() {
  int64_t inputs = getNumOperands();
  if (getNumScanInputs() < 1 || getNumScanInputs() > inputs)
    return emitOpError("has num_scan_inputs = ")
           << getNumScanInputs() << ", which must be between 1 and its "
           << inputs << " inputs.";
  if (failed(verifyGraph(*this, getBody(), "body", inputs, getNumResults())))
    return failure();
  if (getBody().empty())
    return success();
  for (auto [i, operand, argument] :
       llvm::enumerate(getOperands(), getBody().getArguments())) {
    auto given = dyn_cast<TensorType>(operand.getType()),
         taken = dyn_cast<TensorType>(argument.getType());
    if (given && taken && given.getElementType() != taken.getElementType() &&
        !isa<UnknownType>(given.getElementType()) &&
        !isa<UnknownType>(taken.getElementType()))
      return emitOpError("input ")
             << i << " of its body is " << taken << ", but is fed elements of "
             << given << ".";
  }
  return success();
}

LogicalResult SequenceMapOp::verify() {
  return verifyGraph(*this, getBody(), "body", getNumOperands(),
                     getNumResults());
}

LogicalResult CustomOp::verify() {
  if (lookupSchema(getDomain(), getOpType()))
    return emitOpError("stands for '")
           << getOpType()
           << "', which is an operator of ONNX and has its own op.";
  size_t names = getRegionNames() ? getRegionNames()->size() : 0;
  if (names != getGraphs().size())
    return emitOpError("has ")
           << getGraphs().size() << " graphs, but names " << names << ".";
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Sizes and ranks may be known on one side only: inference refines them.
static bool mayBeSame(Type a, Type b) {
  if (a == b || isa<UnknownType>(a) || isa<UnknownType>(b))
    return true;
  if (auto first = dyn_cast<SeqType>(a))
    if (auto second = dyn_cast<SeqType>(b))
      return mayBeSame(first.getElementType(), second.getElementType());
  if (auto first = dyn_cast<OptType>(a))
    if (auto second = dyn_cast<OptType>(b))
      return mayBeSame(first.getElementType(), second.getElementType());
  return isa<TensorType>(a) && isa<TensorType>(b) &&
         getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
         succeeded(verifyCompatibleShape(a, b));
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(
      *this, getCalleeAttr());
  if (!callee || callee.isExternal())
    return emitOpError("calls '")
           << getCallee() << "', which is no function with a body.";
  auto check = [&](TypeRange here, TypeRange there,
                   StringRef what) -> LogicalResult {
    if (here.size() != there.size())
      return emitOpError("has ")
             << here.size() << " " << what << "s, but '" << getCallee()
             << "' has " << there.size() << ".";
    for (auto [i, types] : llvm::enumerate(llvm::zip_equal(here, there)))
      if (auto [a, b] = types; !mayBeSame(a, b))
        return emitOpError("has ")
               << a << " as " << what << " " << i << ", but '" << getCallee()
               << "' has " << b << ".";
    return success();
  };
  if (failed(check(getInputs().getTypes(), callee.getArgumentTypes(), "input")))
    return failure();
  return check(getResultTypes(), callee.getResultTypes(), "output");
}

} // namespace sardonyx::onnx
