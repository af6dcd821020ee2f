//===- OldGlibc.cpp - What glibc 2.28 does not have ----------------------===//
//
// Part of the Sardonyx project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of later releases that LLVM's, Debian's and our own objects call,
// in terms of those that glibc 2.28 has. Wheels are linked with them, and with
// the libraries of old_glibc.py.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#ifdef __x86_64__
constexpr int statVersion = 1;
#else
constexpr int statVersion = 0;
#endif

// Debian's archives are made for programs, which know at which distance from
// their code the C library's variables are. These are ours, then.
FILE *stderr = nullptr;
FILE *stdout = nullptr;
__attribute__((constructor(101))) static void findStreams() {
  if (void *place = dlsym(RTLD_DEFAULT, "stderr"))
    stderr = *static_cast<FILE **>(place);
  if (void *place = dlsym(RTLD_DEFAULT, "stdout"))
    stdout = *static_cast<FILE **>(place);
}

extern "C" {
int __xstat(int version, const char *path, struct stat *result);
int __lxstat(int version, const char *path, struct stat *result);
int __fxstat(int version, int file, struct stat *result);
int __fxstatat(int version, int folder, const char *path, struct stat *result,
               int flags);

// Since 2.33 functions, before that inline ones.
int stat(const char *path, struct stat *result) {
  return __xstat(statVersion, path, result);
}
int lstat(const char *path, struct stat *result) {
  return __lxstat(statVersion, path, result);
}
int fstat(int file, struct stat *result) {
  return __fxstat(statVersion, file, result);
}
int fstatat(int folder, const char *path, struct stat *result, int flags) {
  return __fxstatat(statVersion, folder, path, result, flags);
}
// These have files of 64 bits in any case.
int stat64(const char *path, struct stat64 *result) {
  return stat(path, reinterpret_cast<struct stat *>(result));
}
int fstat64(int file, struct stat64 *result) {
  return fstat(file, reinterpret_cast<struct stat *>(result));
}

// C++'s library counts references without atomic operations where this is not
// zero. 2.32.
char __libc_single_threaded = 0;

// 2.30. Waits until a time of another clock than the condition's, which is the
// system's: by what is left of it.
int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           clockid_t clock, const timespec *until) {
  if (clock == CLOCK_REALTIME)
    return pthread_cond_timedwait(condition, mutex, until);
  timespec now, system;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &system);
  constexpr int64_t second = 1000000000;
  int64_t nanoseconds = int64_t(system.tv_nsec) + until->tv_nsec - now.tv_nsec;
  // From -1 to 2 seconds, made 0 to 3.
  nanoseconds += second;
  timespec end;
  end.tv_sec =
      system.tv_sec + (until->tv_sec - now.tv_sec) - 1 + nanoseconds / second;
  end.tv_nsec = nanoseconds % second;
  return pthread_cond_timedwait(condition, mutex, &end);
}

// 2.36. LLVM seeds names of temporary files by it.
uint32_t arc4random() {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

// 2.33. LLVM tells how much memory is taken, in its statistics only.
struct mallinfo2 mallinfo2() {
  struct mallinfo counts = mallinfo();
  struct mallinfo2 result = {};
  result.arena = unsigned(counts.arena);
  result.hblkhd = unsigned(counts.hblkhd);
  result.uordblks = unsigned(counts.uordblks);
  result.fordblks = unsigned(counts.fordblks);
  return result;
}
}
