//===- Importer.cpp - From an ONNX file to the onnx dialect ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Importer/Importer.h"

#include "dialects/ONNX/ONNX.h"
#include "lib/Contrib/Contrib.h"
#include "lib/Importer/DeclaredTypes.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/GraphBuilder.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Tensors.h"
#include "lib/Importer/Types.h"
#include "lib/Importer/Upgrade.h"
#include "lib/Importer/ValueTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace sardonyx {
namespace importer {
namespace {

class ModelImport {
public:
  ModelImport(Model &model, MLIRContext &context, const ImportOptions &options)
      : model(model), context(context), options(options), builder(&context),
        loc(FileLineColLoc::get(&context, model.name, 0, 0)) {}

  OwningOpRef<ModuleOp> run() {
    contrib::registerSchemas();
    parseModel(model);
    addFunctions(model.proto, options.functions);
    readHeader();
    if (options.initializers)
      setInitializers(model.proto, *options.initializers);
    setOutputs(model.proto, options.outputs);
    setDenotedDims(model.proto, options.denotedDims);
    setInputShapes(model.proto, options.inputShapes);
    inlineFunctions(model.proto, options.maxExpandedNodes,
                    /*allowCapture=*/false, &model.calls);
    // Gradient names values across functions, and moves nodes about.
    if (usesGradient(model.proto.graph()))
      dropCalls(model);
    declared.emplace(*model.proto.mutable_graph());
    // What is inferred once counts when it is inferred again.
    bool isInferred =
        upgradeNeedsTypes(model.proto) || usesGradient(model.proto.graph());
    if (isInferred)
      inferDeclaredTypes(model.proto);
    upgradeModel(model.proto);
    expandGradients(model.proto, options.maxExpandedNodes);
    if (options.inferTypes)
      isInferred ? inferTypes(model.proto) : inferDeclaredTypes(model.proto);
    if (options.inputShapes.empty())
      checkQueries();
    warn();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    writeHeader(*module);
    buildMain(*module);
    return module;
  }

private:
  /// Tells which declarations are not taken, the first few of them.
  void warn() const {
    constexpr size_t kMax = 8;
    std::vector<std::string> sentences =
        declared->contradictions(model.proto.graph());
    for (const std::string &sentence : ArrayRef(sentences).take_front(kMax))
      emitWarning(loc) << llvm::json::fixUTF8(sentence);
    if (sentences.size() > kMax)
      emitWarning(loc) << "the declared shapes of " << sentences.size() - kMax
                       << " more values are ignored";
  }

  /// Refuses Attention that no query can ever ask: a model that is built so is
  /// broken. Queries whose number a run tells may be none.
  void checkQueries() const {
    const ::onnx::GraphProto &graph = model.proto.graph();
    ValueTypes types(graph);
    for (const ::onnx::NodeProto &node : graph.node()) {
      if (node.op_type() != "Attention" || !node.domain().empty() ||
          !node.input_size())
        continue;
      const ::onnx::TypeProto *type = types.find(node.input(0));
      if (!type || !type->tensor_type().has_shape())
        continue;
      const auto &shape = type->tensor_type().shape();
      int length = shape.dim_size() - 2;
      if ((length == 1 || length == 2) && shape.dim(length).has_dim_value() &&
          shape.dim(length).dim_value() == 0)
        failAt(node, "input 'Q' has no queries: its sequence has the length 0");
    }
  }

  /// What the file says of itself, before it is normalised.
  void readHeader() {
    irVersion = normalizeModel(model.proto);
    NamedAttrList versions;
    for (const auto &import : model.proto.opset_import())
      versions.set(import.domain().empty() ? "ai.onnx" : import.domain(),
                   builder.getI64IntegerAttr(import.version()));
    opsets = versions.getDictionary(&context);
  }

  void writeHeader(ModuleOp module) {
    const ::onnx::ModelProto &proto = model.proto;
    module->setAttr("onnx.ir_version", builder.getI64IntegerAttr(irVersion));
    module->setAttr("onnx.opset", opsets);
    auto setString = [&](StringRef name, const std::string &value) {
      if (!value.empty())
        module->setAttr(name,
                        builder.getStringAttr(llvm::json::fixUTF8(value)));
    };
    setString("onnx.producer_name", proto.producer_name());
    setString("onnx.producer_version", proto.producer_version());
    setString("onnx.domain", proto.domain());
    setString("onnx.doc", proto.doc_string());
    setString("onnx.graph_name", proto.graph().name());
    if (proto.has_model_version())
      module->setAttr("onnx.model_version",
                      builder.getI64IntegerAttr(proto.model_version()));
    NamedAttrList metadata;
    for (const auto &entry : proto.metadata_props())
      if (!entry.key().empty())
        metadata.set(llvm::json::fixUTF8(entry.key()),
                     builder.getStringAttr(llvm::json::fixUTF8(entry.value())));
    if (!metadata.empty())
      module->setAttr("onnx.metadata", metadata.getDictionary(&context));
  }

