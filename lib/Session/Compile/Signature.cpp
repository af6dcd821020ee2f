//===- Signature.cpp - What a module says about its model -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/Signature.h"
#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/SDX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Model/Names.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace sardonyx;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

static ElementType elementTypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return ElementType::Bool;
    case 2:
      return isUnsigned ? ElementType::Uint2 : ElementType::Int2;
    case 4:
      return isUnsigned ? ElementType::Uint4 : ElementType::Int4;
    case 8:
      return isUnsigned ? ElementType::Uint8 : ElementType::Int8;
    case 16:
      return isUnsigned ? ElementType::Uint16 : ElementType::Int16;
    case 32:
      return isUnsigned ? ElementType::Uint32 : ElementType::Int32;
    case 64:
      return isUnsigned ? ElementType::Uint64 : ElementType::Int64;
    default:
      return ElementType::Undefined;
    }
  }
  return llvm::TypeSwitch<Type, ElementType>(type)
      .Case([](Float16Type) { return ElementType::Float16; })
      .Case([](BFloat16Type) { return ElementType::Bfloat16; })
      .Case([](Float32Type) { return ElementType::Float; })
      .Case([](Float64Type) { return ElementType::Double; })
      .Case([](Float8E4M3FNType) { return ElementType::Float8E4M3FN; })
      .Case([](Float8E4M3FNUZType) { return ElementType::Float8E4M3FNUZ; })
      .Case([](Float8E5M2Type) { return ElementType::Float8E5M2; })
      .Case([](Float8E5M2FNUZType) { return ElementType::Float8E5M2FNUZ; })
      .Case([](Float8E8M0FNUType) { return ElementType::Float8E8M0; })
      .Case([](Float4E2M1FNType) { return ElementType::Float4E2M1; })
      .Case([](Float6E2M3FNType) { return ElementType::Float6E2M3; })
      .Case([](Float6E3M2FNType) { return ElementType::Float6E3M2; })
      .Case([](ComplexType complex) {
        return complex.getElementType().isF64() ? ElementType::Complex128
                                                : ElementType::Complex64;
      })
      .Case([](onnx::StringType) { return ElementType::String; })
      .Default([](Type) { return ElementType::Undefined; });
}

static std::string typeText(Type type) {
  return llvm::TypeSwitch<Type, std::string>(type)
      .Case([](TensorType tensor) {
        return std::string("tensor(") +
               nameOf(elementTypeOf(tensor.getElementType())) + ")";
      })
      .Case([](onnx::SeqType seq) {
        return "seq(" + typeText(seq.getElementType()) + ")";
      })
      .Case([](onnx::OptType optional) {
        return "optional(" + typeText(optional.getElementType()) + ")";
      })
      .Case([](onnx::MapType map) {
        return std::string("map(") + nameOf(elementTypeOf(map.getKeyType())) +
               "," + typeText(map.getValueType()) + ")";
      })
      .Case([](onnx::SparseType sparse) {
        return "sparse_" + typeText(sparse.getDenseType());
      })
      .Default([](Type) { return std::string("unknown"); });
}

static ValueInfo describeValue(Type type, DictionaryAttr attributes,
                               const std::string &fallback);

/// Says what a sequence, an optional or a map holds.
static void describeItems(Type type, ValueInfo &info) {
  if (auto optional = dyn_cast<onnx::OptType>(type)) {
    info.isOptional = true;
    type = optional.getElementType();
  }
  if (auto sequence = dyn_cast<onnx::SeqType>(type)) {
    info.isSequence = true;
    type = sequence.getElementType();
  }
  ValueInfo *holder = &info;
  if (auto map = dyn_cast<onnx::MapType>(type)) {
    if (info.isSequence || info.isOptional) {
      info.items.push_back({});
      holder = &info.items.front();
      holder->type = typeText(map);
    }
    holder->isMap = true;
    auto keys = RankedTensorType::get({ShapedType::kDynamic}, map.getKeyType());
    holder->items.push_back(describeValue(keys, {}, "keys"));
    type = map.getValueType();
  }
  if (isa<TensorType>(type))
    holder->items.push_back(describeValue(type, {}, "item"));
}

