//===- WireCut.cpp - A model without its weights' bytes -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Importer/WireCut.h"
#include "lib/Importer/Error.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace sardonyx::importer {
namespace {

/// The messages of onnx.proto on the way to a TensorProto.
enum class Message {
  Opaque,
  Model,
  Training,
  Function,
  Graph,
  Node,
  Attribute,
  Sparse,
  Tensor
};

/// One row per message-typed field that may hold a tensor.
struct FieldRow {
  Message parent;
  uint64_t number;
  Message child;
};

constexpr FieldRow kFields[] = {
    {Message::Model, 7, Message::Graph},
    {Message::Model, 20, Message::Training},
    {Message::Model, 25, Message::Function},
    {Message::Training, 1, Message::Graph},
    {Message::Training, 2, Message::Graph},
    {Message::Function, 7, Message::Node},
    {Message::Function, 11, Message::Attribute},
    {Message::Graph, 1, Message::Node},
    {Message::Graph, 5, Message::Tensor},
    {Message::Graph, 15, Message::Sparse},
    {Message::Node, 5, Message::Attribute},
    {Message::Attribute, 5, Message::Tensor},
    {Message::Attribute, 6, Message::Graph},
    {Message::Attribute, 10, Message::Tensor},
    {Message::Attribute, 11, Message::Graph},
    {Message::Attribute, 22, Message::Sparse},
    {Message::Attribute, 23, Message::Sparse},
    {Message::Sparse, 1, Message::Tensor},
    {Message::Sparse, 2, Message::Tensor},
};

constexpr uint64_t kRawData = 9;
/// Smaller data becomes a dense attribute, which is a copy in any case.
constexpr uint64_t kReference = 64;
constexpr char kExternalDataTag = (13 << 3) | 2;
/// Protobuf's own limit on nested messages.
constexpr unsigned kMaxDepth = 100;

class Cutter {
public:
  Cutter(StringRef model, uint64_t keep, std::vector<ByteRange> &cuts)
      : model(model), keep(keep), cuts(cuts) {}

  void message(Message kind, uint64_t begin, uint64_t end, unsigned depth) {
    if (depth > kMaxDepth)
      fail("the model nests more than " + Twine(kMaxDepth) +
           " messages deep, which protobuf does not allow");
    uint64_t pos = begin;
    while (pos < end)
      pos = field(kind, pos, end, depth);
  }

  std::string result;

private:
  uint64_t field(Message kind, uint64_t start, uint64_t end, unsigned depth) {
    uint64_t pos = start;
    uint64_t tag = varint(pos, end);
    switch (tag & 7) {
    case 0:
      varint(pos, end);
      break;
    case 1:
      pos = skip(pos, 8, end);
      break;
    case 5:
      pos = skip(pos, 4, end);
      break;
    case 2:
      return lengthDelimited(kind, tag >> 3, start, pos, end, depth);
    default:
      fail("not an ONNX model: byte " + Twine(start) +
           " starts no protobuf field");
    }
    copy(start, pos);
    return pos;
  }

  uint64_t lengthDelimited(Message kind, uint64_t number, uint64_t start,
                           uint64_t pos, uint64_t end, unsigned depth) {
    uint64_t tagEnd = pos;
    uint64_t length = varint(pos, end);
    uint64_t next = skip(pos, length, end);
    if (kind == Message::Tensor && number == kRawData && length > kReference) {
      reference(cuts.size());
      cuts.push_back({pos, length});
      if (length > keep)
        return next;
    }
    Message child = childOf(kind, number);
    if (child == Message::Opaque) {
      copy(start, next);
      return next;
    }
    copy(start, tagEnd);
    size_t hole = result.size();
    result.append(5, '\0');
    message(child, pos, next, depth + 1);
    patchLength(hole, result.size() - hole - 5);
    return next;
  }

  /// An external_data entry that names the range.
  void reference(size_t index) {
    std::string value = std::to_string(index);
    std::string entry;
    entry += '\x0a';
    entry += static_cast<char>(kCutKey.size());
    entry += kCutKey;
    entry += '\x12';
    entry += static_cast<char>(value.size());
    entry += value;
    result += kExternalDataTag;
    result += static_cast<char>(entry.size());
    result += entry;
  }

  /// Lengths are written as five-byte varints, so that they can be filled in
  /// when the message is complete.
  void patchLength(size_t hole, uint64_t length) {
    if (length > INT32_MAX)
      fail("the model is larger than 2 GiB even without its raw tensor data");
    for (unsigned i = 0; i < 5; ++i) {
      char bits = static_cast<char>((length >> (7 * i)) & 0x7f);
      result[hole + i] = i < 4 ? static_cast<char>(bits | 0x80) : bits;
    }
  }

  void copy(uint64_t begin, uint64_t end) {
    result.append(model.data() + begin, end - begin);
  }

  uint64_t varint(uint64_t &pos, uint64_t end) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (pos >= end)
        truncated(pos);
      uint8_t byte = static_cast<uint8_t>(model[pos++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    fail("not an ONNX model: a number at byte " + Twine(pos) +
         " is longer than ten bytes");
  }

  uint64_t skip(uint64_t pos, uint64_t length, uint64_t end) {
    if (length > end - pos)
      truncated(pos);
    return pos + length;
  }

  [[noreturn]] void truncated(uint64_t pos) {
    fail("the model is truncated or damaged: a field at byte " + Twine(pos) +
         " reaches past the end of its message");
  }

  static Message childOf(Message kind, uint64_t number) {
    for (const FieldRow &row : kFields)
      if (row.parent == kind && row.number == number)
        return row.child;
    return Message::Opaque;
  }

  StringRef model;
  uint64_t keep;
  std::vector<ByteRange> &cuts;
};

} // namespace

std::string cutRawData(StringRef model, uint64_t keep,
                       std::vector<ByteRange> &cuts) {
  Cutter cutter(model, keep, cuts);
  cutter.message(Message::Model, 0, model.size(), 0);
  return std::move(cutter.result);
}

} // namespace sardonyx::importer