  /// Attributes of a function argument or result.
  void describeValue(const ::onnx::ValueInfoProto &value, Type type,
                     llvm::function_ref<void(StringRef, Attribute)> set) {
    // These names are the model's interface: callers have to write them.
    if (!llvm::json::isUTF8(value.name()))
      fail("graph input or output '" + value.name() +
           "' has a name that is not UTF-8");
    set("onnx.name", builder.getStringAttr(value.name()));
    auto ranked = dyn_cast<RankedTensorType>(type);
    if (ranked && !ranked.hasStaticShape())
      if (ArrayAttr names = dimNames(&context, value.type()))
        set("onnx.dim_params", names);
    if (!value.doc_string().empty())
      set("onnx.doc", builder.getStringAttr(value.doc_string()));
  }

  void buildMain(ModuleOp module) {
    const ::onnx::GraphProto &graph = model.proto.graph();
    SmallVector<Type> inputTypes;
    for (const auto &input : graph.input()) {
      Type type = convertType(&context, input.type());
      if (!type)
        fail("graph input '" + input.name() + "' has no type");
      inputTypes.push_back(type);
    }
    builder.setInsertionPointToEnd(module.getBody());
    auto func = func::FuncOp::create(builder, loc, "main_graph",
                                     builder.getFunctionType(inputTypes, {}));
    Block *block = func.addEntryBlock();
    builder.setInsertionPointToEnd(block);

    TensorReader tensors(&context, model, options.denseLimit);
    GraphBuilder nodes(builder, tensors, loc, options.keepNodeMetadata);
    nodes.setCalls(model.calls, module);
    for (const auto &import : model.proto.opset_import())
      nodes.setVersion(import.domain(), import.version());
    for (auto [input, argument] :
         llvm::zip_equal(graph.input(), block->getArguments())) {
      argument.setLoc(nodes.location(input.name()));
      nodes.define(input.name(), argument);
    }
    nodes.addGraph(graph);
    SmallVector<Value> results;
    for (const auto &output : graph.output())
      results.push_back(nodes.output(output.name()));
    func::ReturnOp::create(builder, loc, results);
    func.setType(builder.getFunctionType(inputTypes, TypeRange(results)));
    // Small tensors are copied, and do not say any more where they come from.
    std::vector<std::string> files = tensors.filesRead();
    if (!files.empty())
      module->setAttr("sdx.files",
                      builder.getStrArrayAttr(llvm::to_vector(llvm::map_range(
                          files, [](auto &path) { return StringRef(path); }))));

    for (int i = 0; i < graph.input_size(); ++i)
      describeValue(graph.input(i), inputTypes[i],
                    [&](StringRef name, Attribute value) {
                      func.setArgAttr(i, name, value);
                    });
    for (int i = 0; i < graph.output_size(); ++i) {
      Type type = results[i].getType(), shown = declared->shown(i, type);
      describeValue(graph.output(i), type,
                    [&](StringRef name, Attribute value) {
                      func.setResultAttr(i, name, value);
                    });
      if (shown != type)
        func.setResultAttr(i, "sdx.declared", TypeAttr::get(shown));
    }
  }

  Model &model;
  MLIRContext &context;
  const ImportOptions &options;
  OpBuilder builder;
  Location loc;
  std::optional<DeclaredTypes> declared;
  int64_t irVersion = 0;
  DictionaryAttr opsets;
};

/// The context holds what the module is made of, whatever the caller loaded.
void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerImporterDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<onnx::ONNXDialect, func::FuncDialect>();
}

OwningOpRef<ModuleOp> importModel(Location loc, MLIRContext &context,
                                  const ImportOptions &options,
                                  llvm::function_ref<void(Model &)> open) {
  OwningOpRef<ModuleOp> module;
  LogicalResult result = reportErrors(loc, [&] {
    Model model;
    open(model);
    module = ModelImport(model, context, options).run();
  });
  if (failed(result) || failed(verify(*module)))
    return {};
  return module;
}

} // namespace
} // namespace importer

void registerImporterDialects(DialectRegistry &registry) {
  registry.insert<onnx::ONNXDialect, func::FuncDialect>();
}

OwningOpRef<ModuleOp> importOnnxFile(llvm::StringRef path, MLIRContext &context,
                                     const ImportOptions &options) {
  importer::loadDialects(context);
  Location loc = FileLineColLoc::get(&context, path, 0, 0);
  return importer::importModel(
      loc, context, options, [&](importer::Model &model) {
        model.name = path.str();
        model.file = importer::MappedFile::open(path);
        model.bytes = model.file->bytes();
        std::string own = llvm::sys::path::parent_path(path).str();
        if (own.empty())
          own = ".";
        model.dataDir =
            options.externalDataDir.empty() ? own : options.externalDataDir;
        if (llvm::sys::fs::equivalent(model.dataDir, own))
          model.linkedDataDir = importer::realFolderOf(path);
      });
}

OwningOpRef<ModuleOp> importOnnxBytes(llvm::StringRef bytes,
                                      MLIRContext &context,
                                      const ImportOptions &options,
                                      llvm::StringRef name) {
  importer::loadDialects(context);
  Location loc = FileLineColLoc::get(&context, name, 0, 0);
  return importer::importModel(loc, context, options,
                               [&](importer::Model &model) {
                                 model.name = name.str();
                                 model.bytes = bytes;
                                 model.dataDir = options.externalDataDir;
                               });
}

} // namespace sardonyx
