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
  sdx_options_set_numerics(options, (sdx_numerics)3);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  EXPECT(strstr(sdx_error_message(error), "numerics"));
  sdx_error_free(error);
  sdx_options_set_numerics(options, SDX_NUMERICS_F32);
  sdx_options_set_precision(options, (sdx_precision)5);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  EXPECT(strstr(sdx_error_message(error), "precision"));
  sdx_error_free(error);
  sdx_options_set_precision(options, SDX_PRECISION_F32);
  sdx_options_set_compile(options, (sdx_compile)2);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  EXPECT(strstr(sdx_error_message(error), "compile"));
  sdx_error_free(error);
  sdx_options_set_compile(options, SDX_COMPILE_BACKGROUND);
  sdx_options_set_memory_limit(options, -1);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  sdx_error_free(error);
  EXPECT(sdx_options_add_custom_ops_library(options, "/none.so", &error));
  EXPECT(sdx_error_get_kind(error) == SDX_NO_SUCH_FILE);
  sdx_error_free(error);
  EXPECT(sdx_options_add_custom_functions(options, NULL, NULL));
  EXPECT(sdx_options_add_custom_mlir(options, "/none.mlir", NULL));
  EXPECT(!sdx_options_add_custom_ops_library(
      options, SDX_TEST_CUSTOM_OPS "/TestOps.so", NULL));
  sdx_options_set_memory_limit(options, 1 << 20);
  sdx_session *session =
      sdx_session_create_from_bytes(modelBytes, size, options, &error);
  sdx_options_free(options);
  EXPECT(session);
  EXPECT(sdx_session_wait_for_compile(session, -1, &error) == 1);
  EXPECT(sdx_session_wait_for_compile(session, 0, &error) == 1);
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

  /* By name, in any order, and only what is asked for. */
  const char *names[2] = {"b", "x"}, *wanted[2] = {"m", "y"};
  sdx_tensor swapped[2] = {inputs[1], inputs[0]};
  results = sdx_session_run_named(session, names, swapped, 2, wanted, 1, NULL,
                                  &error);
  EXPECT(results && sdx_results_count(results) == 1);
  EXPECT(sdx_results_get(results, 0).type == SDX_FLOAT);
  EXPECT(sdx_results_get(results, 0).rank == 1);
  sdx_results_free(results);
  results = sdx_session_run_named(session, names, swapped, 2, wanted, 2, NULL,
                                  &error);
  EXPECT(results && ((float *)sdx_results_get(results, 1).data)[5] == 400);
  sdx_results_free(results);
  results =
      sdx_session_run_named(session, names, swapped, 2, NULL, 0, NULL, &error);
  EXPECT(results && ((float *)sdx_results_get(results, 0).data)[5] == 400);
  sdx_results_free(results);
  EXPECT(!sdx_session_run_named(session, names, swapped, 1, NULL, 0, NULL,
                                &error));
  EXPECT(!strcmp(sdx_error_message(error), "input 'x' is missing"));
  sdx_error_free(error);
  names[0] = "x";
  EXPECT(!sdx_session_run_named(session, names, swapped, 2, NULL, 0, NULL,
                                &error));
  EXPECT(strstr(sdx_error_message(error), "given twice"));
  sdx_error_free(error);
  names[0] = "B";
  EXPECT(!sdx_session_run_named(session, names, swapped, 2, NULL, 0, NULL,
                                &error));
  EXPECT(strstr(sdx_error_message(error), "did you mean b?"));
  sdx_error_free(error);
  names[0] = "b", wanted[0] = "n";
  EXPECT(!sdx_session_run_named(session, names, swapped, 2, wanted, 1, NULL,
                                &error));
  EXPECT(strstr(sdx_error_message(error), "no output 'n'"));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  sdx_error_free(error);

  shapeX[1] = 2;
  EXPECT(!sdx_session_run(session, inputs, 2, NULL, &error));
  EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
  sdx_error_free(error);
  sdx_session_free(session);
  return 0;
}

static void count(void *user, const char *message) {
  if (strstr(message, "is declared with the shape"))
    ++*(int *)user;
}

typedef struct {
  size_t steps;
  double flops;
  int isOrdered;
} seen;

static void see(void *user, const sdx_profile_step *step) {
  seen *all = user;
  ++all->steps;
  all->flops += step->flops;
  all->isOrdered &= step->begin <= step->end && step->kernel && step->form;
}

