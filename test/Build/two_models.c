/* Two models in one program, each run by four threads at a time. */
#include "first.h"
#include "second.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, RUNS = 50 };

static sdx_session *models[2];

static int run_first(int64_t n, unsigned seed) {
  first_sizes sizes;
  sdx_error *error = NULL;
  float *x, *y;
  size_t i, count;
  int wrong = 0;
  sizes.n = n;
  count = first_x_count(&sizes);
  x = malloc(count * sizeof(float));
  y = malloc(first_y_count(&sizes) * sizeof(float));
  for (i = 0; i < count; ++i)
    x[i] = (float)((i * 7 + seed) % 13) - 6.0f;
  if (first_run(models[0], &sizes, x, y, &error)) {
    puts(first_error_message(error));
    first_free_error(error);
    return 1;
  }
  /* y = relu(x w), w[k][j] = k + j, k < 4, j < 8 */
  for (i = 0; i < (size_t)n * 8; ++i) {
    float sum = 0;
    int k;
    for (k = 0; k < 4; ++k)
      sum += x[i / 8 * 4 + k] * (float)(k + (int)(i % 8));
    wrong |= y[i] != (sum > 0 ? sum : 0);
  }
  free(x);
  free(y);
  return wrong;
}

static int run_second(void) {
  sdx_string texts[2] = {{"ab", 2}, {"\xc3\xa4", 2}};
  sdx_error *error = NULL;
  sdx_results *results = second_run_any(models[1], texts, NULL, &error);
  const sdx_string *made;
  int wrong;
  if (!results) {
    puts(second_error_message(error));
    second_free_error(error);
    return 1;
  }
  made = second_result(results, 0).tensor.data;
  wrong = made[0].size != 3 || memcmp(made[0].data, "ab!", 3) != 0 ||
          made[1].size != 3 || memcmp(made[1].data, "\xc3\xa4!", 3) != 0;
  second_free_results(results);
  return wrong;
}

static void *work(void *argument) {
  size_t thread = (size_t)argument, wrong = 0;
  unsigned i;
  for (i = 0; i < RUNS; ++i)
    wrong += run_first((int64_t)(thread + 1) * (i % 5), i) + run_second();
  return (void *)wrong;
}

int main(void) {
  pthread_t threads[THREADS];
  size_t i, wrong = 0;
  sdx_error *error = NULL;
  models[0] = first_open(&error);
  models[1] = second_open(&error);
  if (!models[0] || !models[1]) {
    puts(first_error_message(error));
    return 2;
  }
  for (i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, work, (void *)i);
  for (i = 0; i < THREADS; ++i) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (size_t)result;
  }
  printf("%s: %d wrong\n", first_metadata(models[0], "graph_name"), (int)wrong);
  first_close(models[0]);
  second_close(models[1]);
  return wrong != 0;
}
