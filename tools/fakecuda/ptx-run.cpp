//===- ptx-run.cpp - Runs a kernel from a file ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// ptx-run FILE KERNEL GRID BLOCK SHARED ARGUMENT...
//
// GRID and BLOCK are sizes such as 4,1,1; SHARED is the number of bytes of
// dynamic shared memory. An argument is one of
//   data=FILE    a buffer with the bytes of the file, written back afterwards
//   u32=N u64=N f32=X
//   tensor=FILE,TYPE,SWIZZLE,COLUMNS,ROWS,BOXCOLUMNS,BOXROWS
//                a tensor map of two dimensions over such a buffer; TYPE and
//                SWIZZLE are the numbers of CUtensorMapDataType and
//                CUtensorMapSwizzle
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

using namespace sardonyx::fakecuda;

namespace {

struct Buffer {
  std::string file;
  uint64_t address;
  size_t bytes;
};

} // namespace

static int fail(const std::string &what) {
  fprintf(stderr, "error: %s\n", what.c_str());
  return 1;
}

static bool readFile(const std::string &name, std::string &bytes) {
  std::ifstream file(name, std::ios::binary);
  if (!file)
    return false;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

static std::vector<std::string> splitAtCommas(const std::string &text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

static std::array<uint32_t, 3> parseSizes(const std::string &text) {
  std::array<uint32_t, 3> sizes = {1, 1, 1};
  size_t i = 0;
  for (const std::string &part : splitAtCommas(text))
    if (i < 3)
      sizes[i++] = uint32_t(strtoul(part.c_str(), nullptr, 0));
  return sizes;
}

static bool makeBuffer(Memory &memory, const std::string &file,
                       std::vector<Buffer> &buffers) {
  std::string bytes;
  if (!readFile(file, bytes))
    return false;
  uint64_t address = memory.allocate(bytes.size());
  if (!address)
    return false;
  memcpy(reinterpret_cast<void *>(address), bytes.data(), bytes.size());
  buffers.push_back({file, address, bytes.size()});
  return true;
}

static bool makeTensorMap(Memory &memory, const std::string &text,
                          std::vector<Buffer> &buffers, TensorMap &map) {
  std::vector<std::string> parts = splitAtCommas(text);
  if (parts.size() != 7 || !makeBuffer(memory, parts[0], buffers))
    return false;
  auto number = [&](size_t i) {
    return uint32_t(strtoul(parts[i].c_str(), nullptr, 0));
  };
  map.type = uint8_t(number(1));
  map.rank = 2;
  map.swizzle = uint8_t(number(2));
  map.address = buffers.back().address;
  map.sizes = {number(3), number(4), 0, 0, 0};
  map.strides[0] = map.sizes[1] ? buffers.back().bytes / map.sizes[1] : 0;
  map.box = {uint16_t(number(5)), uint16_t(number(6)), 0, 0, 0};
  map.elementStrides = {1, 1, 0, 0, 0};
  return true;
}

// Appends the bytes of one argument.
static bool addArgument(Memory &memory, const std::string &text,
                        const Parameter &parameter,
                        std::vector<Buffer> &buffers, Launch &launch) {
  size_t equals = text.find('=');
  std::string kind = text.substr(0, equals);
  std::string value = equals == text.npos ? "" : text.substr(equals + 1);
  char bytes[sizeof(TensorMap)] = {};
  size_t size = 8;
  if (kind == "data") {
    if (!makeBuffer(memory, value, buffers))
      return false;
    memcpy(bytes, &buffers.back().address, 8);
  } else if (kind == "u32" || kind == "u64") {
    unsigned long long number = strtoull(value.c_str(), nullptr, 0);
    size = kind == "u32" ? 4 : 8;
    memcpy(bytes, &number, size);
  } else if (kind == "f32") {
    float number = strtof(value.c_str(), nullptr);
    size = 4;
    memcpy(bytes, &number, size);
  } else if (kind == "tensor") {
    TensorMap map;
    if (!makeTensorMap(memory, value, buffers, map))
      return false;
    size = sizeof map;
    memcpy(bytes, &map, size);
  } else {
    return false;
  }
  if (size != parameter.size)
    return false;
  memcpy(launch.parameters.data() + parameter.offset, bytes, size);
  return true;
}

int main(int count, char **arguments) {
  if (count < 6)
    return fail("usage: ptx-run FILE KERNEL GRID BLOCK SHARED ARGUMENT...");
  std::string ptx, error;
  if (!readFile(arguments[1], ptx))
    return fail(std::string(arguments[1]) + " can't be read");
  Memory memory;
  std::unique_ptr<Module> module = Module::parse(ptx, memory, error);
  if (!module)
    return fail(error);
  const Function *function = module->find(arguments[2]);
  if (!function)
    return fail(std::string("there is no kernel ") + arguments[2]);
  Launch how;
  how.grid = parseSizes(arguments[3]);
  how.block = parseSizes(arguments[4]);
  how.dynamicSharedBytes = strtoul(arguments[5], nullptr, 0);
  how.parameters.resize(function->parameterBytes);
  if (size_t(count - 6) != function->parameters.size())
    return fail("the kernel has " +
                std::to_string(function->parameters.size()) + " parameters");
  std::vector<Buffer> buffers;
  for (int i = 6; i < count; ++i)
    if (!addArgument(memory, arguments[i], function->parameters[size_t(i - 6)],
                     buffers, how))
      return fail(std::string("the argument ") + arguments[i] + " doesn't fit");
  error = launch(*function, how, memory);
  if (!error.empty())
    return fail(error);
  for (const Buffer &buffer : buffers)
    std::ofstream(buffer.file, std::ios::binary)
        .write(reinterpret_cast<const char *>(buffer.address),
               std::streamsize(buffer.bytes));
  return 0;
}
