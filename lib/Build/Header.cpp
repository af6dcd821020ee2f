//===- Header.cpp - Interfaces of models in C and C++ ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Header.h"
#include "Identifiers.h"
#include "sardonyx/DimNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace sardonyx;

/// Values.h and Artifact.h, which each header holds.
static const char kInterface[] =
#include "Interface.inc"
    ;

namespace {

/// A value as an argument in C.
struct Parameter {
  const ValueInfo *info;
  /// An identifier.
  std::string name;
  /// Of an element; "sdx_value" for what is no tensor.
  std::string type;
  /// Each a number or "sizes->batch"; empty for a scalar.
  std::vector<std::string> dims;
  /// Whether `dims` says all sizes.
  bool isSized = true;

  bool isTensor() const { return info->items.empty(); }
  std::string describe() const;
  /// The number of elements, as an expression.
  std::string count() const;
};

/// What the headers say of a model.
class Interface {
public:
  Interface(const std::string &name, const Artifact &model);

  std::string c() const;
  std::string cpp() const;

private:
  std::string unique(llvm::StringRef wanted);
  Parameter parameter(const ValueInfo &info, bool isInput);
  bool hasSizes() const { return !sizes.empty(); }
  /// Whether the sizes of all outputs follow from those of the inputs.
  bool isPredictable() const {
    return llvm::all_of(outputs, [](const Parameter &p) {
      return p.isTensor() && p.isSized && p.type != "sdx_string";
    });
  }
  std::string comment() const;
  std::string declareSizes() const;
  std::string counts() const;
  std::string inputArguments(const char *separator) const;
  std::string fillInputs() const;
  std::string runAny() const;
  /// Whether kernels run on a GPU.
  bool hasDevice() const { return !model.images.empty(); }
  std::string openOnDevice() const;
  /// `onDevice`: all tensors lie there.
  std::string run(bool onDevice) const;

  const std::string name;
  const Artifact &model;
  llvm::StringSet<> taken;
  /// Open dimensions: identifiers, and what the model calls them.
  std::vector<std::pair<std::string, std::string>> sizes;
  std::vector<Parameter> inputs, outputs;
};

} // namespace

static const char *cTypeOf(ElementType type) {
  switch (type) {
  case ElementType::Float:
    return "float";
  case ElementType::Double:
    return "double";
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Int2:
    return "int8_t";
  case ElementType::Int16:
    return "int16_t";
  case ElementType::Int32:
    return "int32_t";
  case ElementType::Int64:
    return "int64_t";
  case ElementType::Uint16:
  case ElementType::Float16:
  case ElementType::Bfloat16:
    return "uint16_t";
  case ElementType::Uint32:
    return "uint32_t";
  case ElementType::Uint64:
    return "uint64_t";
  case ElementType::String:
    return "sdx_string";
  case ElementType::Complex64:
    return "sdx_complex64";
  case ElementType::Complex128:
    return "sdx_complex128";
  default:
    return "uint8_t";
  }
}

/// Text that may stand in a comment.
static std::string commentText(llvm::StringRef text) {
  std::string safe;
  for (char c : text)
    safe += c == '*' || c == '\\' || (c >= 0 && c < ' ') ? ' ' : c;
  return safe;
}

std::string Parameter::describe() const {
  std::string text = "'" + commentText(info->name) + "': ";
  if (!isTensor())
    return text + commentText(info->type);
  text += nameOf(info->elementType);
  return text +
         (info->hasRank ? " " + commentText(describeShape(info->dims)) : "");
}

std::string Parameter::count() const {
  std::string text = "(size_t)1";
  for (const std::string &dim : dims)
    text += " * (size_t)" + dim;
  return text;
}

/// An identifier that was not given before.
std::string Interface::unique(llvm::StringRef wanted) {
  std::string text = identifierFrom(wanted, "v_");
  // Names that begin with an underscore are the compiler's.
  if (text[0] == '_')
    text = "v" + text;
  if (isReservedWord(text))
    text += '_';
  std::string result = text;
  for (unsigned i = 2; !taken.insert(result).second; ++i)
    result = text + "_" + std::to_string(i);
  return result;
}

Parameter Interface::parameter(const ValueInfo &info, bool isInput) {
  Parameter p;
  p.info = &info;
  p.name = unique(info.name);
  p.type = p.isTensor() ? cTypeOf(info.elementType) : "sdx_value";
  p.isSized = p.isTensor() && info.hasRank;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    const Dim &dim = info.dims[i];
    if (dim.isStatic()) {
      p.dims.push_back(std::to_string(dim.size));
      continue;
    }
    auto known = llvm::find_if(sizes, [&](const auto &size) {
      return isNameOfSize(dim.symbol) && size.second == dim.symbol;
    });
    if (known == sizes.end()) {
      if (!isInput) {
        p.isSized = false;
        continue;
      }
      std::string wanted = isNameOfSize(dim.symbol)
                               ? dim.symbol
                               : p.name + "_" + std::to_string(i);
      sizes.push_back({unique(wanted), dim.symbol});
      known = std::prev(sizes.end());
    }
    p.dims.push_back("sizes->" + known->first);
  }
  return p;
}