static ValueInfo describeValue(Type type, DictionaryAttr attributes,
                               const std::string &fallback) {
  ValueInfo info;
  info.name = fallback;
  ArrayAttr symbols;
  if (attributes) {
    if (auto name = attributes.getAs<StringAttr>("onnx.name"))
      info.name = name.str();
    symbols = attributes.getAs<ArrayAttr>("onnx.dim_params");
  }
  info.type = typeText(type);
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor) {
    describeItems(type, info);
    return info;
  }
  info.elementType = elementTypeOf(tensor.getElementType());
  info.hasRank = tensor.hasRank();
  if (!info.hasRank)
    return info;
  for (auto [i, size] : llvm::enumerate(tensor.getShape())) {
    Dim dim;
    if (!ShapedType::isDynamic(size))
      dim.size = size;
    else if (symbols && i < symbols.size())
      if (auto symbol = dyn_cast<StringAttr>(symbols[i]))
        dim.symbol = symbol.str();
    info.dims.push_back(std::move(dim));
  }
  return info;
}

static void readMetadata(ModuleOp module, ModelMetadata &metadata) {
  auto text = [&](StringRef name) {
    auto attribute = module->getAttrOfType<StringAttr>(name);
    return attribute ? attribute.str() : std::string();
  };
  auto number = [&](StringRef name) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getValue().getSExtValue() : 0;
  };
  metadata.producerName = text("onnx.producer_name");
  metadata.producerVersion = text("onnx.producer_version");
  metadata.graphName = text("onnx.graph_name");
  metadata.domain = text("onnx.domain");
  metadata.description = text("onnx.doc_string");
  metadata.modelVersion = number("onnx.model_version");
  metadata.irVersion = number("onnx.ir_version");
  if (auto custom = module->getAttrOfType<DictionaryAttr>("onnx.metadata"))
    for (NamedAttribute entry : custom)
      if (auto value = dyn_cast<StringAttr>(entry.getValue()))
        metadata.custom.emplace_back(entry.getName().str(), value.str());
}

void sardonyx::forgetDimNames(ModuleOp module) {
  auto func = module.lookupSymbol<func::FuncOp>("main_graph");
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    func.removeArgAttr(i, "onnx.dim_params");
}

MaybeError sardonyx::readSignature(ModuleOp module, Artifact &artifact,
                                   bool asDeclared) {
  auto func = module.lookupSymbol<func::FuncOp>("main_graph");
  if (!func)
    return Error(ErrorKind::Failed,
                 "the imported module has no function 'main_graph'");
  artifact.inputs.clear();
  artifact.outputs.clear();
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    artifact.inputs.push_back(describeValue(func.getArgumentTypes()[i],
                                            func.getArgAttrDict(i),
                                            "input" + std::to_string(i)));
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    Type type = func.getResultTypes()[i];
    auto declared = func.getResultAttrOfType<TypeAttr>(i, "sdx.declared");
    artifact.outputs.push_back(
        describeValue(declared && asDeclared ? declared.getValue() : type,
                      func.getResultAttrDict(i), "output" + std::to_string(i)));
  }
  readMetadata(module, artifact.metadata);
  return std::nullopt;
}

