//===- Json.cpp - What commands print with --json -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdio>

using namespace sardonyx;
namespace json = llvm::json;

struct JsonReport::Stream {
  std::string text;
  llvm::raw_string_ostream out{text};
  json::OStream json{out, /*IndentSize=*/2};
};

static json::Value number(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
}

JsonReport::JsonReport(const std::string &command)
    : stream(std::make_unique<Stream>()) {
  stream->json.objectBegin();
  add("command", command);
  add("version", std::string(SARDONYX_VERSION));
}

JsonReport::~JsonReport() {
  stream->json.objectEnd();
  stream->json.flush();
  stream->out << "\n";
  fwrite(stream->text.data(), 1, stream->text.size(), stdout);
}

void JsonReport::add(const char *key, const std::string &value) {
  stream->json.attribute(json::fixUTF8(key), json::fixUTF8(value));
}
void JsonReport::add(const char *key, int64_t value) {
  stream->json.attribute(json::fixUTF8(key), value);
}
void JsonReport::add(const char *key, double value) {
  stream->json.attribute(json::fixUTF8(key), number(value));
}
void JsonReport::add(const char *key, bool value) {
  stream->json.attribute(json::fixUTF8(key), value);
}
void JsonReport::addNull(const char *key) {
  stream->json.attribute(json::fixUTF8(key), nullptr);
}
void JsonReport::add(const char *key, const std::vector<std::string> &texts) {
  list(key, [&] {
    for (const std::string &text : texts)
      item(text);
  });
}
void JsonReport::add(const char *key, const std::vector<int64_t> &numbers) {
  list(key, [&] {
    for (int64_t value : numbers)
      item(value);
  });
}

void JsonReport::item(double value) { stream->json.value(number(value)); }
void JsonReport::item(int64_t value) { stream->json.value(value); }
void JsonReport::item(const std::string &value) {
  stream->json.value(json::fixUTF8(value));
}

void JsonReport::begin(const char *key, char kind) {
  stream->json.attributeBegin(json::fixUTF8(key));
  if (kind == '{')
    stream->json.objectBegin();
  else
    stream->json.arrayBegin();
}

void JsonReport::beginItem() { stream->json.objectBegin(); }

/// '{' and '[' end what has a key, '}' an item.
void JsonReport::end(char kind) {
  if (kind == '[')
    stream->json.arrayEnd();
  else
    stream->json.objectEnd();
  if (kind != '}')
    stream->json.attributeEnd();
}

void JsonReport::add(const char *key, const std::vector<ValueInfo> &values) {
  list(key, [&] {
    for (const ValueInfo &value : values)
      object([&] {
        add("name", value.name);
        add("type", value.type);
        if (!value.hasRank)
          return addNull("shape");
        // A size, a name, or null for what is open and has none.
        list("shape", [&] {
          for (const Dim &dim : value.dims)
            if (dim.isStatic())
              item(dim.size);
            else if (!dim.symbol.empty())
              item(dim.symbol);
            else
              stream->json.value(nullptr);
        });
      });
  });
}

void JsonReport::addFeeds(const Runner &runner,
                          const std::vector<Feed> &feeds) {
  list("inputs", [&] {
    for (size_t i = 0; i < feeds.size(); ++i)
      object([&] {
        const ValueInfo &info = runner.inputs()[i];
        add("name", info.name);
        add("type", info.type);
        if (feeds[i].kind == ValueKind::Tensor)
          add("shape", feeds[i].shape);
        else
          addNull("shape");
      });
  });
}
