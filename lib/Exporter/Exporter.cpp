//===- Exporter.cpp - From the onnx dialect to an ONNX file ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Exporter/Exporter.h"

#include "dialects/ONNX/ONNX.h"
#include "lib/Bridge/OpToNode.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Exporter/Names.h"
#include "lib/Exporter/Versions.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Tensors.h"
#include "lib/Importer/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <onnx/onnx_pb.h>

#include <map>

using namespace mlir;

namespace sardonyx {
namespace exporter {
namespace {

using importer::fail;
using ::onnx::TensorProto;

/// What protobuf can serialize, with room for everything but the tensors.
constexpr uint64_t kMaxInline = uint64_t(2000) << 20;
/// Offsets of external tensors are multiples of this, so that they can be
/// mapped.
constexpr uint64_t kExternalAlignment = 4096;

uint64_t dataSize(ElementsAttr value) {
  unsigned bits =
      importer::bitWidth(importer::dataTypeOf(value.getElementType()));
  return uint64_t(value.getNumElements()) * bits / 8;
}

/// Takes a file's name away before another one is written under it: whoever
/// has mapped it, the model that is being exported among them, goes on to read
/// it.
void makeWay(StringRef path) {
  SmallString<256> real;
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::real_path(path, real) &&
      !llvm::sys::fs::status(real, status) &&
      status.type() == llvm::sys::fs::file_type::regular_file)
    (void)llvm::sys::fs::remove(real);
}

class ModelExport {
public:
  ModelExport(ModuleOp module, StringRef path, const ExportOptions &options)
      : module(module), path(path), options(options), func(findMain(module)),
        mainNames(func), names(&mainNames) {
    toNode.nameOf = [this](Value value) { return names->of(value); };
    toNode.freshName = [this] { return names->fresh(); };
    toNode.calleeOf = [this](onnx::CallOp call) { return calleeOf(call); };
    toNode.note = [this](const ::onnx::NodeProto &node, ArrayRef<Type> inputs,
                         ArrayRef<Type> outputs) {
      int64_t &version = versions[node.domain()];
      version = std::max(version, oldestVersion(node, inputs, outputs));
    };
    toNode.constantsAsInitializers = true;
    toNode.writeTensor = [this](ElementsAttr value, Operation *,
                                TensorProto &tensor) {
      writeTensor(value, tensor);
    };
  }

  void run(::onnx::ModelProto &proto) {
    contrib::registerSchemas();
    external = options.externalData && !path.empty();
    tooLarge = totalData() > kMaxInline;
    if (tooLarge && path.empty())
      fail("the model's tensors exceed 2 GiB; they can only be written "
           "beside a file");
    external |= tooLarge;
    writeHeader(proto);
    writeGraph(*proto.mutable_graph());
    writeFunctions(proto);
    writeVersions(proto);
    if (data)
      data->close();
    if (data && data->has_error()) {
      data->clear_error();
      fail("cannot write '" + dataPath() + "'");
    }
  }

private:
  static func::FuncOp findMain(ModuleOp module) {
    if (auto main = module.lookupSymbol<func::FuncOp>("main_graph"))
      if (!main.isExternal())
        return main;
    fail("the module has no function @main_graph to export");
  }

  uint64_t totalData() {
    uint64_t total = 0;
    module.walk([&](Operation *op) {
      if (auto value = dyn_cast_or_null<ElementsAttr>(op->getAttr("value")))
        total += dataSize(value);
    });
    return total;
  }

  //===--------------------------------------------------------------------===//
  // Header
  //===--------------------------------------------------------------------===//

  static std::string text(Operation *op, StringRef name) {
    auto value = op->getAttrOfType<StringAttr>(name);
    return value ? value.getValue().str() : "";
  }

  void writeHeader(::onnx::ModelProto &proto) {
    std::string producer = text(module, "onnx.producer_name");
    proto.set_producer_name(producer.empty() ? "sardonyx" : producer);
    if (auto version = text(module, "onnx.producer_version"); !version.empty())
      proto.set_producer_version(version);
    if (auto domain = text(module, "onnx.domain"); !domain.empty())
      proto.set_domain(domain);
    if (auto doc = text(module, "onnx.doc"); !doc.empty())
      proto.set_doc_string(doc);
    if (auto version = module->getAttrOfType<IntegerAttr>("onnx.model_version"))
      proto.set_model_version(version.getInt());
    if (auto metadata = module->getAttrOfType<DictionaryAttr>("onnx.metadata"))
      for (NamedAttribute entry : metadata) {
        auto value = dyn_cast<StringAttr>(entry.getValue());
        if (!value)
          continue;
        auto *property = proto.add_metadata_props();
        property->set_key(entry.getName().str());
        property->set_value(value.getValue().str());
      }
    std::string name = text(module, "onnx.graph_name");
    proto.mutable_graph()->set_name(name.empty() ? "main_graph" : name);
  }

