//===- CommandLine.h - The commands and their options -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_COMMANDLINE_H
#define SARDONYX_TOOLS_SARDONYX_COMMANDLINE_H

#include "Commands.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

/// The command line: one table, of which the help, the pages of the manual, the
/// completions and the reference are made.
class CommandLine {
public:
  CommandLine();
  CLI::App &program() { return app; }
  /// What the command that was given does; only after it was parsed.
  int execute() const;

private:
  using Work = std::function<int()>;
  CLI::App *add(const std::string &name, const std::string &summary,
                const std::string &example, Work work);
  void addRun();
  void addBench();
  void addProfile();
  void addBuild();
  void addCompile();
  void addPlan();
  void addInspect();
  void addPythonCommands();
  void addCache();
  void addCompletion();
  void addManual();

  CLI::App app;
  std::vector<std::pair<CLI::App *, Work>> commands;
  RunCommand runOptions;
  BenchCommand benchOptions;
  ProfileCommand profileOptions;
  BuildCommand buildOptions;
  CompileCommand compileOptions;
  PlanCommand planOptions;
  InspectCommand inspectOptions;
  CacheCommand cacheOptions;
  std::string shell, manualFolder;
};

#endif // SARDONYX_TOOLS_SARDONYX_COMMANDLINE_H
