//===- ZipFile.cpp - Zip archives, as numpy writes them -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ZipFile.h"
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <zlib.h>

namespace {

/// Little-endian numbers at offsets that are checked.
class Bytes {
public:
  explicit Bytes(std::string_view bytes) : bytes(bytes) {}
  template <typename T> T at(uint64_t offset) const {
    T value;
    std::string_view part = slice(offset, sizeof(T));
    memcpy(&value, part.data(), sizeof(T));
    return value;
  }
  std::string_view slice(uint64_t offset, uint64_t size) const {
    if (offset > bytes.size() || size > bytes.size() - offset)
      throw std::runtime_error("the archive is cut off");
    return bytes.substr(offset, size);
  }
  uint64_t size() const { return bytes.size(); }

private:
  std::string_view bytes;
};

struct Entry {
  uint64_t size, packedSize, offset;
  uint16_t method;
  std::string name;
};

constexpr uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50;
constexpr uint32_t kLocator64Mark = 0x07064b50;
constexpr uint32_t kCentralMark = 0x02014b50, kLocalMark = 0x04034b50;

} // namespace

/// Sizes above 4 GB stand in an extra field, in this order, if the plain field
/// is all ones.
static void readZip64(const Bytes &zip, uint64_t offset, uint64_t length,
                      Entry &entry) {
  for (uint64_t end = offset + length; offset + 4 <= end;) {
    uint16_t id = zip.at<uint16_t>(offset), size = zip.at<uint16_t>(offset + 2);
    offset += 4;
    if (id == 1) {
      uint64_t field = offset;
      for (uint64_t *value : {&entry.size, &entry.packedSize, &entry.offset})
        if (*value == UINT32_MAX) {
          *value = zip.at<uint64_t>(field);
          field += 8;
        }
    }
    offset += size;
  }
}

static std::string unpack(const Bytes &zip, const Entry &entry) {
  if (zip.at<uint32_t>(entry.offset) != kLocalMark)
    throw std::runtime_error("the archive is damaged");
  uint64_t begin = entry.offset + 30 + zip.at<uint16_t>(entry.offset + 26) +
                   zip.at<uint16_t>(entry.offset + 28);
  std::string_view packed = zip.slice(begin, entry.packedSize);
  if (entry.method == 0)
    return std::string(packed);
  if (entry.method != 8)
    throw std::runtime_error("'" + entry.name +
                             "' is packed by a method other than deflate");
  // Deflate makes nothing smaller than a thousandth: do not believe more.
  if (entry.size / 1100 > packed.size())
    throw std::runtime_error("the archive is damaged");
  std::string out(entry.size, 0);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw std::runtime_error("zlib cannot be set up");
  size_t consumed = 0, produced = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    // zlib counts in 32 bits.
    constexpr size_t kStep = size_t(1) << 30;
    stream.next_in = (Bytef *)packed.data() + consumed;
    stream.avail_in = std::min(kStep, packed.size() - consumed);
    stream.next_out = (Bytef *)out.data() + produced;
    stream.avail_out = std::min(kStep, out.size() - produced);
    size_t in = stream.avail_in, room = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    consumed += in - stream.avail_in;
    produced += room - stream.avail_out;
    if (status == Z_OK && in == stream.avail_in && room == stream.avail_out)
      break;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || produced != out.size())
    throw std::runtime_error("'" + entry.name + "' is damaged");
  return out;
}

std::map<std::string, std::string> readZip(std::string_view archive) {
  Bytes zip(archive);
  // The end record is followed by a comment of at most 65535 bytes.
  uint64_t end = 0;
  bool found = false;
  for (uint64_t back = 22; back <= zip.size() && back < 22 + 65536; ++back)
    if (zip.at<uint32_t>(zip.size() - back) == kEndMark) {
      end = zip.size() - back;
      found = true;
      break;
    }
  if (!found)
    throw std::runtime_error("it is no zip archive");
  uint64_t count = zip.at<uint16_t>(end + 10);
  uint64_t offset = zip.at<uint32_t>(end + 16);
  if (end >= 20 && zip.at<uint32_t>(end - 20) == kLocator64Mark) {
    uint64_t end64 = zip.at<uint64_t>(end - 12);
    if (zip.at<uint32_t>(end64) != kEnd64Mark)
      throw std::runtime_error("the archive is damaged");
    count = zip.at<uint64_t>(end64 + 32);
    offset = zip.at<uint64_t>(end64 + 48);
  }
  std::map<std::string, std::string> entries;
  for (uint64_t i = 0; i < count; ++i) {
    if (zip.at<uint32_t>(offset) != kCentralMark)
      throw std::runtime_error("the archive is damaged");
    Entry entry;
    entry.method = zip.at<uint16_t>(offset + 10);
    entry.packedSize = zip.at<uint32_t>(offset + 20);
    entry.size = zip.at<uint32_t>(offset + 24);
    uint16_t nameLength = zip.at<uint16_t>(offset + 28);
    uint16_t extraLength = zip.at<uint16_t>(offset + 30);
    uint16_t commentLength = zip.at<uint16_t>(offset + 32);
    entry.offset = zip.at<uint32_t>(offset + 42);
    entry.name = std::string(zip.slice(offset + 46, nameLength));
    readZip64(zip, offset + 46 + nameLength, extraLength, entry);
    entries[entry.name] = unpack(zip, entry);
    offset += 46 + nameLength + extraLength + commentLength;
  }
  return entries;
}
