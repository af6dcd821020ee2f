//===- Help.cpp - What --help shows ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Help.h"
#include <algorithm>

static constexpr size_t kWidth = 80, kColumn = 28;

std::string OptionText::usage() const {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text + (value.empty() ? "" : " " + value);
}

static OptionText describe(const CLI::Option &option) {
  OptionText result;
  result.isPositional = option.get_positional();
  result.isRequired = option.get_required();
  result.group = result.isPositional ? "Arguments" : option.get_group();
  result.text = option.get_description();
  if (result.isPositional) {
    result.names = {option.get_name(/*positional=*/true)};
    return result;
  }
  for (const std::string &name : option.get_snames())
    result.names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    result.names.push_back("--" + name);
  // Behind a colon stands what checks the value.
  if (option.get_items_expected_max() > 0) {
    result.value = option.get_type_name();
    result.value.resize(std::min(result.value.find(':'), result.value.size()));
  }
  return result;
}

std::vector<OptionText> optionsOf(const CLI::App &app) {
  std::vector<OptionText> all;
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty())
      all.push_back(describe(*option));
  std::vector<std::string> order = {"Arguments"};
  for (const OptionText &option : all)
    if (std::find(order.begin(), order.end(), option.group) == order.end())
      order.push_back(option.group);
  // What is of no concern to who begins comes last.
  for (const char *last : {"Help", "Options", "Tuning"})
    if (auto it = std::find(order.begin(), order.end(), last);
        it != order.end())
      std::rotate(it, it + 1, order.end());
  std::vector<OptionText> sorted;
  for (const std::string &group : order)
    for (const OptionText &option : all)
      if (option.group == group)
        sorted.push_back(option);
  return sorted;
}

std::vector<const CLI::App *> commandsOf(const CLI::App &program) {
  std::vector<const CLI::App *> commands;
  for (const CLI::App *app : program.get_subcommands(
           [](const CLI::App *app) { return !app->get_group().empty(); }))
    commands.push_back(app);
  return commands;
}

std::string usageOf(const CLI::App &app) {
  if (!app.get_parent())
    return app.get_name() + " COMMAND [OPTIONS]";
  std::string text = app.get_parent()->get_name() + " " + app.get_name();
  for (const OptionText &option : optionsOf(app)) {
    if (option.isPositional)
      text += " " + option.names[0];
    else if (option.isRequired)
      text += " " + option.names[0] + " " + option.value;
  }
  return text + " [OPTIONS]";
}

/// `text` in lines of at most kWidth columns that begin at `indent`.
static std::string wrap(const std::string &text, size_t indent, size_t at) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const size_t length = end - begin;
    if (at > indent && at + 1 + length > kWidth) {
      result += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      result += ' ';
      ++at;
    }
    result += text.substr(begin, length);
    at += length;
    begin = end + 1;
  }
  return result;
}

/// A line of a list, its text in the second column.
static std::string row(const std::string &name, const std::string &text,
                       size_t column) {
  std::string result = "  " + name;
  if (result.size() + 2 > column)
    result += "\n" + std::string(column, ' ');
  else
    result.append(column - result.size(), ' ');
  return result + wrap(text, column, column) + "\n";
}

std::string HelpFormatter::make_help(const CLI::App *app, std::string,
                                     CLI::AppFormatMode) const {
  std::string text =
      wrap(app->get_description(), 0, 0) + "\n\nUsage: " + usageOf(*app) + "\n";
  const std::vector<const CLI::App *> commands = commandsOf(*app);
  if (!commands.empty())
    text += "\nCommands:\n";
  for (const CLI::App *command : commands)
    text += row(command->get_name(), command->get_description(), 14);
  std::string group;
  for (const OptionText &option : optionsOf(*app)) {
    if (option.group != group)
      text += "\n" + option.group + ":\n";
    group = option.group;
    text += row(option.usage(), option.text, kColumn);
  }
  if (commands.empty())
    return text + "\nExample:\n  " + app->get_footer() + "\n";
  text += "\nExamples:\n";
  for (const CLI::App *command : commands)
    text += "  " + command->get_footer() + "\n";
  return text + "\n`sardonyx COMMAND --help` shows the options of a command.\n";
}
