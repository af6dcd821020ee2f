/* Compiles a model and runs it: session bars.onnxtxt */
#include "pictures.h"
#include <sardonyx-c/sardonyx.h>
#include <stdio.h>

static int fail(sdx_error *error) {
  fprintf(stderr, "%s\n", sdx_error_message(error));
  sdx_error_free(error);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]);
    return 2;
  }
  sdx_error *error = NULL;
  sdx_session *session = sdx_session_create(argv[1], NULL, &error);
  if (!session)
    return fail(error);
  const int64_t shape[] = {2, 3, 3};
  const char *name = "picture", *wanted = "score";
  sdx_tensor input = {SDX_FLOAT, 3, shape, (void *)pictures};
  sdx_results *results = sdx_session_run_named(session, &name, &input, 1,
                                               &wanted, 1, NULL, &error);
  if (!results) {
    sdx_session_free(session);
    return fail(error);
  }
  sdx_tensor scores = sdx_results_get(results, 0);
  for (int picture = 0; picture < 2; ++picture) {
    const float *score = (const float *)scores.data + 4 * picture;
    int best = 0;
    for (int kind = 1; kind < 4; ++kind)
      if (score[kind] > score[best])
        best = kind;
    printf("%s %.3f\n", kinds[best], score[best]);
  }
  sdx_results_free(results);
  sdx_session_free(session);
  return 0;
}