/* What options ask for, on a model "x float[N, 3] -> h = Relu(x), y = Neg(h)",
   whose y is declared to be [N, 4]; see CompileTest.cpp. */
int runCOptions(const char *modelBytes, size_t size, char *message,
                size_t capacity) {
  sdx_error *error = NULL;
  int warnings = 0;
  sdx_options *options = sdx_options_create();
  sdx_options_set_cache(options, 0, NULL);
  sdx_options_set_log(options, count, &warnings);
  sdx_options_set_profile(options, 1);
  sdx_options_set_cpu(options, "no-such-processor");
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(strstr(sdx_error_message(error), "no-such-processor"));
  sdx_error_free(error);
  sdx_options_set_cpu(options, NULL);
  sdx_session *session =
      sdx_session_create_from_bytes(modelBytes, size, options, &error);
  EXPECT(session && warnings == 1);
  float x[3] = {1, -2, 3};
  int64_t shape[2] = {1, 3};
  sdx_tensor input = {SDX_FLOAT, 2, shape, x};
  for (int i = 0; i < 3; ++i)
    sdx_results_free(sdx_session_run(session, &input, 1, NULL, &error));
  seen all = {0, 0, 1};
  EXPECT(sdx_session_take_profile(session, see, &all) == 3);
  EXPECT(all.steps >= 3 && all.flops > 0 && all.isOrdered);
  EXPECT(sdx_session_take_profile(session, see, &all) == 0);
  sdx_session_free(session);

  sdx_options_add_output(options, "h");
  sdx_options_set_dimension(options, "N", 1);
  session = sdx_session_create_from_bytes(modelBytes, size, options, &error);
  EXPECT(session && sdx_session_output_count(session) == 1);
  sdx_results *results = sdx_session_run(session, &input, 1, NULL, &error);
  EXPECT(results && ((float *)sdx_results_get(results, 0).data)[2] == 3);
  EXPECT(((float *)sdx_results_get(results, 0).data)[1] == 0);
  sdx_results_free(results);
  shape[0] = 2;
  EXPECT(!sdx_session_run(session, &input, 1, NULL, &error));
  EXPECT(strstr(sdx_error_message(error), "must be 1, got 2"));
  sdx_error_free(error);
  sdx_session_free(session);
  sdx_options_set_dimension(options, "M", 1);
  EXPECT(!sdx_session_create_from_bytes(modelBytes, size, options, &error));
  EXPECT(strstr(sdx_error_message(error), "no open dimension 'M'"));
  sdx_error_free(error);
  sdx_options_free(options);
  return 0;
}