MaybeError sardonyx::fixDims(ModuleOp module,
                             const std::map<std::string, int64_t> &dims,
                             Artifact &artifact, UnknownDims unknown) {
  auto func = module.lookupSymbol<func::FuncOp>("main_graph");
  if (!func || dims.empty())
    return std::nullopt;
  const std::vector<std::string> open = openDimsOf(artifact.inputs);
  for (const auto &[name, size] : dims) {
    if (unknown != UnknownDims::AreIgnored && !llvm::is_contained(open, name)) {
      std::string text = unknownName("open dimension", name, open);
      if (unknown == UnknownDims::AreErrors)
        return Error(ErrorKind::InvalidArgument, text);
      artifact.warnings.push_back(text + "; its size is ignored");
    }
    if (size < 0)
      return Error(ErrorKind::InvalidArgument, "dimension '" + name +
                                                   "' cannot have the size " +
                                                   std::to_string(size));
  }
  auto sizeOf = [&](const ValueInfo &value, size_t index) {
    const int64_t *size = sizeGivenFor(value, index, dims);
    return size ? *size : ShapedType::kDynamic;
  };
  for (size_t i = 0; i < artifact.inputs.size(); ++i) {
    BlockArgument arg = func.getArgument(i);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      continue;
    SmallVector<int64_t> shape(type.getShape());
    for (size_t d = 0; d < shape.size(); ++d)
      if (int64_t size = sizeOf(artifact.inputs[i], d);
          !ShapedType::isDynamic(size))
        shape[d] = size;
    arg.setType(type.clone(shape));
  }
  func.setType(FunctionType::get(module.getContext(),
                                 func.getBody().front().getArgumentTypes(),
                                 func.getResultTypes()));
  for (auto *values : {&artifact.inputs, &artifact.outputs})
    for (ValueInfo &value : *values)
      for (size_t d = 0; d < value.dims.size(); ++d)
        if (int64_t size = sizeOf(value, d); !ShapedType::isDynamic(size))
          value.dims[d] = {size, ""};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {

class ArgumentReader {
public:
  ArgumentReader(const std::string &modelPath, StringRef modelBytes,
                 Artifact &artifact)
      : modelPath(modelPath), modelBytes(modelBytes), artifact(artifact) {}

  MaybeError read(func::FuncOp func, std::vector<Argument> &args);

private:
  MaybeError readConstant(ElementsAttr value, DictionaryAttr source,
                          int64_t elementBytes, Argument &arg);
  MaybeError readSource(DictionaryAttr source, uint64_t length, Argument &arg,
                        bool &found);
  void addInline(ElementsAttr value, StringRef bytes, bool splat,
                 uint64_t length, Argument &arg);
  /// Whether these bytes are the model's own, in memory.
  bool readModelBytes(ArrayRef<char> bytes, Argument &arg);

  const std::string &modelPath;
  StringRef modelBytes;
  Artifact &artifact;
  llvm::DenseMap<Attribute, uint64_t> inlined; // to offsets in artifact.data
};

} // namespace

static Error internal(const std::string &what) { return internalError(what); }

/// The file's place in the artifact, which gets it if it is new.
static uint32_t indexOfFile(SourceFile entry, Artifact &artifact) {
  uint32_t index = 0;
  while (index < artifact.files.size() &&
         artifact.files[index].path != entry.path)
    ++index;
  if (index == artifact.files.size())
    artifact.files.push_back(std::move(entry));
  return index;
}

static uint32_t indexOfFile(const FileMap &file, const std::string &modelPath,
                            Artifact &artifact) {
  return indexOfFile({file.path() == modelPath ? "" : file.path(),
                      file.bytes().size(), file.modified()},
                     artifact);
}

MaybeError sardonyx::readSourceFiles(ModuleOp module,
                                     const std::string &modelPath,
                                     Artifact &artifact) {
  llvm::StringSet<> seen;
  auto add = [&](StringRef path) -> MaybeError {
    if (path.empty() || !seen.insert(path).second)
      return std::nullopt;
    auto file = FileMap::open(path.str());
    if (!file)
      return file.error();
    indexOfFile(**file, modelPath, artifact);
    return std::nullopt;
  };
  if (auto files = module->getAttrOfType<ArrayAttr>("sdx.files"))
    for (auto path : files.getAsRange<StringAttr>())
      if (MaybeError error = add(path.getValue()))
        return error;
  MaybeError error;
  module->walk([&](Operation *op) {
    auto source = op->getAttrOfType<DictionaryAttr>("sdx.source");
    auto path = source ? source.getAs<StringAttr>("path") : StringAttr();
    if (path)
      error = add(path.getValue());
    return error ? WalkResult::interrupt() : WalkResult::advance();
  });
  return error;
}

std::vector<std::string>
sardonyx::pathsOf(const std::vector<SourceFile> &files) {
  std::vector<std::string> paths;
  for (const SourceFile &file : files)
    if (!file.path.empty())
      paths.push_back(file.path);
  return paths;
}

MaybeError ArgumentReader::readSource(DictionaryAttr source, uint64_t length,
                                      Argument &arg, bool &found) {
  found = false;
  auto path = source.getAs<StringAttr>("path");
  auto offset = source.getAs<IntegerAttr>("offset");
  auto size = source.getAs<IntegerAttr>("length");
  // A constant that was made from part of a file's tensor is not the file's.
  if (!path || path.empty() || !offset || !size ||
      size.getValue().getZExtValue() != length)
    return std::nullopt;
  std::string name = path.str();
  auto file = FileMap::open(name);
  if (!file)
    return file.error();
  uint64_t begin = offset.getValue().getZExtValue();
  uint64_t end = (*file)->bytes().size();
  if (begin > end || length > end - begin)
    return internal("a constant's place in '" + name + "' is not in the file");
  arg.index = indexOfFile(**file, modelPath, artifact);
  arg.offset = begin;
  found = true;
  return std::nullopt;
}

void ArgumentReader::addInline(ElementsAttr value, StringRef bytes, bool splat,
                               uint64_t length, Argument &arg) {
  arg.index = Argument::inlineData;
  auto [entry, isNew] = inlined.try_emplace(value, 0);
  if (isNew) {
    std::string &data = artifact.data;
    data.resize((data.size() + 63) / 64 * 64);
    entry->second = data.size();
    if (splat)
      for (uint64_t done = 0; done < length; done += bytes.size())
        data.append(bytes.data(), bytes.size());
    else
      data.append(bytes.data(), bytes.size());
  }
  arg.offset = entry->second;
}

bool ArgumentReader::readModelBytes(ArrayRef<char> bytes, Argument &arg) {
  std::less_equal<const char *> isBefore;
  if (modelBytes.empty() || !isBefore(modelBytes.begin(), bytes.begin()) ||
      !isBefore(bytes.end(), modelBytes.end()))
    return false;
  arg.index = indexOfFile({"", modelBytes.size(), 0}, artifact);
  arg.offset = bytes.begin() - modelBytes.begin();
  return true;
}

MaybeError ArgumentReader::readConstant(ElementsAttr value,
                                        DictionaryAttr source,
                                        int64_t elementBytes, Argument &arg) {
  auto type = cast<ShapedType>(value.getType());
  arg.shape.assign(type.getShape().begin(), type.getShape().end());
  uint64_t length = static_cast<uint64_t>(type.getNumElements()) * elementBytes;
  arg.length = length;
  if (source) {
    bool found;
    if (MaybeError error = readSource(source, length, arg, found))
      return error;
    if (found)
      return std::nullopt;
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != length)
      return internal("a constant's resource is missing or has another size");
    if (!readModelBytes(blob->getData(), arg))
      addInline(value, StringRef(blob->getData().data(), length), false, length,
                arg);
    return std::nullopt;
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return internal("a constant of a kind that has no data");
  if (type.getElementType().isInteger(1)) { // packed by bits
    std::string bytes;
    for (bool bit : dense.getValues<bool>())
      bytes.push_back(bit);
    if (bytes.size() != length)
      return internal("a constant of booleans has another size");
    addInline(value, bytes, false, length, arg);
    return std::nullopt;
  }
  ArrayRef<char> raw = dense.getRawData();
  bool splat = dense.isSplat();
  if (raw.size() != (splat ? static_cast<uint64_t>(elementBytes) : length) &&
      length != 0)
    return internal("a constant has " + std::to_string(raw.size()) +
                    " bytes, expected " + std::to_string(length));
  addInline(value, StringRef(raw.data(), length ? raw.size() : 0), splat,
            length, arg);
  return std::nullopt;
}

MaybeError ArgumentReader::read(func::FuncOp func,
                                std::vector<Argument> &args) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(func.getArgumentTypes()[i]);
    auto attribute = [&](StringRef name) { return func.getArgAttr(i, name); };
    std::string what =
        "argument " + std::to_string(i) + " of '" + func.getName().str() + "'";
    if (!type || !type.getElementType().isIntOrIndexOrFloat())
      return internal(what + " is no memref of numbers");
    int64_t elementBytes = type.getElementType().isIndex()
                               ? 8
                               : (type.getElementTypeBitWidth() + 7) / 8;
    Argument arg;
    // The host's memory has no space of its own.
    arg.onDevice = static_cast<bool>(type.getMemorySpace());
    if (auto input = dyn_cast_or_null<IntegerAttr>(attribute("sdx.input"))) {
      arg.kind = Argument::Input;
      arg.index = input.getInt();
      if (arg.index >= artifact.inputs.size())
        return internal(what + " is an input that the model does not have");
      const ValueInfo &info = artifact.inputs[arg.index];
      if (!info.items.empty()) { // a handle
        if (elementBytes != 8 || type.getRank() != 0)
          return internal(what + " does not fit the input '" + info.name + "'");
        args.push_back(std::move(arg));
        continue;
      }
      if (!info.hasRank)
        return Error(ErrorKind::Unsupported,
                     "input '" + info.name +
                         "' is declared without a shape, which is not "
                         "supported");
      if (byteSizeOf(info.elementType) == 0)
        return Error(ErrorKind::Unsupported,
                     "input '" + info.name +
                         "' has an element type that is not supported");
      if (storedBytesOf(info.elementType) != elementBytes ||
          info.dims.size() != static_cast<size_t>(type.getRank()))
        return internal(what + " does not fit the input '" + info.name + "'");
    } else if (auto persistent =
                   dyn_cast_or_null<IntegerAttr>(attribute("sdx.persistent"))) {
      arg.kind = Argument::Persistent;
      arg.index = persistent.getInt();
      if (arg.index > 1000000)
        return internal(what + " has an impossible index");
      if (artifact.persistentElementBytes.size() <= arg.index)
        artifact.persistentElementBytes.resize(arg.index + 1, 1);
      artifact.persistentElementBytes[arg.index] = elementBytes;
    } else if (auto value =
                   dyn_cast_or_null<ElementsAttr>(attribute("sdx.constant"))) {
      arg.kind = Argument::Constant;
      auto source = dyn_cast_or_null<DictionaryAttr>(attribute("sdx.source"));
      if (MaybeError error = readConstant(value, source, elementBytes, arg))
        return error;
    } else {
      return internal(what + " is neither input nor constant");
    }
    args.push_back(std::move(arg));
  }
  return std::nullopt;
}

