//===- Register.cpp - Schemas for libonnx's registry ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect's tables know the schemas, the generated rows the bodies.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"
#include "lib/Contrib/Contrib.h"

#include "dialects/ONNX/ONNXSchema.h"

#include "llvm/ADT/DenseMap.h"

#include <onnx/shape_inference/implementation.h>

namespace sardonyx::contrib {

using ::onnx::AttributeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;

#define CONTRIB_BUILDER(builder) void builder(Body &);
#define CONTRIB_INFER(infer) void infer(::onnx::InferenceContext &);
#include "dialects/ONNX/ONNXContrib.inc"

namespace {

/// An operator is a text or a builder of nodes, or has a lowering and `infer`.
struct Row {
  llvm::StringLiteral domain, op;
  const char *text;
  void (*builder)(Body &);
  void (*infer)(::onnx::InferenceContext &);

  bool hasBody() const { return text || builder; }
};

constexpr Row rows[] = {
#define CONTRIB_OP(domain, op, text, builder, infer)                           \
  {domain, op, text, builder, infer},
#include "dialects/ONNX/ONNXContrib.inc"
};

constexpr int kBodyOpset =
#define CONTRIB_OPSET(version) version
#include "dialects/ONNX/ONNXContrib.inc"
    ;

constexpr const char *kDomain = "com.microsoft";

/// ONNX's names of the types that a parameter allows; all are tensors.
std::vector<std::string> typeNames(const onnx::TypeSet &types) {
  std::vector<std::string> names;
  for (int i = 1; i < 32; ++i)
    if (types.tensor >> i & 1)
      names.push_back("tensor(" +
                      llvm::StringRef(TensorProto::DataType_Name(i)).lower() +
                      ")");
  return names;
}

OpSchema::FormalParameterOption optionOf(const onnx::ParamInfo &param) {
  switch (param.option) {
  case onnx::ParamOption::Single:
    return OpSchema::Single;
  case onnx::ParamOption::Optional:
    return OpSchema::Optional;
  case onnx::ParamOption::Variadic:
    return OpSchema::Variadic;
  }
  llvm_unreachable("all cases are above");
}

void addAttribute(OpSchema &schema, const onnx::AttrInfo &info) {
  std::string name = info.name.str();
  auto add = [&](AttributeProto::AttributeType type, const auto &otherwise) {
    if (info.hasDefault)
      schema.Attr(name, "", type, otherwise);
    else
      schema.Attr(name, "", type, info.required);
  };
  switch (info.kind) {
  case onnx::AttrKind::Int:
    return add(AttributeProto::INT, info.defaultInt);
  case onnx::AttrKind::Float:
    return add(AttributeProto::FLOAT, info.defaultFloat);
  case onnx::AttrKind::String:
    return add(AttributeProto::STRING, info.defaultString.str());
  case onnx::AttrKind::Ints:
    schema.Attr(name, "", AttributeProto::INTS, info.required);
    return;
  case onnx::AttrKind::Floats:
    schema.Attr(name, "", AttributeProto::FLOATS, info.required);
    return;
  case onnx::AttrKind::Strings:
    schema.Attr(name, "", AttributeProto::STRINGS, info.required);
    return;
  default:
    llvm_unreachable("contrib/schema.py makes no others");
  }
}

bool build(const Row &row, const ::onnx::FunctionBodyBuildContext &context,
           const OpSchema &schema, ::onnx::FunctionProto &function) {
  function.set_name(schema.Name());
  function.set_domain(schema.domain());
  auto *import = function.add_opset_import();
  import->set_domain("");
  import->set_version(kBodyOpset);
  Body body(context, schema, function);
  if (row.text)
    body.addText(row.text);
  else
    row.builder(body);
  return true;
}

OpSchema makeSchema(const Row &row) {
  const onnx::OpSchema &info = *onnx::lookupSchema(row.domain, row.op);
  OpSchema schema;
  schema.SetName(row.op.str()).SetDomain(row.domain.str());
  schema.SetLocation(__FILE__, __LINE__).SinceVersion(info.sinceVersion);
  auto typeOf = [&](const onnx::ParamInfo &param) {
    const onnx::TypeSet &types = info.types[param.typeIndex];
    return types.name.empty() ? typeNames(types).front() : types.name.str();
  };
  int position = 0;
  for (const onnx::ParamInfo &param : info.inputs)
    schema.Input(position++, param.name.str(), "", typeOf(param),
                 optionOf(param), param.homogeneous);
  position = 0;
  for (const onnx::ParamInfo &param : info.outputs)
    schema.Output(position++, param.name.str(), "", typeOf(param),
                  optionOf(param), param.homogeneous);
  for (const onnx::TypeSet &types : info.types)
    if (!types.name.empty())
      schema.TypeConstraint(types.name.str(), typeNames(types), "");
  for (const onnx::AttrInfo &attribute : info.attributes)
    addAttribute(schema, attribute);
  for (const onnx::RegionInfo &graph : info.regions)
    schema.Attr(graph.name.str(), "", AttributeProto::GRAPH, graph.required);
  if (!row.hasBody())
    return schema;
  // libonnx writes the version that a body is asked for into its import of the
  // operator's own domain.
  schema.SetContextDependentFunctionBodyBuilder(
      [&row](const auto &context, const OpSchema &schema, auto &function) {
        return build(row, context, schema, function);
      },
      row.domain.empty() ? kBodyOpset : info.sinceVersion);
  return schema;
}

/// What a body may know while types are inferred.
struct BuildContext : ::onnx::FunctionBodyBuildContext {
  explicit BuildContext(::onnx::InferenceContext &inference)
      : inference(inference) {}
  const AttributeProto *getAttribute(const std::string &name) const override {
    return inference.getAttribute(name);
  }
  bool hasInput(int i) const override {
    return i >= 0 && inference.hasInput(i);
  }
  bool hasOutput(int i) const override {
    return i >= 0 && inference.hasOutput(i);
  }
  const ::onnx::TypeProto *getInputType(int i) const override {
    return hasInput(i) ? inference.getInputType(i) : nullptr;
  }
  ::onnx::InferenceContext &inference;
};

} // namespace

void registerSchemas() {
  static const bool done = [] {
    ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance()
        .AddDomainToVersion(kDomain, 1, 1);
    for (const Row &row : rows)
      ::onnx::RegisterSchema(makeSchema(row));
    return true;
  }();
  (void)done;
}

static const Row *find(const OpSchema &schema) {
  const Row *it = llvm::find_if(rows, [&](const Row &row) {
    return row.op == schema.Name() && row.domain == schema.domain();
  });
  return it == std::end(rows) ? nullptr : it;
}

bool isContrib(const OpSchema &schema) { return find(schema); }

void inferTypes(const OpSchema &schema, ::onnx::InferenceContext &context,
                const ::onnx::ISchemaRegistry &registry) {
  if (auto *infer = find(schema)->infer)
    return infer(context);
  try {
    ::onnx::FunctionProto function;
    schema.BuildContextDependentFunction(
        BuildContext(context), function,
        schema.context_dependent_function_opset_versions().back());
    ::onnx::ShapeInferenceOptions options(false, 0, /*data_prop_val=*/true);
    ::onnx::shape_inference::SymbolTableImpl symbols;
    ::onnx::shape_inference::DataValueMap values;
    ::onnx::shape_inference::InferShapeForFunctionNode(
        function, &registry, context, options, {}, &symbols, &values);
  } catch (const std::exception &) {
    // Whoever expands the body hears of it.
  }
}

} // namespace sardonyx::contrib
