//===- RunProgram.cpp - Programs that help to compile ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunProgram.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sardonyx;
using Clock = std::chrono::steady_clock;

extern char **environ;

/// Starts the program, whose output goes to `pipe`; an error number or 0.
static int start(const std::vector<std::string> &words, int pipe, pid_t &id) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, pipe, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, pipe, STDERR_FILENO);
  // Threads that compile may block signals, which a program does not expect.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int error = posix_spawn(&id, arguments[0], &files, &attributes,
                          arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// Reads until the other side is closed; false at the deadline.
static bool readAll(int pipe, Clock::time_point deadline, std::string &output) {
  // A program that never stops to write is no compiler.
  constexpr size_t kMostOutput = size_t(16) << 20;
  char buffer[4096];
  while (output.size() < kMostOutput) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    if (left.count() <= 0)
      return false;
    pollfd waited = {pipe, POLLIN, 0};
    int ready = poll(&waited, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR)
      return false;
    if (ready <= 0)
      continue;
    ssize_t count = read(pipe, buffer, sizeof(buffer));
    if (count == 0)
      return true;
    if (count > 0)
      output.append(buffer, static_cast<size_t>(count));
    else if (errno != EINTR)
      return false;
  }
  return false;
}

nv::ProgramResult nv::runProgram(const std::vector<std::string> &words,
                                 double seconds) {
  ProgramResult result;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.problem = strerror(errno);
    return result;
  }
  pid_t id = 0;
  int error = start(words, ends[1], id);
  close(ends[1]);
  const bool isInTime = !error && readAll(ends[0], deadline, result.output);
  close(ends[0]);
  if (error) {
    result.problem = strerror(error);
    return result;
  }
  if (!isInTime)
    kill(id, SIGKILL);
  int status = 0;
  pid_t ended;
  do
    ended = waitpid(id, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (!isInTime)
    result.problem = "it took too long";
  else if (ended != id)
    result.problem = strerror(errno);
  else if (WIFSIGNALED(status))
    result.problem =
        "it was ended by signal " + std::to_string(WTERMSIG(status));
  else
    result.status = WEXITSTATUS(status);
  return result;
}
