//===- Tensors.cpp - Tensor data without copies ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/Tensors.h"
#include "dialects/ONNX/ONNX.h"
#include "lib/Importer/Error.h"
#include "lib/Importer/Types.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace mlir;
using Tensor = ::onnx::TensorProto;

namespace sardonyx::importer {

/// Sparse tensors are made dense only up to this size: a file of a few bytes
/// may ask for any.
constexpr int64_t kMaxDenseBytes = int64_t(1) << 28;

static uint64_t byteSize(int64_t count, unsigned bits) {
  // 2^63 elements of 128 bits do not fit; such a tensor is no file's.
  if (bits >= 8)
    return uint64_t(count) > (UINT64_MAX >> 8) ? UINT64_MAX
                                               : uint64_t(count) * (bits / 8);
  return uint64_t(count) / 8 * bits + (uint64_t(count) % 8 * bits + 7) / 8;
}

/// One element a byte, in the low bits; signed ones keep only their own bits,
/// as MLIR's dense attributes do.
static std::shared_ptr<std::string> unpack(StringRef packed, int64_t count,
                                           unsigned bits) {
  auto result = std::make_shared<std::string>(size_t(count), '\0');
  unsigned mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bit = uint64_t(i) * bits;
    unsigned word = uint8_t(packed[bit / 8]);
    if (bit % 8 + bits > 8)
      word |= unsigned(uint8_t(packed[bit / 8 + 1])) << 8;
    (*result)[i] = char((word >> (bit % 8)) & mask);
  }
  return result;
}

static std::string pack(ArrayRef<char> bytes, unsigned bits) {
  std::string result(byteSize(bytes.size(), bits), '\0');
  unsigned mask = (1u << bits) - 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint64_t bit = uint64_t(i) * bits;
    unsigned word = (unsigned(uint8_t(bytes[i])) & mask) << (bit % 8);
    result[bit / 8] |= char(word);
    if (word > 0xff)
      result[bit / 8 + 1] |= char(word >> 8);
  }
  return result;
}

