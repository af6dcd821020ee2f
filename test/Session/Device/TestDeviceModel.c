/* y[n] = x[n] + 2 * w[n] on a device, m[1] = x[0] + k on the host, c[n] = 3 *
   x[n] where no x is negative. What the compiler would make of a model, by
   hand. The kernels are those of test/Runtime/GPU/FakeDevice.h: 0 adds, 1
   scales, 2 scales and checks, 3 writes where no memory is. */

#include "sardonyx-c/RuntimeABI.h"

typedef struct {
  float *data;
  int64_t sizes[1];
} vector;

static int64_t word_of(float number) {
  union {
    float number;
    int64_t word;
  } u = {.word = -1};
  u.number = number;
  return u.word;
}

/* args: w (constant, on the device). Result 0, on the device: 2 * w. */
void sdx_init(void **args) {
  vector *w = args[0];
  int64_t n = w->sizes[0];
  float *doubled = sdx_rt_device_output(0, 1, w->sizes);
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, doubled, w->data, n * 4);
  int64_t size[] = {1, 1, 1, n, 1, 1, 0, 0};
  int64_t words[] = {(int64_t)doubled, word_of(2)};
  sdx_rt_launch(1, size, 2, words);
}

/* args: x (input 0, on the device), 2 * w (persistent, on the device), x (input
   0, on the host), k (input 1, on the host). */
void sdx_main(void **args) {
  vector *x = args[0], *w = args[1], *host = args[2], *k = args[3];
  int64_t n = x->sizes[0], one = 1;
  float *y = sdx_rt_device_output(0, 1, &n);
  int64_t blocks[] = {(n + 255) / 256, 1, 1, 256, 1, 1, 0, 0};
  int64_t sum[] = {(int64_t)x->data, (int64_t)w->data, (int64_t)y, n};
  sdx_rt_launch(0, blocks, 4, sum);

  float *m = sdx_rt_output(1, 1, &one);
  m[0] = (n ? host->data[0] : 0) + k->data[0];
  if (m[0] == 1000) /* a kernel that no device survives */
    sdx_rt_launch(3, blocks, 0, 0);

  float *copy = sdx_rt_device_arena(n * 4);
  float *c = sdx_rt_device_output(2, 1, &n);
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, copy, x->data, n * 4);
  if (n) {
    int64_t size[] = {1, 1, 1, n, 1, 1, 0, 0};
    int64_t words[] = {(int64_t)copy, word_of(3),
                       (int64_t)sdx_rt_device_failure()};
    sdx_rt_launch(2, size, 3, words);
  }
  float *late = sdx_rt_device_alloc(n * 4, "node 'late' (Late)");
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, late, copy, n * 4);
  sdx_rt_device_copy(SDX_RT_ON_DEVICE, c, late, n * 4);
  sdx_rt_device_free(late);
}
