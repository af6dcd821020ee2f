//===- ONNXSchema.cpp - Schema tables and what is read off them -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/ONNX/ONNXSchema.h"
#include "dialects/ONNX/ONNX.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace sardonyx::onnx {

namespace {
#include "dialects/ONNX/ONNXSchemaTables.inc"
} // namespace

ArrayRef<OpSchema> getSchemas() { return schemaTable; }
ArrayRef<DomainVersion> getDomainVersions() { return domainVersions; }

const AttrInfo *OpSchema::findAttribute(StringRef name) const {
  for (const AttrInfo &attribute : attributes)
    if (attribute.name == name)
      return &attribute;
  return nullptr;
}

const OpSchema *lookupSchema(StringRef domain, StringRef opType) {
  if (domain == "ai.onnx")
    domain = "";
  auto less = [](const OpSchema &schema,
                 std::pair<StringRef, StringRef> wanted) {
    return std::pair<StringRef, StringRef>(schema.domain, schema.opType) <
           wanted;
  };
  std::pair<StringRef, StringRef> wanted(domain, opType);
  const OpSchema *end = std::end(schemaTable);
  const OpSchema *found =
      std::lower_bound(std::begin(schemaTable), end, wanted, less);
  if (found == end || found->domain != domain || found->opType != opType)
    return nullptr;
  return found;
}

const OpSchema *lookupSchema(Operation *op) {
  auto interface = dyn_cast<ONNXOpInterface>(op);
  return interface ? &interface.getSchema() : nullptr;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::optional<int> getDataType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.isSigned())
      return std::nullopt;
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return isUnsigned ? std::nullopt : std::optional<int>(9);
    case 2:
      return isUnsigned ? 25 : 26;
    case 4:
      return isUnsigned ? 21 : 22;
    case 8:
      return isUnsigned ? 2 : 3;
    case 16:
      return isUnsigned ? 4 : 5;
    case 32:
      return isUnsigned ? 12 : 6;
    case 64:
      return isUnsigned ? 13 : 7;
    default:
      return std::nullopt;
    }
  }
  if (auto complex = dyn_cast<ComplexType>(type)) {
    if (complex.getElementType().isF32())
      return 14;
    if (complex.getElementType().isF64())
      return 15;
    return std::nullopt;
  }
  for (int number = 1; number <= 28; ++number)
    if (getElementType(type.getContext(), number) == type)
      return number;
  return std::nullopt;
}

Type getElementType(MLIRContext *context, int dataType) {
  Builder b(context);
  auto integer = [&](unsigned width) { return b.getIntegerType(width); };
  auto natural = [&](unsigned width) { return b.getIntegerType(width, false); };
  switch (dataType) {
  case 1:
    return b.getF32Type();
  case 2:
    return natural(8);
  case 3:
    return integer(8);
  case 4:
    return natural(16);
  case 5:
    return integer(16);
  case 6:
    return integer(32);
  case 7:
    return integer(64);
  case 8:
    return StringType::get(context);
  case 9:
    return integer(1);
  case 10:
    return b.getF16Type();
  case 11:
    return b.getF64Type();
  case 12:
    return natural(32);
  case 13:
    return natural(64);
  case 14:
    return ComplexType::get(b.getF32Type());
  case 15:
    return ComplexType::get(b.getF64Type());
  case 16:
    return b.getBF16Type();
  case 17:
    return Float8E4M3FNType::get(context);
  case 18:
    return Float8E4M3FNUZType::get(context);
  case 19:
    return Float8E5M2Type::get(context);
  case 20:
    return Float8E5M2FNUZType::get(context);
  case 21:
    return natural(4);
  case 22:
    return integer(4);
  case 23:
    return Float4E2M1FNType::get(context);
  case 24:
    return Float8E8M0FNUType::get(context);
  case 25:
    return natural(2);
  case 26:
    return integer(2);
  case 27:
    return Float6E2M3FNType::get(context);
  case 28:
    return Float6E3M2FNType::get(context);
  default:
    return {};
  }
}

bool isDataTypeAttribute(StringRef name) {
  static constexpr llvm::StringLiteral names[] = {
      "dtype",     "output_datatype",   "output_dtype",
      "precision", "softmax_precision", "stash_type",
      "to"};
  return llvm::is_contained(names, name);
}

