//===- Manual.cpp - Pages of the manual, and the reference ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Help.h"
#include <stdexcept>
#include <sys/stat.h>

/// Text of roff: dashes that can be copied, and no line that is a request.
static std::string roff(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '-' || c == '\\')
      result += '\\';
    result += c;
  }
  if (!result.empty() && (result[0] == '.' || result[0] == '\''))
    result.insert(0, "\\&");
  return result;
}

static std::string heading(const std::string &name) {
  return ".TH " + name + " 1 \"\" \"sardonyx " SARDONYX_VERSION "\"\n";
}

static std::string optionLines(const CLI::App &app) {
  std::string text, group;
  for (const OptionText &option : optionsOf(app)) {
    if (option.group != group)
      text += ".SS " + roff(option.group) + "\n";
    group = option.group;
    text += ".TP\n.B " + roff(option.usage()) + "\n" + roff(option.text) + "\n";
  }
  return text;
}

static std::string pageOf(const CLI::App &app) {
  const bool isProgram = !app.get_parent();
  const std::string name =
      isProgram ? app.get_name() : "sardonyx-" + app.get_name();
  std::string text = heading(name) + ".SH NAME\n" + roff(name) + " \\- " +
                     roff(app.get_description()) + "\n.SH SYNOPSIS\n.B " +
                     roff(usageOf(app)) + "\n";
  if (isProgram) {
    text += ".SH COMMANDS\n";
    for (const CLI::App *command : commandsOf(app))
      text += ".TP\n.BR sardonyx\\-" + command->get_name() + " (1)\n" +
              roff(command->get_description()) + "\n";
  }
  const std::string options = optionLines(app);
  if (!options.empty())
    text += ".SH OPTIONS\n" + options;
  if (!isProgram)
    text += ".SH EXAMPLE\n.EX\n" + roff(app.get_footer()) + "\n.EE\n";
  text += ".SH EXIT STATUS\n0: done; 1: it failed, which a sentence on the "
          "standard error tells; 2: the command line is wrong.\n";
  if (!isProgram)
    text += ".SH SEE ALSO\n.BR sardonyx (1)\n";
  return text;
}

/// Cells of Markdown's tables end at a bar.
static std::string cell(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '|')
      result += '\\';
    result += c;
  }
  return result;
}

static std::string reference(const CLI::App &program) {
  std::string text =
      "# Command line\n\nMade by `sardonyx manual`. `sardonyx COMMAND --help` "
      "shows the same, and so do the pages of the manual\n(`man "
      "sardonyx-run`). "
      "`source <(sardonyx completion bash)` has bash complete commands and "
      "options; zsh likewise.\n\nThe exit status is 0 where all was done, 1 "
      "where it failed, and 2 where the command line is wrong. Errors are a\n"
      "line on the standard error. Files are written beside their places and "
      "renamed when they are whole; none takes the\nplace of a file that was "
      "read. On a terminal a line tells what takes longer than half a second "
      "to compile.\n";
  for (const CLI::App *command : commandsOf(program)) {
    text += "\n## sardonyx " + command->get_name() + "\n\n" +
            command->get_description() + ".\n\n```sh\n" +
            command->get_footer() + "\n```\n";
    const std::vector<OptionText> options = optionsOf(*command);
    if (options.empty()) {
      text += "\nA part of the Python package ([Quantization](../howto/"
              "Quantization.md)); `sardonyx " +
              command->get_name() + " --help` tells its options.\n";
      continue;
    }
    text += "\n| | |\n|---|---|\n";
    for (const OptionText &option : options)
      text +=
          "| `" + cell(option.usage()) + "` | " + cell(option.text) + " |\n";
  }
  return text;
}

int writeManual(const std::string &folder, const CLI::App &program) {
  (void)mkdir(folder.c_str(), 0777);
  writeText(folder + "/sardonyx.1", pageOf(program), {});
  for (const CLI::App *command : commandsOf(program))
    writeText(folder + "/sardonyx-" + command->get_name() + ".1",
              pageOf(*command), {});
  writeText(folder + "/CommandLine.md", reference(program), {});
  return 0;
}
