/* Runs m.h of test_device.py with tensors of the host, then with tensors of the
 * device. */

#include "m.h"

#include <dlfcn.h>
#include <stdio.h>

static int fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  sdx_error *error = NULL;
  sdx_session *model = m_open_on_device(0, 1 << 28, NULL, &error);
  m_sizes sizes = {2};
  float x[8] = {1, 1, 1, 1, 0, 0, 0, 1}, z[16] = {0}, y[16], again[16];
  int64_t s[2];
  (void)argc;
  if (!model)
    return fail(m_error_message(error));
  if (m_run(model, &sizes, x, z, y, s, &error))
    return fail(m_error_message(error));
  if (s[0] != 2 || s[1] != 8)
    return fail("wrong sizes");
  puts("host");

  /* What a program that uses CUDA has by itself. */
  typedef int (*GetProcAddress)(const char *, void **, int, uint64_t, int *);
  void *driver = dlopen(argv[1], RTLD_NOW);
  GetProcAddress find =
      driver ? (GetProcAddress)dlsym(driver, "cuGetProcAddress_v2") : NULL;
  int (*retain)(void **, int), (*push)(void *), (*allocate)(uint64_t *, size_t);
  int (*upload)(uint64_t, const void *, size_t, void *);
  int (*download)(void *, uint64_t, size_t, void *), (*wait)(void *);
  void *context = NULL, *found[6];
  static const char *const names[] = {
      "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",  "cuMemAlloc",
      "cuMemcpyHtoDAsync",        "cuMemcpyDtoHAsync", "cuStreamSynchronize"};
  for (int i = 0; i < 6; ++i) {
    int status = 0;
    if (!find || find(names[i], &found[i], 12000, 0, &status))
      return fail(names[i]);
  }
  memcpy(&retain, &found[0], sizeof(retain));
  memcpy(&push, &found[1], sizeof(push));
  memcpy(&allocate, &found[2], sizeof(allocate));
  memcpy(&upload, &found[3], sizeof(upload));
  memcpy(&download, &found[4], sizeof(download));
  memcpy(&wait, &found[5], sizeof(wait));
  uint64_t memory = 0;
  if (retain(&context, 0) || push(context) || allocate(&memory, 4096) ||
      upload(memory, x, sizeof(x), NULL) ||
      upload(memory + 256, z, sizeof(z), NULL))
    return fail("the driver refuses");
  if (m_run_on_device(model, &sizes, (float *)(uintptr_t)memory,
                      (float *)(uintptr_t)(memory + 256),
                      (float *)(uintptr_t)(memory + 512),
                      (int64_t *)(uintptr_t)(memory + 1024), &error))
    return fail(m_error_message(error));
  if (download(again, memory + 512, sizeof(again), NULL) || wait(NULL))
    return fail("the driver refuses to copy");
  if (memcmp(y, again, sizeof(y)) != 0)
    return fail("another result on the device");
  m_close(model);
  puts("device");
  return 0;
}