Interface::Interface(const std::string &name, const Artifact &model)
    : name(name), model(model) {
  for (const char *own : {"model", "sizes", "error", "limits", "results",
                          "values", "memory", "shape", "result"})
    taken.insert(own);
  for (const ValueInfo &info : model.inputs)
    inputs.push_back(parameter(info, /*isInput=*/true));
  for (const ValueInfo &info : model.outputs)
    outputs.push_back(parameter(info, /*isInput=*/false));
}

std::string Interface::comment() const {
  const ModelMetadata &metadata = model.metadata;
  std::string text = "/* The model '" + commentText(metadata.graphName) + "'";
  if (!metadata.producerName.empty())
    text += " (" + commentText(metadata.producerName) + ")";
  text += ", built by Sardonyx; do not edit.\n";
  if (!metadata.description.empty())
    text += " *\n * " + commentText(metadata.description) + "\n";
  return text + " */\n";
}

std::string Interface::declareSizes() const {
  if (!hasSizes())
    return "";
  std::string text =
      "/** The sizes of dimensions that the model leaves open. */\n"
      "typedef struct {\n";
  for (const auto &[identifier, symbol] : sizes)
    text += "  int64_t " + identifier + ";" +
            (symbol.empty() ? "" : " /* '" + commentText(symbol) + "' */") +
            "\n";
  return text + "} " + name + "_sizes;\n\n";
}

std::string Interface::counts() const {
  std::string text;
  const std::string argument =
      hasSizes() ? "const " + name + "_sizes *sizes" : "void";
  for (const auto *list : {&inputs, &outputs})
    for (const Parameter &p : *list) {
      if (!p.isSized)
        continue;
      text += std::string("/** Elements of ") +
              (list == &inputs ? "input " : "output ") + p.describe() +
              ". */\n";
      text += "static inline size_t " + name + "_" + p.name + "_count(" +
              argument + ") {\n";
      if (hasSizes())
        text += "  (void)sizes;\n";
      text += "  return " + p.count() + ";\n}\n\n";
    }
  return text;
}

std::string Interface::inputArguments(const char *separator) const {
  std::string text = "sdx_session *model";
  if (hasSizes())
    text += std::string(separator) + "const " + name + "_sizes *sizes";
  for (const Parameter &p : inputs)
    text += std::string(separator) + "const " + p.type + " *" + p.name;
  return text;
}

std::string Interface::fillInputs() const {
  std::string text = "  sdx_value values[" +
                     std::to_string(std::max<size_t>(inputs.size(), 1)) +
                     "];\n";
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Parameter &p = inputs[i];
    if (p.isTensor() && !p.dims.empty()) {
      text += "  const int64_t shape_" + std::to_string(i) + "[] = {";
      for (size_t d = 0; d < p.dims.size(); ++d)
        text += (d ? ", " : "") + p.dims[d];
      text += "};\n";
    }
  }
  text += "  memset(values, 0, sizeof(values));\n";
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Parameter &p = inputs[i];
    const std::string value = "  values[" + std::to_string(i) + "]";
    if (!p.isTensor()) {
      text += value + " = *" + p.name + ";\n";
      continue;
    }
    text += value + ".tensor.type = " +
            std::to_string(static_cast<int>(p.info->elementType)) + "; /* " +
            nameOf(p.info->elementType) + " */\n";
    if (!p.dims.empty()) {
      text += value + ".tensor.rank = " + std::to_string(p.dims.size()) + ";\n";
      text += value + ".tensor.shape = shape_" + std::to_string(i) + ";\n";
    }
    text += value + ".tensor.data = (void *)" + p.name + ";\n";
  }
  return text;
}

std::string Interface::runAny() const {
  std::string text = "/** Runs the model and gives its results, which\n"
                     " * " +
                     name + "_free_results() frees; NULL if it fails.\n";
  for (const Parameter &p : inputs)
    text += " * @param " + p.name + " input " + p.describe() + "\n";
  for (size_t i = 0; i < outputs.size(); ++i)
    text +=
        " * Result " + std::to_string(i) + ": " + outputs[i].describe() + "\n";
  text += " */\nstatic inline sdx_results *" + name + "_run_any(" +
          inputArguments(", ") +
          ", const sdx_run_limits *limits, sdx_error **error) {\n";
  text += fillInputs();
  return text + "  return " + name + ".functions->run(model, values, " +
         std::to_string(inputs.size()) + ", NULL, limits, error);\n}\n\n";
}