/* Runs a model with values of all kinds; see CompileTest.cpp. */
int runCValues(const char *modelBytes, size_t size, char *message,
               size_t capacity) {
  sdx_error *error = NULL;
  sdx_options *options = sdx_options_create();
  sdx_options_set_cache(options, 0, NULL);
  sdx_session *session =
      sdx_session_create_from_bytes(modelBytes, size, options, &error);
  sdx_options_free(options);
  if (!session) {
    snprintf(message, capacity, "%s", sdx_error_message(error));
    return 1;
  }
  EXPECT(
      !strcmp(sdx_session_input_type_name(session, 1), "seq(tensor(string))"));
  EXPECT(!strcmp(sdx_session_input_type_name(session, 2),
                 "map(int64,tensor(float))"));
  EXPECT(!strcmp(sdx_session_output_type_name(session, 0),
                 "seq(map(string,tensor(float)))"));
  EXPECT(!sdx_session_output_type_name(session, 4));
  EXPECT(sdx_session_input_type(session, 2) == 0);

  float x[4] = {1, 2, 3, 4}, mapped[2] = {0.5f, 0.25f};
  int64_t keys[2] = {20, 10}, square[2] = {2, 2}, two[1] = {2}, one[1] = {1};
  sdx_string words[3] = {{"ab", 2}, {"", 0}, {"c", 1}};
  sdx_value items[2] = {{SDX_TENSOR, {8, 1, two, words}, 0, NULL},
                        {SDX_TENSOR, {8, 1, one, words + 2}, 0, NULL}};
  sdx_value entries[2] = {{SDX_TENSOR, {7, 1, two, keys}, 0, NULL},
                          {SDX_TENSOR, {1, 1, two, mapped}, 0, NULL}};
  sdx_value inputs[4] = {{SDX_TENSOR, {1, 2, square, x}, 0, NULL},
                         {SDX_SEQUENCE, {0, 0, NULL, NULL}, 2, items},
                         {SDX_MAP, {0, 0, NULL, NULL}, 2, entries},
                         {SDX_NOTHING, {0, 0, NULL, NULL}, 0, NULL}};
  sdx_results *results =
      sdx_session_run_values(session, inputs, 4, NULL, &error);
  if (!results) {
    snprintf(message, capacity, "%s", sdx_error_message(error));
    return 1;
  }
  EXPECT(sdx_results_count(results) == 4);
  sdx_value maps = sdx_results_get_value(results, 0);
  EXPECT(maps.kind == SDX_SEQUENCE && maps.count == 2);
  EXPECT(sdx_results_get(results, 0).type == 0);
  const sdx_value *second = &maps.items[1];
  EXPECT(second->kind == SDX_MAP && second->count == 2);
  sdx_tensor labels = second->items[0].tensor, scores = second->items[1].tensor;
  EXPECT(labels.type == 8 && labels.rank == 1 && labels.shape[0] == 2);
  EXPECT(((sdx_string *)labels.data)[0].size == 1);
  EXPECT(((sdx_string *)labels.data)[0].data[0] == 'a');
  EXPECT(((float *)scores.data)[0] == 4 && ((float *)scores.data)[1] == 3);
  sdx_value rest = sdx_results_get_value(results, 1);
  EXPECT(rest.kind == SDX_SEQUENCE && rest.count == 1);
  EXPECT(rest.items[0].tensor.shape[0] == 2);
  EXPECT(((sdx_string *)rest.items[0].tensor.data)[0].size == 2);
  sdx_value row = sdx_results_get_value(results, 2);
  EXPECT(row.kind == SDX_TENSOR && row.tensor.shape[1] == 3);
  EXPECT(((float *)row.tensor.data)[0] == 0.25f);
  EXPECT(((float *)row.tensor.data)[1] == 0);
  EXPECT(((float *)row.tensor.data)[2] == 0.5f);
  EXPECT(sdx_results_get_value(results, 3).kind == SDX_NOTHING);
  EXPECT(sdx_results_get_value(results, 4).kind == SDX_NOTHING);
  sdx_results_free(results);

  inputs[3] = entries[1]; /* an optional that holds something */
  results = sdx_session_run_values(session, inputs, 4, NULL, &error);
  EXPECT(results);
  EXPECT(((float *)sdx_results_get(results, 3).data)[1] == 0.25f);
  sdx_results_free(results);

  /* What no value is, is told. */
  struct {
    sdx_value value;
    const char *sentence;
  } wrong[] = {
      {{(sdx_value_kind)9, {0, 0, NULL, NULL}, 0, NULL}, "no kind of value 9"},
      {{SDX_MAP, {0, 0, NULL, NULL}, 2, NULL}, "input 2: a value has no items"},
      {{SDX_MAP, {0, 0, NULL, NULL}, 1, entries}, "input 'm' is a map, got"},
      {{SDX_MAP, {0, 0, NULL, NULL}, 2, items}, "keys of int64, got string"},
      {{SDX_SEQUENCE, {0, 0, NULL, NULL}, 2, items}, "is a map, got something"},
      {{SDX_TENSOR, {1, 1, NULL, x}, 0, NULL}, "a tensor has no shape"},
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    inputs[2] = wrong[i].value;
    EXPECT(!sdx_session_run_values(session, inputs, 4, NULL, &error));
    EXPECT(sdx_error_get_kind(error) == SDX_INVALID_ARGUMENT);
    if (!strstr(sdx_error_message(error), wrong[i].sentence)) {
      snprintf(message, capacity, "%s", sdx_error_message(error));
      return 1;
    }
    sdx_error_free(error);
  }
  keys[1] = 20;
  inputs[2] = (sdx_value){SDX_MAP, {0, 0, NULL, NULL}, 2, entries};
  EXPECT(!sdx_session_run_values(session, inputs, 4, NULL, &error));
  EXPECT(strstr(sdx_error_message(error), "input 'm' has a key twice"));
  sdx_error_free(error);
  sdx_value deep = {SDX_SEQUENCE, {0, 0, NULL, NULL}, 1, NULL};
  deep.items = &deep;
  inputs[2] = deep;
  EXPECT(!sdx_session_run_values(session, inputs, 4, NULL, &error));
  EXPECT(strstr(sdx_error_message(error), "nested too deeply"));
  sdx_error_free(error);
  sdx_session_free(session);
  return 0;
}
