//===- ArrayFile.cpp - numpy's .npy and .npz files ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArrayFile.h"
#include "ZipFile.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

using namespace sardonyx;

std::string readWholeFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read '" + path + "': " + strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

namespace {
struct Code {
  const char *text;
  ElementType type;
};
} // namespace

static constexpr Code kCodes[] = {
    {"f4", ElementType::Float},     {"f8", ElementType::Double},
    {"f2", ElementType::Float16},   {"i1", ElementType::Int8},
    {"i2", ElementType::Int16},     {"i4", ElementType::Int32},
    {"i8", ElementType::Int64},     {"u1", ElementType::Uint8},
    {"u2", ElementType::Uint16},    {"u4", ElementType::Uint32},
    {"u8", ElementType::Uint64},    {"b1", ElementType::Bool},
    {"c8", ElementType::Complex64}, {"c16", ElementType::Complex128},
    {"V1", ElementType::Uint8},     {"V2", ElementType::Uint16},
};

/// The text after `key` in the header's Python dict.
static std::string_view valueOf(std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at == std::string_view::npos)
    throw std::runtime_error("the array's header is damaged");
  at = header.find(':', at);
  if (at == std::string_view::npos)
    throw std::runtime_error("the array's header is damaged");
  header.remove_prefix(at + 1);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

static std::vector<int64_t> parseShape(std::string_view text) {
  std::vector<int64_t> shape;
  size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == std::string_view::npos)
    throw std::runtime_error("the array's header is damaged");
  std::string inside(text.substr(1, close - 1));
  for (const char *at = inside.c_str(); *at;) {
    char *end;
    long long size = strtoll(at, &end, 10);
    if (end == at || size < 0)
      throw std::runtime_error("the array's header is damaged");
    shape.push_back(size);
    at = end + strspn(end, ", ");
  }
  return shape;
}

/// From column-major to row-major.
static std::string transpose(const std::string &bytes, size_t size,
                             const std::vector<int64_t> &shape) {
  std::string out(bytes.size(), 0);
  std::vector<int64_t> index(shape.size()), stride(shape.size());
  int64_t step = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    stride[d] = step;
    step *= shape[d];
  }
  for (int64_t i = 0; i < step; ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      from += index[d] * stride[d];
    memcpy(&out[i * size], &bytes[from * size], size);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
  return out;
}

Array parseNpy(std::string_view file) {
  if (file.size() < 12 || file.substr(0, 6) != "\x93NUMPY")
    throw std::runtime_error("it is no .npy file");
  size_t start = 10, length;
  if (file[6] == 1) {
    uint16_t size;
    memcpy(&size, file.data() + 8, 2);
    length = size;
  } else {
    uint32_t size;
    memcpy(&size, file.data() + 8, 4);
    length = size;
    start = 12;
  }
  if (length > file.size() - start)
    throw std::runtime_error("the file is cut off");
  std::string_view header = file.substr(start, length);
  std::string_view descr = valueOf(header, "'descr'");
  std::string code(descr.substr(0, descr.find_first_of(",}")));
  code.erase(std::remove_if(code.begin(), code.end(),
                            [](char c) { return c == '\'' || c == ' '; }),
             code.end());
  if (code.size() < 3 || code[0] == '>')
    throw std::runtime_error("arrays of dtype " + code + " are not supported");
  Array array;
  for (const Code &row : kCodes)
    if (code.substr(1) == row.text)
      array.type = row.type;
  if (array.type == ElementType::Undefined)
    throw std::runtime_error("arrays of dtype " + code + " are not supported");
  array.shape = parseShape(valueOf(header, "'shape'"));
  int64_t bytes = byteSizeOf(array.type);
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw std::runtime_error("the array's header is damaged");
  std::string_view data = file.substr(start + length);
  if (data.size() < static_cast<uint64_t>(bytes))
    throw std::runtime_error("the file is cut off");
  array.bytes = std::string(data.substr(0, bytes));
  if (valueOf(header, "'fortran_order'").substr(0, 4) == "True")
    array.bytes = transpose(array.bytes, byteSizeOf(array.type), array.shape);
  return array;
}

template <typename F>
static auto naming(const std::string &path, F read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::runtime_error &error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

Array readNpy(const std::string &path) {
  std::string file = readWholeFile(path);
  return naming(path, [&] { return parseNpy(file); });
}

std::map<std::string, Array> readNpz(const std::string &path) {
  std::string file = readWholeFile(path);
  return naming(path, [&] {
    std::map<std::string, Array> arrays;
    for (const auto &[name, bytes] : readZip(file)) {
      std::string stem = name;
      if (stem.size() > 4 && stem.substr(stem.size() - 4) == ".npy")
        stem.resize(stem.size() - 4);
      arrays[stem] = parseNpy(bytes);
    }
    return arrays;
  });
}

static void writeArray(const std::string &path, const std::string &shown,
                       const std::string &descr,
                       const std::vector<int64_t> &shape, const char *data,
                       size_t bytes) {
  std::string text =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    text += std::to_string(size) + ",";
  text += "), }";
  // The data begins at a multiple of 64.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  uint16_t length = static_cast<uint16_t>(text.size());
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char *>(&length), 2);
  file << text;
  file.write(data, bytes);
  file.close();
  if (!file)
    throw std::runtime_error("cannot write '" + shown +
                             "': " + strerror(errno ? errno : EIO));
}

/// Strings as their bytes, filled with zeros to the longest.
static void writeStrings(const std::string &path, const std::string &shown,
                         const std::vector<int64_t> &shape,
                         const StringSpan *strings) {
  size_t count = 1, width = 1;
  for (int64_t size : shape)
    count *= size;
  for (size_t i = 0; i < count; ++i)
    width = std::max(width, strings[i].size);
  std::string bytes(count * width, '\0');
  for (size_t i = 0; i < count; ++i)
    std::copy_n(strings[i].data, strings[i].size, &bytes[i * width]);
  writeArray(path, shown, "|S" + std::to_string(width), shape, bytes.data(),
             bytes.size());
}

void writeNpy(const std::string &path, const std::string &shown,
              ElementType type, const std::vector<int64_t> &shape,
              const void *data, size_t bytes) {
  if (type == ElementType::String)
    return writeStrings(path, shown, shape,
                        static_cast<const StringSpan *>(data));
  const char *code = byteSizeOf(type) == 2 ? "u2" : "u1";
  for (const Code &row : kCodes)
    if (row.type == type) {
      code = row.text;
      break;
    }
  writeArray(path, shown,
             (byteSizeOf(type) == 1 ? '|' : '<') + std::string(code), shape,
             static_cast<const char *>(data), bytes);
}
