//===- Overrides.cpp - What callers say in place of the file --------------===//

#include "lib/Importer/Error.h"
#include "lib/Importer/Model.h"
#include "lib/Importer/Types.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sardonyx::importer {

/// A tensor, or the one that says what is in a sequence or an optional; null in
/// other types.
static ::onnx::TypeProto::Tensor *tensorIn(::onnx::TypeProto &type) {
  if (type.has_optional_type())
    return tensorIn(*type.mutable_optional_type()->mutable_elem_type());
  if (type.has_sequence_type())
    return tensorIn(*type.mutable_sequence_type()->mutable_elem_type());
  return type.has_tensor_type() ? type.mutable_tensor_type() : nullptr;
}

void setInputShapes(::onnx::ModelProto &model,
                    const std::map<std::string, std::vector<int64_t>> &shapes) {
  for (const auto &[name, sizes] : shapes) {
    auto &inputs = *model.mutable_graph()->mutable_input();
    auto input = llvm::find_if(inputs, [&name = name](const auto &value) {
      return value.name() == name;
    });
    auto *tensor =
        input == inputs.end() ? nullptr : tensorIn(*input->mutable_type());
    if (!tensor)
      fail("a shape was given for '" + name +
           "', but no input of the graph is a tensor of that name");
    auto &shape = *tensor->mutable_shape();
    // An open dimension of the same place keeps its name.
    if (shape.dim_size() != static_cast<int>(sizes.size()))
      shape.clear_dim();
    while (shape.dim_size() < static_cast<int>(sizes.size()))
      shape.add_dim();
    for (auto [dim, size] : llvm::zip_equal(*shape.mutable_dim(), sizes))
      if (size >= 0)
        dim.set_dim_value(size);
      else if (dim.has_dim_value())
        dim.clear_dim_value();
  }
}

void setDenotedDims(::onnx::ModelProto &model,
                    const std::map<std::string, int64_t> &sizes) {
  if (sizes.empty())
    return;
  auto &graph = *model.mutable_graph();
  // A name stands for one size, wherever it is.
  StringMap<int64_t> named;
  for (auto &input : *graph.mutable_input()) {
    auto *tensor = tensorIn(*input.mutable_type());
    if (!tensor)
      continue;
    for (auto &dim : *tensor->mutable_shape()->mutable_dim()) {
      auto size = sizes.find(dim.denotation());
      if (dim.denotation().empty() || size == sizes.end() ||
          dim.has_dim_value())
        continue;
      if (!dim.dim_param().empty())
        named[dim.dim_param()] = size->second;
      dim.set_dim_value(size->second);
    }
  }
  for (auto *values : {graph.mutable_input(), graph.mutable_output(),
                       graph.mutable_value_info()})
    for (auto &value : *values)
      if (auto *tensor = tensorIn(*value.mutable_type()))
        for (auto &dim : *tensor->mutable_shape()->mutable_dim())
          if (auto size = named.find(dim.dim_param()); size != named.end())
            dim.set_dim_value(size->second);
}

static void setInitializer(::onnx::TensorProto &tensor,
                           const InitializerData &given) {
  const std::string &name = tensor.name();
  if (tensor.data_type() != given.type)
    fail("the value given for the initializer '" + name + "' has the type " +
         Twine(given.type) + " of onnx.TensorProto, but the model's has " +
         Twine(tensor.data_type()));
  if (!llvm::equal(tensor.dims(), given.shape))
    fail("the value given for the initializer '" + name +
         "' has another shape than the model's");
  unsigned bits = bitWidth(given.type);
  if (given.type == ::onnx::TensorProto::STRING || bits < 8 || bits % 8)
    fail("the initializer '" + name +
         "' cannot be given a value: its elements are strings or packed");
  std::optional<int64_t> count = elementCount(given.shape);
  if (!count)
    fail("the initializer '" + name + "' has too many elements");
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_double_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(given.data, *count * (bits / 8));
}

void setInitializers(::onnx::ModelProto &model,
                     const std::map<std::string, InitializerData> &values) {
  size_t found = 0;
  for (auto &tensor : *model.mutable_graph()->mutable_initializer())
    if (auto given = values.find(tensor.name()); given != values.end()) {
      setInitializer(tensor, given->second);
      ++found;
    }
  if (found == values.size())
    return;
  for (const auto &[name, value] : values)
    if (llvm::none_of(model.graph().initializer(), [&](const auto &tensor) {
          return tensor.name() == name;
        }))
      fail("a value was given for '" + Twine(name) +
           "', but the model has no initializer of that name");
}

} // namespace sardonyx::importer
