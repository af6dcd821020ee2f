//===- Program.cpp - The main function of built programs ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   model [--input NAME=FILE.npy]... [--dim NAME=SIZE]... [--output-dir FOLDER]
//         [--threads N] [--repeat N]
//
// Runs the model that the program holds, by the functions that any program has.
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/Artifact.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Model/Names.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/stat.h>
#include <time.h>
#include <vector>

using namespace sardonyx;

extern "C" const sdx_artifact sardonyx_artifact;
/// Start.S calls it.
extern "C" int sdx_program(int argc, char **argv);

namespace {

struct Array {
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Says on the side what was decided without being asked for.
struct MadeUp {
  std::vector<std::string> inputs, sizes;

  void tell() const {
    if (!inputs.empty())
      fprintf(stderr, "%s: made up of zeros: %s\n", sardonyx_artifact.name,
              listOf(inputs).c_str());
    if (!sizes.empty())
      fprintf(stderr, "%s: sizes chosen to be 1 (see --dim): %s\n",
              sardonyx_artifact.name, listOf(sizes).c_str());
  }
};

struct Arguments {
  std::map<std::string, std::string> inputs;
  std::map<std::string, int64_t> dims;
  std::string outputDir;
  uint64_t threads = 0;
  long repeat = 1;
};

} // namespace

[[noreturn]] static void fail(const std::string &text) {
  fprintf(stderr, "%s: %s\n", sardonyx_artifact.name, text.c_str());
  exit(1);
}

/// numpy's name of a type of as many bytes, for files.
static std::string numpyName(ElementType type) {
  switch (type) {
  case ElementType::Float:
    return "<f4";
  case ElementType::Double:
    return "<f8";
  case ElementType::Float16:
    return "<f2";
  case ElementType::Int8:
    return "|i1";
  case ElementType::Int16:
    return "<i2";
  case ElementType::Int32:
    return "<i4";
  case ElementType::Int64:
    return "<i8";
  case ElementType::Bool:
    return "|b1";
  case ElementType::Complex64:
    return "<c8";
  case ElementType::Complex128:
    return "<c16";
  case ElementType::Uint16:
  case ElementType::Bfloat16:
    return "<u2";
  case ElementType::Uint32:
    return "<u4";
  case ElementType::Uint64:
    return "<u8";
  default:
    return "|u1";
  }
}

//===----------------------------------------------------------------------===//
// Files of numpy
//===----------------------------------------------------------------------===//

static std::string readFile(const std::string &path) {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file)
    fail("cannot read '" + path + "': " + strerror(errno));
  std::string bytes;
  char block[1 << 16];
  while (size_t count = fread(block, 1, sizeof(block), file))
    bytes.append(block, count);
  fclose(file);
  return bytes;
}

/// The text behind a key of a .npy file's header.
static std::string valueOf(const std::string &header, const std::string &key) {
  size_t at = header.find("'" + key + "':");
  return at == std::string::npos ? "" : header.substr(at + key.size() + 3);
}

static Array readNpy(const std::string &path, const ValueInfo &info) {
  const std::string file = readFile(path);
  auto refuse = [&](const std::string &why) { fail("'" + path + "' " + why); };
  if (file.size() < 12 || memcmp(file.data(), "\x93NUMPY", 6) != 0)
    refuse("is no .npy file");
  const bool isFirst = file[6] == 1;
  uint32_t length = 0;
  memcpy(&length, file.data() + 8, isFirst ? 2 : 4);
  const size_t start = (isFirst ? 10 : 12) + size_t(length);
  if (start > file.size())
    refuse("is cut off");
  const std::string header = file.substr(0, start);
  const std::string type = valueOf(header, "descr");
  if (type.find("'" + numpyName(info.elementType) + "'") == std::string::npos)
    refuse("does not hold elements of " +
           std::string(nameOf(info.elementType)) + " (" +
           numpyName(info.elementType) + ")");
  if (valueOf(header, "fortran_order").find("True") < 4)
    refuse("is in Fortran's order");
  Array array;
  int64_t bytes = byteSizeOf(info.elementType);
  std::string shape = valueOf(header, "shape");
  shape = shape.substr(0, shape.find(')'));
  for (size_t i = 0; i < shape.size(); ++i)
    if (isdigit(static_cast<unsigned char>(shape[i]))) {
      char *end;
      array.shape.push_back(strtoll(&shape[i], &end, 10));
      if (__builtin_mul_overflow(bytes, array.shape.back(), &bytes))
        refuse("has an impossible shape");
      i = end - shape.data();
    }
  if (file.size() - start != static_cast<uint64_t>(bytes))
    refuse("is cut off");
  array.bytes = file.substr(start);
  return array;
}