static void readStrings(ModuleOp module, Artifact &artifact) {
  if (auto strings = module->getAttrOfType<ArrayAttr>(sdx::kStringsAttr))
    for (auto text : strings.getAsRange<StringAttr>())
      artifact.strings.push_back(text.str());
}

static void readProfileSites(ModuleOp module, Artifact &artifact) {
  auto sites = module->getAttrOfType<ArrayAttr>(sdx::kProfileAttr);
  if (!sites)
    return;
  for (auto entry : sites.getAsRange<DictionaryAttr>()) {
    ProfileSite &site = artifact.profileSites.emplace_back();
    site.kernel = entry.getAs<StringAttr>("kernel").str();
    site.form = entry.getAs<StringAttr>("form").str();
    for (auto node : entry.getAs<ArrayAttr>("nodes").getAsRange<StringAttr>())
      site.nodes.push_back(node.str());
  }
}

MaybeError sardonyx::readArguments(ModuleOp module,
                                   const std::string &modelPath,
                                   StringRef modelBytes, Artifact &artifact) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main)
    return internal("the compiled module has no function 'main'");
  readProfileSites(module, artifact);
  readStrings(module, artifact);
  ArgumentReader reader(modelPath, modelBytes, artifact);
  if (MaybeError error = reader.read(main, artifact.mainArgs))
    return error;
  if (auto init = module.lookupSymbol<func::FuncOp>("init"))
    return reader.read(init, artifact.initArgs);
  return std::nullopt;
}