Type eraseShapes(Type type) {
  if (auto tensor = dyn_cast<TensorType>(type))
    return UnrankedTensorType::get(tensor.getElementType());
  if (auto seq = dyn_cast<SeqType>(type))
    return SeqType::get(eraseShapes(seq.getElementType()));
  if (auto opt = dyn_cast<OptType>(type))
    return OptType::get(eraseShapes(opt.getElementType()));
  if (auto map = dyn_cast<MapType>(type))
    return MapType::get(map.getKeyType(), eraseShapes(map.getValueType()));
  if (auto sparse = dyn_cast<SparseType>(type))
    return SparseType::get(
        UnrankedTensorType::get(sparse.getDenseType().getElementType()));
  return type;
}

bool isStringTensor(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  return tensor && isa<StringType>(tensor.getElementType());
}

static bool containsElement(uint32_t bits, Type type) {
  if (isa<UnknownType>(type))
    return true;
  Type element;
  if (auto tensor = dyn_cast<TensorType>(type))
    element = tensor.getElementType();
  else if (auto sparse = dyn_cast<SparseType>(type))
    element = sparse.getDenseType().getElementType();
  else
    return false;
  if (isa<UnknownType>(element))
    return true;
  std::optional<int> number = getDataType(element);
  return number && (bits >> *number & 1);
}

static bool containsMap(uint32_t bits, MapType type) {
  Type value = type.getValueType();
  if (auto tensor = dyn_cast<TensorType>(value))
    value = tensor.getElementType();
  unsigned bit = isa<StringType>(type.getKeyType()) ? 4 : 0;
  if (value.isF32())
    bit += 1;
  else if (value.isInteger(64))
    bit += 2;
  else if (value.isF64())
    bit += 3;
  else if (!isa<StringType>(value))
    return false;
  return bits >> bit & 1;
}

bool TypeSet::contains(Type type) const {
  if (isa<UnknownType>(type))
    return true;
  if (auto map = dyn_cast<MapType>(type))
    return containsMap(this->map, map);
  if (auto sequence = dyn_cast<SeqType>(type)) {
    Type element = sequence.getElementType();
    if (auto map = dyn_cast<MapType>(element))
      return containsMap(seqMap, map);
    return containsElement(seq, element);
  }
  if (auto optional = dyn_cast<OptType>(type)) {
    Type element = optional.getElementType();
    if (auto sequence = dyn_cast<SeqType>(element))
      return containsElement(optSeq, sequence.getElementType());
    return containsElement(opt, element);
  }
  return containsElement(tensor, type);
}

static std::string describeElements(uint32_t bits) {
  // No context is at hand; the spelling is that of the type printer.
  static const char *const names[] = {"",
                                      "f32",
                                      "ui8",
                                      "i8",
                                      "ui16",
                                      "i16",
                                      "i32",
                                      "i64",
                                      "!onnx.string",
                                      "i1",
                                      "f16",
                                      "f64",
                                      "ui32",
                                      "ui64",
                                      "complex<f32>",
                                      "complex<f64>",
                                      "bf16",
                                      "f8E4M3FN",
                                      "f8E4M3FNUZ",
                                      "f8E5M2",
                                      "f8E5M2FNUZ",
                                      "ui4",
                                      "i4",
                                      "f4E2M1FN",
                                      "f8E8M0FNU",
                                      "ui2",
                                      "i2",
                                      "f6E2M3FN",
                                      "f6E3M2FN"};
  std::string text;
  for (unsigned i = 1; i < std::size(names); ++i)
    if (bits >> i & 1)
      text += (text.empty() ? "" : ", ") + std::string(names[i]);
  return text;
}

std::string TypeSet::describe() const {
  SmallVector<std::string> parts;
  if (tensor)
    parts.push_back("a tensor of " + describeElements(tensor));
  if (seq)
    parts.push_back("a sequence of tensors of " + describeElements(seq));
  if (opt || optSeq)
    parts.push_back("an optional");
  if (map || seqMap)
    parts.push_back(map ? "a map" : "a sequence of maps");
  return llvm::join(parts, " or ");
}

//===----------------------------------------------------------------------===//
// Building and taking apart
//===----------------------------------------------------------------------===//