static void writeNpy(const std::string &path, const sdx_tensor &tensor) {
  auto type = static_cast<ElementType>(tensor.type);
  std::string header =
      "{'descr': '" + numpyName(type) + "', 'fortran_order': False, 'shape': (";
  int64_t bytes = byteSizeOf(type);
  for (size_t i = 0; i < tensor.rank; ++i) {
    header += std::to_string(tensor.shape[i]) + ", ";
    bytes *= tensor.shape[i];
  }
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  // Beside its place, so that nobody sees half of it.
  const std::string written = path + ".part";
  FILE *file = fopen(written.c_str(), "wb");
  bool ok = file && fwrite("\x93NUMPY\x01\x00", 1, 8, file) == 8 &&
            fwrite(&length, 2, 1, file) == 1 &&
            fwrite(header.data(), 1, length, file) == length &&
            (bytes == 0 || fwrite(tensor.data, bytes, 1, file) == 1);
  if (file)
    ok &= fclose(file) == 0;
  ok = ok && rename(written.c_str(), path.c_str()) == 0;
  if (ok)
    return;
  const int reason = errno;
  if (file)
    (void)remove(written.c_str());
  fail("cannot write '" + path + "': " + strerror(reason));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static int usage(FILE *to) {
  fprintf(to,
          "Runs the model '%s'.\n\n"
          "  --input NAME=FILE.npy   an input; those that are not given are "
          "zeros\n"
          "  --dim NAME=SIZE         the size of an open dimension of those "
          "(default 1)\n"
          "  --output-dir FOLDER     write each output to FOLDER/NAME.npy\n"
          "  --threads N             threads to use\n"
          "  --repeat N              run N times and tell how long a run "
          "takes\n",
          sardonyx_artifact.name);
  return to == stdout ? 0 : 2;
}

/// A positive number, or the end of the program.
static int64_t numberOf(const std::string &text, const std::string &option) {
  char *end;
  errno = 0;
  long long number = strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || number < 0)
    fail(option + " takes a number, got '" + text + "'");
  return number;
}

static bool parse(int argc, char **argv, Arguments &arguments) {
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i], value;
    if (option == "--help" || option == "-h")
      exit(usage(stdout));
    if (++i == argc)
      return false;
    value = argv[i];
    size_t equals = value.find('=');
    std::string name = value.substr(0, equals);
    std::string rest =
        equals == std::string::npos ? "" : value.substr(equals + 1);
    if (option == "--input" && equals != std::string::npos) {
      if (!arguments.inputs.try_emplace(name, rest).second)
        fail("input '" + name + "' is given twice");
    } else if (option == "--dim" && equals != std::string::npos)
      arguments.dims[name] = numberOf(rest, option);
    else if (option == "--output-dir")
      arguments.outputDir = value;
    else if (option == "--threads")
      arguments.threads = numberOf(value, option);
    else if (option == "--repeat")
      arguments.repeat = std::max<long>(1, numberOf(value, option));
    else
      return false;
  }
  return true;
}

static Array inputFor(const ValueInfo &info, const Arguments &arguments,
                      MadeUp &madeUp) {
  if (!info.items.empty() || info.elementType == ElementType::String)
    fail("input '" + info.name + "' has the type " + info.type +
         ", which files cannot give; use a library in the place of a program");
  if (auto it = arguments.inputs.find(info.name); it != arguments.inputs.end())
    return readNpy(it->second, info);
  Array array;
  int64_t bytes = byteSizeOf(info.elementType);
  for (size_t d = 0; d < info.dims.size(); ++d) {
    const Dim &dim = info.dims[d];
    const int64_t *given = sizeGivenFor(info, d, arguments.dims);
    array.shape.push_back(dim.isStatic() ? dim.size : given ? *given : 1);
    if (!dim.isStatic() && !given)
      if (const std::string name = nameOfOpenDim(info, d);
          std::find(madeUp.sizes.begin(), madeUp.sizes.end(), name) ==
          madeUp.sizes.end())
        madeUp.sizes.push_back(name);
    if (__builtin_mul_overflow(bytes, array.shape.back(), &bytes) ||
        bytes > int64_t(1) << 40)
      fail("input '" + info.name + "' would be too large");
  }
  array.bytes.assign(bytes, '\0');
  madeUp.inputs.push_back(info.name + " " + nameOf(info.elementType) + " " +
                          describeShape(array.shape));
  return array;
}

/// Ends the program where a name is none of the model's.
static void checkNames(const Arguments &arguments,
                       const std::vector<ValueInfo> &inputs) {
  auto check = [](const std::string &kind, const std::string &name,
                  const std::vector<std::string> &known) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(unknownName(kind, name, known));
  };
  for (const auto &[name, path] : arguments.inputs)
    check("input", name, namesOf(inputs));
  for (const auto &[name, size] : arguments.dims)
    check("open dimension", name, openDimsOf(inputs));
}

