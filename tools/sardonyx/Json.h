//===- Json.h - What commands print with --json -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_JSON_H
#define SARDONYX_TOOLS_SARDONYX_JSON_H

#include "Commands.h"
#include <memory>
#include <string>
#include <vector>

/// An object of JSON on the standard output, complete when this goes. Texts
/// that are not UTF-8 are made so, and numbers that JSON lacks are null.
class JsonReport {
public:
  /// Begins it, with the command and the version.
  explicit JsonReport(const std::string &command);
  ~JsonReport();

  void add(const char *key, const std::string &value);
  void add(const char *key, int64_t value);
  void add(const char *key, double value);
  void add(const char *key, bool value);
  void addNull(const char *key);
  void add(const char *key, const std::vector<std::string> &texts);
  void add(const char *key, const std::vector<int64_t> &numbers);
  /// An object or a list under `key`, which `fill` fills.
  template <typename F> void nested(const char *key, F fill) {
    begin(key, '{');
    fill();
    end('{');
  }
  template <typename F> void list(const char *key, F fill) {
    begin(key, '[');
    fill();
    end('[');
  }
  /// An item of a list.
  template <typename F> void object(F fill) {
    beginItem();
    fill();
    end('}');
  }
  void item(double value);
  void item(int64_t value);
  void item(const std::string &value);

  /// A list of what goes into a model or comes out.
  void add(const char *key, const std::vector<sardonyx::ValueInfo> &values);
  /// The inputs that a command runs a model with.
  void addFeeds(const sardonyx::Runner &runner, const std::vector<Feed> &feeds);

private:
  void begin(const char *key, char kind);
  void beginItem();
  void end(char kind);

  struct Stream;
  std::unique_ptr<Stream> stream;
};

#endif // SARDONYX_TOOLS_SARDONYX_JSON_H