/// Number of values in each of the segments that ODS knows for `params`.
static bool getSegments(ArrayRef<ParamInfo> params, ArrayRef<bool> present,
                        StringRef kind, SmallVectorImpl<int32_t> &segments,
                        std::string &error) {
  segments.clear();
  size_t position = 0;
  for (const ParamInfo &param : params) {
    if (param.option == ParamOption::Variadic) {
      int32_t count = 0;
      for (; position < present.size(); ++position, ++count)
        if (!present[position]) {
          error = ("the variadic " + kind + " '" + param.name +
                   "' may not have an entry left out")
                      .str();
          return false;
        }
      segments.push_back(count);
      continue;
    }
    bool here = position < present.size() && present[position];
    if (!here && param.option == ParamOption::Single) {
      error = ("the " + kind + " '" + param.name + "' is missing").str();
      return false;
    }
    segments.push_back(here);
    ++position;
  }
  for (; position < present.size(); ++position)
    if (present[position]) {
      error = ("there are more " + kind + "s than the " + Twine(params.size()) +
               " that the operator has")
                  .str();
      return false;
    }
  return true;
}

static bool hasSegments(ArrayRef<ParamInfo> params) {
  return llvm::count_if(params, [](const ParamInfo &param) {
           return param.option != ParamOption::Single;
         }) >= 2;
}

LogicalResult buildSchemaOp(OperationState &state, const OpSchema &schema,
                            ArrayRef<Value> inputs, ArrayRef<Type> outputs,
                            ArrayRef<NamedAttribute> attrs,
                            std::string &error) {
  MLIRContext *context = state.getContext();
  state.name = OperationName(schema.mnemonic, context);
  SmallVector<bool> present;
  SmallVector<int32_t> segments;
  for (Value input : inputs)
    present.push_back(!!input);
  if (!getSegments(schema.inputs, present, "input", segments, error))
    return failure();
  if (hasSegments(schema.inputs))
    state.addAttribute("operandSegmentSizes",
                       DenseI32ArrayAttr::get(context, segments));
  present.clear();
  for (Type output : outputs)
    present.push_back(!!output);
  if (!getSegments(schema.outputs, present, "output", segments, error))
    return failure();
  if (hasSegments(schema.outputs))
    state.addAttribute("resultSegmentSizes",
                       DenseI32ArrayAttr::get(context, segments));
  for (Value input : inputs)
    if (input)
      state.operands.push_back(input);
  for (Type output : outputs)
    if (output)
      state.types.push_back(output);
  for (NamedAttribute attribute : attrs)
    state.attributes.append(attribute);
  if (state.regions.empty())
    for (size_t i = 0; i < schema.regions.size(); ++i)
      state.addRegion();
  return success();
}

template <typename Range>
static SmallVector<Value> getPositional(Operation *op, Range values,
                                        ArrayRef<ParamInfo> params,
                                        StringRef segmentName) {
  SmallVector<Value> result;
  if (!hasSegments(params)) {
    // At most one is optional or variadic: the number of values tells whether
    // it is there.
    result.append(values.begin(), values.end());
    if (result.size() + 1 == params.size() &&
        params.back().option == ParamOption::Single)
      for (auto [i, param] : llvm::enumerate(params))
        if (param.option == ParamOption::Optional)
          result.insert(result.begin() + i, Value());
    return result;
  }
  auto segments = op->getAttrOfType<DenseI32ArrayAttr>(segmentName);
  if (!segments || segments.size() != static_cast<int64_t>(params.size()))
    return result;
  auto next = values.begin();
  for (auto [param, size] : llvm::zip(params, segments.asArrayRef())) {
    if (size == 0 && param.option != ParamOption::Variadic)
      result.push_back({});
    for (int32_t i = 0; i < size && next != values.end(); ++i)
      result.push_back(*next++);
  }
  while (!result.empty() && !result.back())
    result.pop_back();
  return result;
}

SmallVector<Value> getPositionalInputs(Operation *op) {
  const OpSchema *schema = lookupSchema(op);
  if (!schema)
    return llvm::to_vector(op->getOperands());
  return getPositional(op, op->getOperands(), schema->inputs,
                       "operandSegmentSizes");
}

SmallVector<Value> getPositionalOutputs(Operation *op) {
  const OpSchema *schema = lookupSchema(op);
  if (!schema)
    return SmallVector<Value>(op->getResults());
  return getPositional(op, op->getResults(), schema->outputs,
                       "resultSegmentSizes");
}

} // namespace sardonyx::onnx
