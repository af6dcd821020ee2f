/* y[n, 3] = x[n, 3] * 2 * w[3]; m[n] = n times the largest of b[n] or'ed.
   What the compiler would make of a model, by hand. */

#include "sardonyx-c/RuntimeABI.h"

typedef struct {
  float *data;
  int64_t sizes[2];
} matrix;
typedef struct {
  float *data;
  int64_t sizes[1];
} vector;

/* args: w (constant). Result 0: 2 * w. */
void sdx_init(void **args) {
  vector *w = args[0];
  float *doubled = sdx_rt_output(0, 1, w->sizes);
  for (int64_t i = 0; i < w->sizes[0]; ++i)
    doubled[i] = 2 * w->data[i];
}

typedef struct {
  const float *x, *w;
  float *y;
} scale_env;

static void scale(int64_t begin, int64_t end, void *env) {
  scale_env *e = env;
  for (int64_t i = begin; i < end; ++i)
    for (int j = 0; j < 3; ++j)
      e->y[i * 3 + j] = e->x[i * 3 + j] * e->w[j];
}

/* args: x, 2 * w (persistent), bias (constant, one element), b (input). */
void sdx_main(void **args) {
  matrix *x = args[0];
  vector *w = args[1], *bias = args[2], *b = args[3];
  int64_t n = x->sizes[0];
  if (n > 1000)
    sdx_rt_check_failed("node 'scale': {0} rows, at most {1} are possible",
                        SDX_RT_FAILED, n, 1000, 0, 0);
  int64_t sizes[2] = {n, 3};
  scale_env env = {x->data, w->data, sdx_rt_output(0, 2, sizes)};
  sdx_rt_parallel_for(n, 4, scale, &env);
  float *m = sdx_rt_output(1, 1, sizes);
  float *scratch = sdx_rt_alloc(n * (int64_t)sizeof(float));
  for (int64_t i = 0; i < n; ++i)
    scratch[i] = b->data[i] + bias->data[0];
  for (int64_t i = 0; i < n; ++i)
    m[i] = scratch[i];
}