std::string Interface::openOnDevice() const {
  if (!hasDevice())
    return "";
  return "/** The same for the GPU of a number, as CUDA's driver counts; " +
         name +
         "_open() takes 0.\n * @param memory_limit bytes of its memory that "
         "weights, runs and results may take;\n * 0: what there is\n * @param "
         "stream a CUstream that all work is given to, which outlives the "
         "model; NULL:\n * each run has its own\n */\n"
         "static inline sdx_session *" +
         name +
         "_open_on_device(int device, int64_t memory_limit, void *stream, "
         "sdx_error **error) {\n  sdx_open_options options;\n"
         "  memset(&options, 0, sizeof(options));\n"
         "  options.size = sizeof(options);\n  options.device = device;\n"
         "  options.device_memory_limit = memory_limit;\n"
         "  options.stream = stream;\n  return " +
         name + ".functions->open(&" + name + ", &options, error);\n}\n\n";
}

std::string Interface::run(bool onDevice) const {
  auto isString = [](const Parameter &p) { return p.type == "sdx_string"; };
  if (!isPredictable() ||
      (onDevice && (!hasDevice() || llvm::any_of(inputs, isString))))
    return "";
  std::string text =
      onDevice ? "/** " + name +
                     "_run() where all pointers are to memory of the model's "
                     "GPU. What the default stream\n * has to do comes "
                     "before.\n"
               : "/** Runs the model, into memory of the caller. 0 is "
                 "success.\n";
  for (const Parameter &p : inputs)
    text += " * @param " + p.name + " input " + p.describe() + "\n";
  for (const Parameter &p : outputs)
    text += " * @param " + p.name + " output " + p.describe() +
            ", memory for " + name + "_" + p.name + "_count() elements\n";
  text += " */\nstatic inline int " + name +
          (onDevice ? "_run_on_device(" : "_run(") + inputArguments(", ");
  for (const Parameter &p : outputs)
    text += ", " + p.type + " *" + p.name;
  text += ", sdx_error **error) {\n";
  text += "  sdx_tensor memory[" +
          std::to_string(std::max<size_t>(outputs.size(), 1)) + "];\n";
  if (onDevice)
    text += "  int input_devices[" +
            std::to_string(std::max<size_t>(inputs.size(), 1)) +
            "], output_devices[" +
            std::to_string(std::max<size_t>(outputs.size(), 1)) + "];\n";
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].dims.empty()) {
      text += "  const int64_t result_" + std::to_string(i) + "[] = {";
      for (size_t d = 0; d < outputs[i].dims.size(); ++d)
        text += (d ? ", " : "") + outputs[i].dims[d];
      text += "};\n";
    }
  text += "  sdx_results *results;\n";
  text += fillInputs();
  text += "  memset(memory, 0, sizeof(memory));\n";
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Parameter &p = outputs[i];
    const std::string entry = "  memory[" + std::to_string(i) + "]";
    text += entry +
            ".type = " + std::to_string(static_cast<int>(p.info->elementType)) +
            ";\n";
    if (!p.dims.empty()) {
      text += entry + ".rank = " + std::to_string(p.dims.size()) + ";\n";
      text += entry + ".shape = result_" + std::to_string(i) + ";\n";
    }
    text += entry + ".data = " + p.name + ";\n";
  }
  if (onDevice) {
    auto places = [&](const char *of, size_t count) {
      for (size_t i = 0; i < count; ++i)
        text += std::string("  ") + of + "[" + std::to_string(i) +
                "] = " + name + ".functions->device(model);\n";
    };
    places("input_devices", inputs.size());
    places("output_devices", outputs.size());
  }
  text += "  results = " + name +
          (onDevice ? ".functions->run_on_device(model, values, input_devices, "
                    : ".functions->run(model, values, ") +
          std::to_string(inputs.size()) + ", memory, " +
          (onDevice ? "output_devices, " : "") + "NULL, error);\n";
  return text + "  if (!results)\n    return 1;\n  " + name +
         ".functions->free_results(results);\n  return 0;\n}\n\n";
}

