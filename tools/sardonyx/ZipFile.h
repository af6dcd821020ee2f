//===- ZipFile.h - Zip archives, as numpy writes them -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_ZIPFILE_H
#define SARDONYX_TOOLS_SARDONYX_ZIPFILE_H

#include <map>
#include <string>
#include <string_view>

/// The entries of an archive, stored or deflated. Throws std::runtime_error for
/// what is damaged or made in another way.
std::map<std::string, std::string> readZip(std::string_view archive);

#endif // SARDONYX_TOOLS_SARDONYX_ZIPFILE_H