/// What a value begins with.
static void print(const std::string &name, const sdx_value &value) {
  if (value.kind != SDX_TENSOR) {
    printf("%s: %zu items\n", name.c_str(), value.count);
    return;
  }
  const sdx_tensor &tensor = value.tensor;
  auto type = static_cast<ElementType>(tensor.type);
  int64_t count = 1;
  for (size_t i = 0; i < tensor.rank; ++i)
    count *= tensor.shape[i];
  printf("%s: %s %s", name.c_str(), nameOf(type),
         describeShape(
             std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank))
             .c_str());
  for (int64_t i = 0; i < std::min<int64_t>(count, 8); ++i)
    switch (type) {
    case ElementType::Float:
      printf(" %g", static_cast<const float *>(tensor.data)[i]);
      break;
    case ElementType::Double:
      printf(" %g", static_cast<const double *>(tensor.data)[i]);
      break;
    case ElementType::Int64:
      printf(" %lld", static_cast<long long>(
                          static_cast<const int64_t *>(tensor.data)[i]));
      break;
    case ElementType::Int32:
      printf(" %d", static_cast<const int32_t *>(tensor.data)[i]);
      break;
    case ElementType::String: {
      const sdx_string &text = static_cast<const sdx_string *>(tensor.data)[i];
      printf(" '%.*s'", static_cast<int>(text.size), text.data);
      break;
    }
    default:
      i = count;
    }
  printf(count > 8 ? " ...\n" : "\n");
}

/// A name that is a file's: outputs may be called "a/b:0".
static std::string fileNameOf(std::string name) {
  for (char &c : name)
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-')
      c = '_';
  return (name.empty() || name[0] == '.' ? "_" : "") + name + ".npy";
}

static bool isSameFile(const std::string &x, const std::string &y) {
  struct stat first, second;
  return stat(x.c_str(), &first) == 0 && stat(y.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Writes the tensors of numbers, each to a file of its own.
static void writeOutputs(const Arguments &arguments,
                         const std::vector<ValueInfo> &outputs,
                         const sdx_functions &functions,
                         const sdx_results *results) {
  (void)mkdir(arguments.outputDir.c_str(), 0777);
  std::map<std::string, sdx_value> files;
  for (size_t i = 0; i < functions.result_count(results); ++i) {
    sdx_value value = functions.result(results, i);
    if (value.kind != SDX_TENSOR ||
        value.tensor.type == static_cast<int32_t>(ElementType::String))
      continue;
    const std::string path =
        arguments.outputDir + "/" + fileNameOf(outputs[i].name);
    if (!files.try_emplace(path, value).second)
      fail("two outputs would be written to '" + path + "'");
    for (const auto &[name, input] : arguments.inputs)
      if (isSameFile(path, input))
        fail("'" + path + "' is not written: it is the input '" + name + "'");
  }
  for (const auto &[path, value] : files)
    writeNpy(path, value.tensor);
}

static double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int sdx_program(int argc, char **argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments))
    return usage(stderr);
  const sdx_functions &functions = *sardonyx_artifact.functions;
  sdx_open_options open = {sizeof(open), arguments.threads, 0, nullptr};
  sdx_error *error = nullptr;
  sdx_session *model = functions.open(&sardonyx_artifact, &open, &error);
  if (!model)
    fail(functions.error_message(error));
  size_t size = 0;
  const void *bytes = functions.description(model, &size);
  auto description =
      unpack({static_cast<const char *>(bytes), size}, "ahead of time");
  if (!description)
    fail(description.error().message());
  checkNames(arguments, description->inputs);
  std::vector<Array> arrays;
  MadeUp madeUp;
  for (const ValueInfo &info : description->inputs)
    arrays.push_back(inputFor(info, arguments, madeUp));
  madeUp.tell();
  std::vector<sdx_value> inputs(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i)
    inputs[i].tensor = {
        static_cast<int32_t>(description->inputs[i].elementType),
        arrays[i].shape.size(), arrays[i].shape.data(), arrays[i].bytes.data()};
  sdx_results *results = nullptr;
  double best = 0;
  for (long i = 0; i < arguments.repeat; ++i) {
    if (results)
      functions.free_results(results);
    double start = now();
    results = functions.run(model, inputs.data(), inputs.size(), nullptr,
                            nullptr, &error);
    if (!results)
      fail(functions.error_message(error));
    double seconds = now() - start;
    best = i ? std::min(best, seconds) : seconds;
  }
  for (size_t i = 0; i < functions.result_count(results); ++i)
    print(description->outputs[i].name, functions.result(results, i));
  if (!arguments.outputDir.empty())
    writeOutputs(arguments, description->outputs, functions, results);
  if (arguments.repeat > 1)
    printf("%.3f ms a run, the best of %ld\n", best * 1e3, arguments.repeat);
  functions.free_results(results);
  functions.close(model);
  if (fflush(stdout) != 0 || ferror(stdout))
    fail(std::string("cannot write to the standard output: ") +
         strerror(errno ? errno : EIO));
  return 0;
}