  /// The oldest versions in which every operator has its latest form.
  void writeVersions(::onnx::ModelProto &proto) {
    versions.try_emplace("", 17);
    for (const std::string &domain : options.domains)
      versions.try_emplace(domain, 1);
    int64_t irVersion = 8;
    auto addType = [&](Type type) {
      if (auto tensor = dyn_cast<TensorType>(type))
        irVersion = std::max(irVersion, irVersionOfType(importer::dataTypeOf(
                                            tensor.getElementType())));
    };
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        addType(type);
      if (auto custom = dyn_cast<onnx::CustomOp>(op)) {
        int64_t &version = versions[custom.getDomain().str()];
        version = std::max(version, int64_t(custom.getOpVersion()));
      }
    });
    for (Type type : func.getArgumentTypes())
      addType(type);
    // Functions import what the model does: their operators have one form.
    auto import = [&](auto &proto) {
      for (const auto &[domain, version] : versions) {
        auto *import = proto.add_opset_import();
        import->set_domain(domain);
        import->set_version(version);
      }
    };
    import(proto);
    for (::onnx::FunctionProto &function : *proto.mutable_functions())
      import(function);
    proto.set_ir_version(std::max(irVersion, irVersionOf(versions[""])));
  }

  //===--------------------------------------------------------------------===//
  // Graph
  //===--------------------------------------------------------------------===//

  void writeGraph(::onnx::GraphProto &graph) {
    Block &block = func.getBody().front();
    if (!llvm::hasSingleElement(func.getBody()))
      fail("@main_graph must be a single block");
    toNode.graph(block, graph, /*identityOutputs=*/false);
    for (int i = 0; i < graph.input_size(); ++i)
      nameDims(func.getArgAttrDict(i), *graph.mutable_input(i));
    Operation *terminator = block.getTerminator();
    for (int i = 0; i < graph.output_size(); ++i) {
      auto &output = *graph.mutable_output(i);
      nameDims(func.getResultAttrDict(i), output);
      const std::string &name = mainNames.result(i);
      if (output.name() == name)
        continue;
      // An input, a constant, or a value that is returned twice.
      toNode.identity(terminator->getOperand(i), name, graph);
      output.set_name(name);
    }
    declareValues(block, graph);
    nameNodesApart(graph);
  }

