//===- Completion.cpp - Scripts that complete a command line --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Help.h"

/// What a value is, for completion: "files", "folders", a list of words, or
/// nothing that a shell knows.
static std::string kindOf(const OptionText &option) {
  const std::string &value = option.value;
  if (value.find('|') != std::string::npos) {
    std::string words = value;
    for (char &c : words)
      if (c == '|')
        c = ' ';
    return words;
  }
  if (value == "FOLDER")
    return "folders";
  return value.find("FILE") != std::string::npos ? "files" : "";
}

static std::string namesOf(const CLI::App &app) {
  std::string names;
  for (const OptionText &option : optionsOf(app))
    if (!option.isPositional)
      for (const std::string &name : option.names)
        names += (names.empty() ? "" : " ") + name;
  return names;
}

static std::string commandNames(const CLI::App &program) {
  std::string names;
  for (const CLI::App *command : commandsOf(program))
    names += (names.empty() ? "" : " ") + command->get_name();
  return names;
}

static std::string bash(const CLI::App &program) {
  std::string text =
      "# Completes sardonyx in bash: source <(sardonyx completion bash)\n"
      "_sardonyx() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} "
      "last=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command=${COMP_WORDS[1]}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      commandNames(program) + " " + namesOf(program) +
      "' -- \"$word\"))\n    return\n  fi\n  case $command:$last in\n";
  for (const CLI::App *command : commandsOf(program))
    for (const OptionText &option : optionsOf(*command)) {
      const std::string kind = kindOf(option);
      if (option.isPositional || kind.empty())
        continue;
      text += "  ";
      for (size_t i = 0; i < option.names.size(); ++i)
        text += (i ? "|" : "") + command->get_name() + ":" + option.names[i];
      text += ") COMPREPLY=($(compgen " +
              (kind == "files"     ? std::string("-f")
               : kind == "folders" ? std::string("-d")
                                   : "-W '" + kind + "'") +
              " -- \"$word\")); return ;;\n";
    }
  text += "  esac\n  [[ $word == -* ]] || { COMPREPLY=($(compgen -f -- "
          "\"$word\")); return; }\n  case $command in\n";
  for (const CLI::App *command : commandsOf(program))
    text += "  " + command->get_name() + ") COMPREPLY=($(compgen -W '" +
            namesOf(*command) + "' -- \"$word\")) ;;\n";
  return text + "  esac\n}\ncomplete -o filenames -F _sardonyx sardonyx\n";
}

/// Text within single quotes of a specification of zsh's _arguments.
static std::string zshText(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

static std::string zshOption(const OptionText &option) {
  const std::string kind = kindOf(option);
  std::string action;
  if (!option.value.empty())
    action = ":" + zshText(option.value) + ":" +
             (kind == "files"     ? "_files"
              : kind == "folders" ? "_files -/"
              : kind.empty()      ? ""
                                  : "(" + kind + ")");
  std::string text;
  for (const std::string &name : option.names)
    text +=
        " \\\n    '*" + name + "[" + zshText(option.text) + "]" + action + "'";
  return text;
}

static std::string zsh(const CLI::App &program) {
  std::string text =
      "#compdef sardonyx\n"
      "# Completes sardonyx in zsh: source <(sardonyx completion "
      "zsh)\n_sardonyx() {\n  local -a commands\n  commands=(\n";
  for (const CLI::App *command : commandsOf(program))
    text += "    '" + zshText(command->get_name()) + ":" +
            zshText(command->get_description()) + "'\n";
  text += "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n"
          "    return\n  fi\n  local command=$words[2]\n  shift words\n"
          "  ((CURRENT--))\n  case $command in\n";
  for (const CLI::App *command : commandsOf(program)) {
    text += "  " + command->get_name() + ") _arguments";
    for (const OptionText &option : optionsOf(*command))
      if (!option.isPositional)
        text += zshOption(option);
    text += command->get_name() == "completion" ? " '*:shell:(bash zsh)' ;;\n"
                                                : " '*:file:_files' ;;\n";
  }
  // A file of the name _sardonyx in $fpath is the function's first call.
  return text + "  esac\n}\ncompdef _sardonyx sardonyx\n"
                "[[ $funcstack[1] == _sardonyx ]] && _sardonyx \"$@\"\n";
}

std::string completionFor(const std::string &shell, const CLI::App &program) {
  return shell == "zsh" ? zsh(program) : bash(program);
}
