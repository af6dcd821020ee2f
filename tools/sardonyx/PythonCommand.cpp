//===- PythonCommand.cpp - Commands of the Python package -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/// The exit status of a program found along PATH; 127 where there is none.
static int spawn(const std::vector<std::string> &words, bool isSilent) {
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (isSilent)
    for (int stream : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY,
                                       0);
  pid_t child;
  int status = 127 << 8;
  const bool isStarted = posix_spawnp(&child, argv[0], &actions, nullptr,
                                      argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  while (isStarted && waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int runPythonCommand(const std::string &name,
                     const std::vector<std::string> &words) {
  const char *chosen = getenv("SARDONYX_PYTHON");
  const std::string python = chosen ? chosen : "python3";
  if (spawn({python, "-c", "import sardonyx.quantization.command"},
            /*isSilent=*/true) != 0)
    throw std::runtime_error(
        "'" + name + "' is a command of the Python package, which '" + python +
        "' does not have: install the wheels `sardonyx` and `onnx`, or name an "
        "interpreter that has them by SARDONYX_PYTHON");
  fflush(stdout);
  std::vector<std::string> all = {python, "-m", "sardonyx", name};
  all.insert(all.end(), words.begin(), words.end());
  return spawn(all, /*isSilent=*/false);
}
