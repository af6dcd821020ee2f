//===- Help.h - Help, manual and completions --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_HELP_H
#define SARDONYX_TOOLS_SARDONYX_HELP_H

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// Help of at most 80 columns.
class HelpFormatter : public CLI::FormatterBase {
public:
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// An option or argument as people write it.
struct OptionText {
  std::vector<std::string> names; // "-i", "--input"
  std::string value;              // "[NAME=]FILE"; empty for a flag
  std::string text, group;
  bool isPositional = false, isRequired = false;

  /// "-i, --input [NAME=]FILE".
  std::string usage() const;
};

/// Those that the help shows, groups in its order.
std::vector<OptionText> optionsOf(const CLI::App &app);
/// Those that the help shows.
std::vector<const CLI::App *> commandsOf(const CLI::App &program);
/// "sardonyx run MODEL [OPTIONS]".
std::string usageOf(const CLI::App &app);

/// A script for the shell "bash" or "zsh".
std::string completionFor(const std::string &shell, const CLI::App &program);

/// Writes sardonyx.1, a page sardonyx-COMMAND.1 for each command, and
/// CommandLine.md. Throws std::runtime_error.
int writeManual(const std::string &folder, const CLI::App &program);

#endif // SARDONYX_TOOLS_SARDONYX_HELP_H