std::string Interface::c() const {
  std::string guard = "SARDONYX_MODEL_" + name + "_H";
  std::string text = comment() + "#ifndef " + guard + "\n#define " + guard +
                     "\n\n#include <stddef.h>\n#include <stdint.h>\n"
                     "#include <string.h>\n\n" +
                     kInterface +
                     "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += "/** The model; all functions below go through it. */\n"
          "extern const sdx_artifact " +
          name + ";\n\n" + declareSizes() + counts();
  text += "/** Makes the model ready to run, on as many threads as it was "
          "built for; NULL\n * if it fails. Any number of threads may run one "
          "at a time. */\n"
          "static inline sdx_session *" +
          name + "_open(sdx_error **error) {\n  return " + name +
          ".functions->open(&" + name + ", NULL, error);\n}\n\n";
  text += openOnDevice();
  text += "static inline void " + name + "_close(sdx_session *model) {\n  " +
          name + ".functions->close(model);\n}\n\n";
  text += run(/*onDevice=*/false) + run(/*onDevice=*/true) + runAny();
  text += "/** Result number `index` of a run. */\n"
          "static inline sdx_value " +
          name +
          "_result(const sdx_results *results, size_t index) {\n  return " +
          name + ".functions->result(results, index);\n}\n\n";
  text += "static inline void " + name +
          "_free_results(sdx_results *results) {\n  " + name +
          ".functions->free_results(results);\n}\n\n";
  text += "/** What the model file says of itself under a name "
          "(\"description\"). */\n"
          "static inline const char *" +
          name +
          "_metadata(const sdx_session *model, const char *key) {\n  return " +
          name + ".functions->metadata(model, key);\n}\n\n";
  text += "/** The sentence of an error. */\nstatic inline const char *" +
          name + "_error_message(const sdx_error *error) {\n  return " + name +
          ".functions->error_message(error);\n}\n\n";
  text += "static inline void " + name + "_free_error(sdx_error *error) {\n  " +
          name + ".functions->free_error(error);\n}\n\n";
  return text + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string Interface::cpp() const {
  std::string guard = "SARDONYX_MODEL_" + name + "_HPP";
  const std::string space = name + "_model";
  std::string text = comment() + "#ifndef " + guard + "\n#define " + guard +
                     "\n\n#include \"" + name +
                     ".h\"\n#include <stdexcept>\n#include <string>\n"
                     "#include <vector>\n\nnamespace " +
                     space + " {\n\n";
  if (hasSizes())
    text += "using Sizes = " + name + "_sizes;\n\n";
  text += "/// The model, ready to run; any number of threads may run one at a "
          "time.\n/// What fails throws std::runtime_error with a sentence.\n"
          "class Model {\npublic:\n"
          "  Model() {\n    sdx_error *error = nullptr;\n    model = " +
          name +
          "_open(&error);\n    if (!model)\n      fail(error);\n  }\n"
          "  ~Model() { " +
          name +
          "_close(model); }\n  Model(const Model &) = delete;\n"
          "  Model &operator=(const Model &) = delete;\n\n";
  if (isPredictable()) {
    text += "  struct Results {\n";
    for (const Parameter &p : outputs)
      text += "    std::vector<" + p.type + "> " + p.name + "; ///< " +
              p.describe() + "\n";
    text += "  };\n\n";
    for (const Parameter &p : inputs)
      text += "  /// `" + p.name + "`: input " + p.describe() + "\n";
    text += "  Results run(";
    std::string separator;
    if (hasSizes()) {
      text += "const Sizes &sizes";
      separator = ", ";
    }
    for (const Parameter &p : inputs) {
      text += separator + "const " + p.type + " *" + p.name;
      separator = ", ";
    }
    text += ") const {\n    Results made;\n    sdx_error *error = "
            "nullptr;\n";
    const std::string sizesArgument = hasSizes() ? "&sizes" : "";
    for (const Parameter &p : outputs)
      text += "    made." + p.name + ".resize(" + name + "_" + p.name +
              "_count(" + sizesArgument + "));\n";
    text += "    if (" + name + "_run(model";
    if (hasSizes())
      text += ", &sizes";
    for (const Parameter &p : inputs)
      text += ", " + p.name;
    for (const Parameter &p : outputs)
      text += ", made." + p.name + ".data()";
    text += ", &error))\n      fail(error);\n    return made;\n  }\n\n";
  }
  text += "  /// For the functions of " + name +
          ".h.\n  sdx_session *get() const { return model; }\n\n"
          "private:\n  [[noreturn]] static void fail(sdx_error *error) {\n"
          "    std::string text = " +
          name + "_error_message(error);\n    " + name +
          "_free_error(error);\n    throw std::runtime_error(text);\n  }\n\n"
          "  sdx_session *model;\n};\n\n} // namespace " +
          space + "\n\n#endif\n";
  return text;
}

std::string sardonyx::headerOf(const std::string &name,
                               const Artifact &description) {
  return Interface(name, description).c();
}

std::string sardonyx::cppHeaderOf(const std::string &name,
                                  const Artifact &description) {
  return Interface(name, description).cpp();
}