  template <typename Graph>
  static void collectNodeNames(const Graph &graph, llvm::StringSet<> &names) {
    for (const ::onnx::NodeProto &node : graph.node()) {
      names.insert(node.name());
      for (const ::onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          collectNodeNames(attribute.g(), names);
    }
  }

  /// What one node was taken apart into has its name; readers want each once.
  template <typename Graph>
  static void nameNodesApart(Graph &graph, llvm::StringSet<> &taken,
                             llvm::StringSet<> &seen) {
    for (::onnx::NodeProto &node : *graph.mutable_node()) {
      if (std::string name = node.name();
          !name.empty() && !seen.insert(name).second) {
        for (int number = 1; !taken.insert(name).second; ++number)
          name = node.name() + "_" + std::to_string(number);
        seen.insert(name);
        node.set_name(name);
      }
      for (::onnx::AttributeProto &attribute : *node.mutable_attribute())
        if (attribute.has_g())
          nameNodesApart(*attribute.mutable_g(), taken, seen);
    }
  }

  template <typename Graph> static void nameNodesApart(Graph &graph) {
    llvm::StringSet<> taken, seen;
    collectNodeNames(graph, taken);
    nameNodesApart(graph, taken, seen);
  }

  static void nameDims(DictionaryAttr attributes,
                       ::onnx::ValueInfoProto &value) {
    if (!attributes)
      return;
    if (auto dims = attributes.getAs<ArrayAttr>("onnx.dim_params"))
      importer::setDimNames(dims, *value.mutable_type());
    if (auto doc = attributes.getAs<StringAttr>("onnx.doc"))
      value.set_doc_string(doc.getValue().str());
  }

  /// Types of intermediate values, for readers that cannot infer them.
  void declareValues(Block &block, ::onnx::GraphProto &graph) {
    llvm::StringSet<> outputs;
    for (const auto &output : graph.output())
      outputs.insert(output.name());
    for (Operation &op : block.without_terminator()) {
      if (isa<onnx::ConstantOp>(op))
        continue;
      auto dims = op.getAttrOfType<ArrayAttr>("sdx.dims");
      for (OpResult result : op.getResults()) {
        unsigned i = result.getResultNumber();
        if (outputs.contains(names->of(result)))
          continue;
        ::onnx::ValueInfoProto info;
        toNode.declare(result, info);
        if (!info.has_type())
          continue;
        if (dims && i < dims.size())
          importer::setDimNames(dyn_cast<ArrayAttr>(dims[i]),
                                *info.mutable_type());
        *graph.add_value_info() = std::move(info);
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  /// The functions that are called from the graph; each is met here first by a
  /// call, and is written after its caller.
  std::pair<std::string, std::string> calleeOf(onnx::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || !llvm::hasSingleElement(callee.getBody()))
      fail("function '" + call.getCallee() + "' is not a single block");
    auto [it, isNew] = functions.try_emplace(callee);
    auto &[domain, name] = it->second;
    if (!isNew)
      return it->second;
    auto given = callee->getAttrOfType<StringAttr>("onnx.domain");
    domain = given ? given.getValue() : "sardonyx";
    // What sets instances apart is in the symbol.
    StringRef symbol = callee.getName();
    if (given && !given.empty() && symbol.consume_front(given.getValue()))
      symbol.consume_front(".");
    name = symbol;
    versions.try_emplace(domain, versionOf(domain));
    return it->second;
  }

  /// Of a domain that no schema tells of.
  int64_t versionOf(StringRef domain) {
    auto known = module->getAttrOfType<DictionaryAttr>("onnx.opset");
    auto version = known ? known.getAs<IntegerAttr>(domain) : IntegerAttr();
    return version ? version.getInt() : 1;
  }

  void writeFunctions(::onnx::ModelProto &proto) {
    // Writing one may meet more.
    for (size_t i = 0; i < functions.size(); ++i) {
      auto [op, id] = *(functions.begin() + i);
      auto func = cast<func::FuncOp>(op);
      Names own(func);
      names = &own;
      ::onnx::FunctionProto &function = *proto.add_functions();
      function.set_domain(id.first);
      function.set_name(id.second);
      SmallVector<std::string> results;
      for (unsigned i = 0; i < func.getNumResults(); ++i)
        results.push_back(own.result(i));
      toNode.function(func.getBody().front(), results, function);
      nameNodesApart(function);
      names = &mainNames;
    }
  }

  //===--------------------------------------------------------------------===//
  // Tensors
  //===--------------------------------------------------------------------===//

  std::string dataPath() const {
    if (options.externalFile.empty())
      return path.str() + ".data";
    SmallString<128> file(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(file, options.externalFile);
    return file.str().str();
  }

  void writeTensor(ElementsAttr value, TensorProto &tensor) {
    uint64_t size = dataSize(value);
    // Not every reader looks for files in attributes of functions' nodes.
    bool isInFunction = names != &mainNames && !tooLarge;
    if (!external || isInFunction || size < options.externalThreshold ||
        isa<DenseStringElementsAttr>(value))
      return bridge::writeWholeTensor(value, tensor);
    bridge::describeTensor(value, tensor);
    if (!data) {
      std::error_code error;
      makeWay(dataPath());
      data = std::make_unique<llvm::raw_fd_ostream>(dataPath(), error);
      if (error)
        fail("cannot write '" + dataPath() + "': " + error.message());
    }
    uint64_t offset = llvm::alignTo(data->tell(), kExternalAlignment);
    data->write_zeros(offset - data->tell());
    writeBytes(value);
    tensor.set_data_location(TensorProto::EXTERNAL);
    auto entry = [&](StringRef key, const std::string &text) {
      auto *property = tensor.add_external_data();
      property->set_key(key.str());
      property->set_value(text);
    };
    entry("location", llvm::sys::path::filename(dataPath()).str());
    entry("offset", std::to_string(offset));
    entry("length", std::to_string(data->tell() - offset));
  }

  /// Mapped weights go from file to file without a copy in memory.
  void writeBytes(ElementsAttr value) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(value);
    unsigned bits =
        importer::bitWidth(importer::dataTypeOf(value.getElementType()));
    if (resource && bits >= 8)
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob()) {
        data->write(blob->getData().data(), blob->getData().size());
        return;
      }
    *data << importer::rawData(value);
  }

  ModuleOp module;
  StringRef path;
  const ExportOptions &options;
  func::FuncOp func;
  Names mainNames;
  Names *names;
  SymbolTable symbols{module};
  /// Domains and names of the functions that are called.
  llvm::MapVector<Operation *, std::pair<std::string, std::string>> functions;
  bridge::OpToNode toNode;
  std::map<std::string, int64_t> versions;
  bool external = false, tooLarge = false;
  std::unique_ptr<llvm::raw_fd_ostream> data;
};

void serialize(const ::onnx::ModelProto &proto, std::string &bytes) {
  if (!proto.SerializeToString(&bytes))
    fail("protobuf cannot serialize the model; it may exceed 2 GiB");
}

} // namespace
} // namespace exporter

LogicalResult exportOnnxFile(ModuleOp module, llvm::StringRef path,
                             const ExportOptions &options) {
  return importer::reportErrors(module.getLoc(), [&] {
    ::onnx::ModelProto proto;
    exporter::ModelExport(module, path, options).run(proto);
    std::string bytes;
    exporter::serialize(proto, bytes);
    std::error_code error;
    exporter::makeWay(path);
    llvm::raw_fd_ostream file(path, error);
    if (!error) {
      file << bytes;
      file.close();
      error = file.error();
      file.clear_error();
    }
    if (error)
      importer::fail("cannot write '" + path + "': " + error.message());
  });
}

LogicalResult exportOnnxBytes(ModuleOp module, std::string &bytes) {
  return importer::reportErrors(module.getLoc(), [&] {
    ::onnx::ModelProto proto;
    exporter::ModelExport(module, "", {}).run(proto);
    exporter::serialize(proto, bytes);
  });
}

} // namespace sardonyx