template <typename T, typename Range>
static std::shared_ptr<std::string> narrow(const Range &values) {
  auto result = std::make_shared<std::string>(values.size() * sizeof(T), '\0');
  char *out = result->data();
  for (auto value : values) {
    T element = static_cast<T>(value);
    std::memcpy(out, &element, sizeof(T));
    out += sizeof(T);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Finding the bytes
//===----------------------------------------------------------------------===//

/// Bytes of a typed field (float_data, ...), sub-byte elements still packed.
TensorReader::Bytes TensorReader::typedData(const Tensor &tensor,
                                            StringRef name, uint64_t size) {
  std::shared_ptr<std::string> data;
  unsigned bits = bitWidth(tensor.data_type());
  switch (tensor.data_type()) {
  case Tensor::FLOAT:
  case Tensor::COMPLEX64:
    data = narrow<float>(tensor.float_data());
    break;
  case Tensor::DOUBLE:
  case Tensor::COMPLEX128:
    data = narrow<double>(tensor.double_data());
    break;
  case Tensor::INT64:
    data = narrow<int64_t>(tensor.int64_data());
    break;
  case Tensor::UINT64:
    data = narrow<uint64_t>(tensor.uint64_data());
    break;
  case Tensor::UINT32:
    data = narrow<uint32_t>(tensor.uint64_data());
    break;
  case Tensor::FLOAT6E2M3:
  case Tensor::FLOAT6E3M2: {
    auto bytes = narrow<uint8_t>(tensor.int32_data());
    data = std::make_shared<std::string>(pack(*bytes, bits));
    break;
  }
  default:
    data = bits == 32   ? narrow<int32_t>(tensor.int32_data())
           : bits == 16 ? narrow<uint16_t>(tensor.int32_data())
                        : narrow<uint8_t>(tensor.int32_data());
  }
  if (data->size() != size)
    fail("tensor '" + name + "' needs " + Twine(size) +
         " bytes of data for its shape and type, found " + Twine(data->size()));
  return {*data, data, "", 0};
}

static const std::string *externalEntry(const Tensor &tensor, StringRef key) {
  const std::string *result = nullptr;
  for (const auto &entry : tensor.external_data())
    if (entry.key() == key)
      result = &entry.value();
  return result;
}

static uint64_t externalNumber(const Tensor &tensor, StringRef key,
                               StringRef name, uint64_t otherwise) {
  const std::string *text = externalEntry(tensor, key);
  uint64_t value = otherwise;
  if (text && (StringRef(*text).getAsInteger(10, value) || value > INT64_MAX))
    fail("external data of tensor '" + name + "': " + key + " '" + *text +
         "' is not a byte count");
  return value;
}

std::vector<std::string> TensorReader::filesRead() const {
  std::vector<std::string> paths;
  for (const auto &file : files)
    paths.push_back(file.getKey().str());
  llvm::sort(paths);
  return paths;
}

TensorReader::Bytes TensorReader::external(const Tensor &tensor, StringRef name,
                                           uint64_t size) {
  const std::string *location = externalEntry(tensor, "location");
  if (!location)
    fail("external data of tensor '" + name + "' has no location");
  std::string path =
      resolveExternalData(model.dataDir, model.linkedDataDir, *location, name);
  std::shared_ptr<MappedFile> &file = files[path];
  if (!file)
    file = MappedFile::open(path);
  uint64_t fileSize = file->bytes().size();
  uint64_t offset = externalNumber(tensor, "offset", name, 0);
  if (offset > fileSize)
    fail("external data of tensor '" + name + "': offset " + Twine(offset) +
         " lies past the end of '" + *location + "' (" + Twine(fileSize) +
         " bytes)");
  uint64_t length =
      externalNumber(tensor, "length", name,
                     size <= fileSize - offset ? size : fileSize - offset);
  if (length > fileSize - offset)
    fail("external data of tensor '" + name + "': " + Twine(length) +
         " bytes at offset " + Twine(offset) + " reach past the end of '" +
         *location + "' (" + Twine(fileSize) + " bytes)");
  if (length != size)
    fail("tensor '" + name + "' needs " + Twine(size) +
         " bytes of data for its shape and type, found " + Twine(length) +
         " in '" + *location + "'");
  return {file->bytes().substr(offset, length), file, path, offset};
}

TensorReader::Bytes TensorReader::locate(const Tensor &tensor, StringRef name,
                                         uint64_t size) {
  if (tensor.has_segment())
    fail("tensor '" + name + "' is a segment, which is not supported");
  if (const std::string *cut = externalEntry(tensor, kCutKey)) {
    size_t index;
    if (StringRef(*cut).getAsInteger(10, index) || index >= model.cuts.size())
      fail("tensor '" + name + "' has an external_data key that is reserved");
    ByteRange range = model.cuts[index];
    if (range.length != size)
      fail("tensor '" + name + "' needs " + Twine(size) +
           " bytes of data for its shape and type, found " +
           Twine(range.length));
    return {model.bytes.substr(range.offset, range.length), model.file,
            model.file ? model.file->path().str() : "", range.offset};
  }
  if (tensor.data_location() == Tensor::EXTERNAL)
    return external(tensor, name, size);
  if (!tensor.has_raw_data())
    return typedData(tensor, name, size);
  if (tensor.raw_data().size() != size)
    fail("tensor '" + name + "' needs " + Twine(size) +
         " bytes of data for its shape and type, found " +
         Twine(tensor.raw_data().size()));
  auto copy = std::make_shared<std::string>(tensor.raw_data());
  return {*copy, copy, "", 0};
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

ElementsAttr TensorReader::strings(const Tensor &tensor, StringRef name,
                                   ShapedType type) {
  if (tensor.has_raw_data() || tensor.data_location() == Tensor::EXTERNAL)
    fail("tensor '" + name + "' of strings must have its data in string_data");
  if (tensor.string_data_size() != type.getNumElements())
    fail("tensor '" + name + "' needs " + Twine(type.getNumElements()) +
         " strings for its shape, found " + Twine(tensor.string_data_size()));
  SmallVector<StringRef> values(tensor.string_data().begin(),
                                tensor.string_data().end());
  return cast<ElementsAttr>(DenseStringElementsAttr::get(type, values));
}

/// Whether folders should see the values: small ones, and shapes, axes and the
/// like, which passes read.
static bool isSmall(ShapedType type, uint64_t size, uint64_t limit) {
  bool shapeLike = type.getRank() <= 1 && type.getElementType().isInteger(64);
  return size <= limit || (shapeLike && size <= 16 * limit);
}

static ElementsAttr denseAttribute(ShapedType type, StringRef data) {
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef<char>(data.data(), data.size()));
  SmallVector<bool> values;
  for (char byte : data)
    values.push_back(byte != 0);
  return DenseElementsAttr::get(type, values);
}

ElementsAttr TensorReader::attribute(ShapedType type, const Bytes &bytes,
                                     StringRef name) {
  const auto count = static_cast<uint64_t>(type.getNumElements());
  if (isSmall(type, std::max<uint64_t>(bytes.data.size(), count), denseLimit))
    return denseAttribute(type, bytes.data);
  if (!share)
    return resource(type, bytes, name);
  bool inFile = !bytes.path.empty();
  uint64_t key = inFile ? reinterpret_cast<uintptr_t>(bytes.data.data())
                        : llvm::xxh3_64bits(bytes.data);
  ElementsAttr &known = shared[{key, type}];
  if (known) {
    auto handle = cast<DenseResourceElementsAttr>(known).getRawHandle();
    ArrayRef<char> data = handle.getBlob()->getData();
    if (inFile ? data.data() == bytes.data.data()
               : StringRef(data.data(), data.size()) == bytes.data)
      return known;
  }
  return known = resource(type, bytes, name);
}

ElementsAttr TensorReader::resource(ShapedType type, const Bytes &bytes,
                                    StringRef name) {
  // Whatever alignment the address happens to have is what may be relied on.
  uintptr_t address = reinterpret_cast<uintptr_t>(bytes.data.data());
  size_t alignment = std::min<size_t>(64, address & (~address + 1));
  AsmResourceBlob blob(
      ArrayRef<char>(bytes.data.data(), bytes.data.size()), alignment,
      [owner = bytes.owner](void *, size_t, size_t) {},
      /*dataIsMutable=*/false);
  return cast<ElementsAttr>(
      Attribute(DenseResourceElementsAttr::get(type, name, std::move(blob))));
}

TensorValue TensorReader::read(const Tensor &tensor, StringRef name) {
  Type element = elementType(context, tensor.data_type());
  if (!element)
    fail("tensor '" + name + "' has the unknown data type " +
         Twine(tensor.data_type()));
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  for (int64_t dim : dims)
    if (dim < 0)
      fail("tensor '" + name + "' has the negative dimension " + Twine(dim));
  std::optional<int64_t> count = elementCount(dims);
  if (!count)
    fail("tensor '" + name + "' has more elements than 63 bits can count");
  auto type = RankedTensorType::get(dims, element);
  if (tensor.data_type() == Tensor::STRING)
    return {strings(tensor, name, type), {}};
  unsigned bits = bitWidth(tensor.data_type());
  uint64_t size = byteSize(*count, bits);
  if (size == UINT64_MAX)
    fail("tensor '" + name + "' has more bytes than 63 bits can count");
  Bytes bytes = locate(tensor, name, size);
  // Many numbers stay in the file, where they share bytes.
  const bool staysPacked =
      8 % bits == 0 && !isSmall(type, uint64_t(*count), denseLimit);
  if (bits < 8 && !staysPacked) {
    auto unpacked = unpack(bytes.data, *count, bits);
    return {attribute(type, {*unpacked, unpacked, "", 0}, name), {}};
  }
  DictionaryAttr source;
  if (!bytes.path.empty()) {
    Builder builder(context);
    source = builder.getDictionaryAttr(
        {builder.getNamedAttr("path", builder.getStringAttr(bytes.path)),
         builder.getNamedAttr("offset",
                              builder.getI64IntegerAttr(bytes.offset)),
         builder.getNamedAttr("length",
                              builder.getI64IntegerAttr(bytes.data.size()))});
  }
  ElementsAttr value = attribute(type, bytes, name);
  // A dense attribute is its own copy, no part of the file.
  if (!isa<DenseResourceElementsAttr>(value))
    source = {};
  return {value, source};
}

ElementsAttr TensorReader::readSparse(const ::onnx::SparseTensorProto &tensor,
                                      StringRef name) {
  SmallVector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> count = elementCount(dims);
  const Tensor &values = tensor.values();
  unsigned bits = bitWidth(values.data_type());
  if (!count || *count > kMaxDenseBytes / std::max<int64_t>(bits / 8, 1))
    fail("sparse tensor '" + name +
         "' is too large to be made dense, which is not supported");
  Type element = elementType(context, values.data_type());
  if (!element || bits < 8)
    fail("sparse tensor '" + name + "' has elements of type " +
         dataTypeName(values.data_type()) + ", which is not supported");
  if (values.dims_size() != 1 || values.dims(0) < 0)
    fail("the values of sparse tensor '" + name + "' must be one list");
  uint64_t nonZeros = values.dims(0);
  const Tensor &indices = tensor.indices();
  bool linear = indices.dims_size() == 1;
  uint64_t perValue = linear ? 1 : dims.size();
  if (indices.data_type() != Tensor::INT64 || indices.dims_size() < 1 ||
      indices.dims_size() > 2 || uint64_t(indices.dims(0)) != nonZeros ||
      (!linear && uint64_t(indices.dims(1)) != perValue))
    fail("the indices of sparse tensor '" + name +
         "' must be int64, one or one per dimension for each value");
  uint64_t width = bits / 8;
  Bytes data = locate(values, name, byteSize(nonZeros, bits));
  Bytes places = locate(indices, name, byteSize(nonZeros * perValue, 64));
  auto dense = std::make_shared<std::string>(*count * width, '\0');
  for (uint64_t i = 0; i < nonZeros; ++i) {
    uint64_t position = 0;
    for (uint64_t d = 0; d < perValue; ++d) {
      int64_t index;
      std::memcpy(&index, places.data.data() + (i * perValue + d) * 8, 8);
      int64_t extent = linear ? *count : dims[d];
      if (index < 0 || index >= extent)
        fail("index " + Twine(index) + " of sparse tensor '" + name +
             "' lies outside of its shape");
      position = position * extent + index;
    }
    std::memcpy(dense->data() + position * width, data.data.data() + i * width,
                width);
  }
  return attribute(RankedTensorType::get(dims, element), {*dense, dense, "", 0},
                   name);
}

/// Bytes of one element each, splats written out.
static std::string denseBytes(DenseElementsAttr dense) {
  std::string result;
  if (dense.getElementType().isInteger(1)) {
    for (bool value : dense.getValues<bool>())
      result += char(value);
    return result;
  }
  ArrayRef<char> raw = dense.getRawData();
  int64_t times = dense.isSplat() ? dense.getNumElements() : 1;
  result.reserve(raw.size() * times);
  for (int64_t i = 0; i < times; ++i)
    result.append(raw.data(), raw.size());
  return result;
}

std::string rawData(ElementsAttr value) {
  unsigned bits = bitWidth(dataTypeOf(value.getElementType()));
  std::string bytes;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      fail("the data of a dense_resource constant is missing");
    bytes.assign(blob->getData().data(), blob->getData().size());
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    bytes = denseBytes(dense);
  } else {
    fail("a constant has a value of a kind that ONNX cannot hold");
  }
  const bool isPacked =
      bits >= 8 || (isa<DenseResourceElementsAttr>(value) &&
                    bytes.size() == byteSize(value.getNumElements(), bits));
  return isPacked ? bytes
                  : pack(ArrayRef<char>(bytes.data(), bytes.size()), bits);
}

} // namespace sardonyx::importer
