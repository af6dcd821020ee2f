/* The C interface from C. */

#include "sardonyx-c/sardonyx.h"
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      snprintf(message, capacity, "line %d: %s", __LINE__, #condition);        \
      return 1;                                                                \
    }                                                                          \
  } while (0)

/* Runs the handmade model that the cache holds for these bytes. */
int runCApi(const char *modelBytes, size_t size, const char *cache,
            char *message, size_t capacity) {
  sdx_error *error = NULL;
  EXPECT(sdx_version()[0] != 0);
  EXPECT(!sdx_session_create("/no/such/file.onnx", NULL, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_NO_SUCH_FILE);
  EXPECT(strstr(sdx_error_message(error), "/no/such/file.onnx"));
  sdx_error_free(error);
  EXPECT(!sdx_session_create("/no/such/file.onnx", NULL, NULL));

  sdx_options *options = sdx_options_create();
  sdx_options_set_threads(options, 2);
  sdx_options_set_cache(options, 1, cache);
  sdx_options_set_compile_timeout(options, 1000);
  sdx_options_set_memory_limit(options, -1);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  sdx_error_free(error);
  sdx_options_set_memory_limit(options, 1 << 20);
  sdx_session *session =
      sdx_session_create_from_bytes(modelBytes, size, options, &error);
  sdx_options_free(options);
  EXPECT(session);
  EXPECT(sdx_session_input_count(session) == 2);
  EXPECT(sdx_session_output_count(session) == 2);
  EXPECT(!strcmp(sdx_session_input_name(session, 0), "x"));
  EXPECT(!strcmp(sdx_session_output_name(session, 1), "m"));
  EXPECT(!sdx_session_output_name(session, 2));
  EXPECT(sdx_session_input_type(session, 0) == 1);
  int64_t sizes[4];
  EXPECT(sdx_session_input_shape(session, 0, sizes, 4) == 2);
  EXPECT(sizes[0] == -1 && sizes[1] == 3);

  float x[6] = {1, 1, 1, 2, 2, 2}, b[2] = {3, 4}, y[6];
  int64_t shapeX[2] = {2, 3}, shapeB[1] = {2};
  sdx_tensor inputs[2] = {{1, 2, shapeX, x}, {1, 1, shapeB, b}};
  sdx_results *results = sdx_session_run(session, inputs, 2, NULL, &error);
  EXPECT(results);
  EXPECT(sdx_results_count(results) == 2);
  sdx_tensor first = sdx_results_get(results, 0);
  EXPECT(first.rank == 2 && first.shape[0] == 2 && first.shape[1] == 3);
  EXPECT(((float *)first.data)[5] == 400);
  sdx_results_free(results);

  sdx_tensor memory[2] = {{1, 2, shapeX, y}, {0, 0, NULL, NULL}};
  results = sdx_session_run(session, inputs, 2, memory, &error);
  EXPECT(results && y[3] == 4);
  sdx_results_free(results);

  sdx_run_options *once = sdx_run_options_create();
  sdx_run_options_set_timeout(once, 1000);
  sdx_run_options_set_max_trip_count(once, 10);
  results =
      sdx_session_run_with_options(session, inputs, 2, NULL, once, &error);
  EXPECT(results);
  sdx_results_free(results);
  sdx_run_options_set_terminate(once, 1);
  EXPECT(!sdx_session_run_with_options(session, inputs, 2, NULL, once, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_FAILED);
  EXPECT(!strcmp(sdx_error_message(error), "the run was terminated"));
  sdx_error_free(error);
  sdx_run_options_free(once);

  shapeX[1] = 2;
  EXPECT(!sdx_session_run(session, inputs, 2, NULL, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  sdx_error_free(error);
  sdx_session_free(session);
  return 0;
}
