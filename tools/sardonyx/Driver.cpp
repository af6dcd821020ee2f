//===- Driver.cpp - From a command line to an exit status -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "CommandLine.h"
#include "Help.h"
#include "sardonyx/UnknownName.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

using namespace sardonyx;

/// Of a wrong command line.
static constexpr int kUsage = 2;

/// Gives the program's output to the system; fails where it does not take it.
static int finishOutput(int status) {
  errno = 0;
  const bool isFlushed = fflush(stdout) == 0;
  const int reason = errno;
  if (isFlushed && !ferror(stdout))
    return status;
  fprintf(stderr, "sardonyx: cannot write to the standard output: %s\n",
          strerror(reason ? reason : EIO));
  clearerr(stdout);
  return status ? status : 1;
}

/// "; did you mean --input?" or nothing.
static std::string suggestion(const std::string &word,
                              const std::vector<std::string> &known) {
  const std::string like = nearestName(word, known);
  return like.empty() ? "" : " (did you mean " + like + "?)";
}

/// What is wrong with the first word of a line that the command does not take.
static std::string unknownWord(const CLI::App &command,
                               const std::string &word) {
  if (word.size() < 2 || word[0] != '-')
    return "'" + word + "' is one argument too many";
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const OptionText &option : optionsOf(command))
    if (!option.isPositional)
      known.insert(known.end(), option.names.begin(), option.names.end());
  return "there is no option '" + name + "'" + suggestion(name, known);
}

/// The sentence of what was thrown, in this program's words where CLI11's are
/// not for people.
static std::string sentenceOf(const CLI::ParseError &error,
                              const CLI::App &command) {
  for (const std::string &word : command.remaining())
    if (word.size() > 1 && word[0] == '-')
      return unknownWord(command, word);
  const std::vector<std::string> rest = command.remaining();
  if (dynamic_cast<const CLI::ExtrasError *>(&error) && !rest.empty())
    return unknownWord(command, rest[0]);
  std::string text = error.what();
  // A list may follow on lines of its own.
  return text.substr(0, text.find('\n'));
}

static int fail(const std::string &who, const std::string &sentence) {
  fprintf(stderr, "%s: %s; see %s --help\n", who.c_str(), sentence.c_str(),
          who.c_str());
  return kUsage;
}

static bool hasCommand(const CLI::App &program, const std::string &name) {
  const auto all = program.get_subcommands({});
  return std::any_of(all.begin(), all.end(), [&](const CLI::App *command) {
    return command->get_name() == name;
  });
}

static int runCommand(int argc, const char *const *argv) {
  CommandLine line;
  CLI::App &program = line.program();
  if (argc < 2) {
    fputs(program.help().c_str(), stderr);
    return kUsage;
  }
  const std::string first = argv[1];
  if (first[0] != '-' && !hasCommand(program, first)) {
    std::vector<std::string> known;
    for (const CLI::App *command : commandsOf(program))
      known.push_back(command->get_name());
    return fail("sardonyx", "there is no command '" + first + "'" +
                                suggestion(first, known));
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    const auto parsed = program.get_subcommands();
    fputs((parsed.empty() ? &program : parsed[0])->help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion &version) {
    printf("%s\n", version.what());
    return 0;
  } catch (const CLI::ParseError &error) {
    const auto parsed = program.get_subcommands();
    if (parsed.empty())
      return fail("sardonyx",
                  first[0] == '-' ? unknownWord(program, first) : error.what());
    return fail("sardonyx " + parsed[0]->get_name(),
                sentenceOf(error, *parsed[0]));
  }
  return line.execute();
}

/// Sentences of this program's own are std::runtime_errors; what the C++
/// library throws has none for a person.
static int runReporting(int argc, const char *const *argv) {
  std::string sentence;
  try {
    return runCommand(argc, argv);
  } catch (const std::bad_alloc &) {
    sentence = "not enough memory for arrays of these sizes";
  } catch (const std::length_error &) {
    sentence = "arrays of these sizes are larger than any memory";
  } catch (const std::system_error &error) {
    sentence = "the system refuses: " + error.code().message();
  } catch (const std::runtime_error &error) {
    sentence = error.what();
  } catch (const std::exception &error) {
    sentence = Error(ErrorKind::Failed,
                     "an internal error; with SARDONYX_DEBUG=1 in the "
                     "environment more is told",
                     error.what())
                   .message();
  }
  fprintf(stderr, "sardonyx: %s\n", sentence.c_str());
  return 1;
}

int sardonyx::runDriver(int argc, const char *const *argv) {
  return finishOutput(runReporting(argc, argv));
}
