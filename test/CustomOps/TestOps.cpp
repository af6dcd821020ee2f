//===- TestOps.cpp - A library of custom operators, for tests -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators of the domain "test". Those whose name begins with Bad do wrong
// what an operator can do wrong.
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/CustomOps.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

static const sdx_op_api *api;

static int64_t count(sdx_op_call *call, int32_t input) {
  int64_t elements = 1;
  for (int32_t i = 0; i < api->input_rank(call, input); ++i)
    elements *= api->input_sizes(call, input)[i];
  return elements;
}

/// Memory for a result like an input.
static void *outputLike(sdx_op_call *call, int32_t index, int32_t input) {
  return api->output(call, index, api->input_type(call, input),
                     api->input_rank(call, input),
                     api->input_sizes(call, input));
}

static int32_t inferLike(void *, sdx_op_call *call) {
  for (int32_t i = 0; i < api->output_count(call); ++i)
    api->set_output_type(call, i, api->input_type(call, 0),
                         api->input_rank(call, 0), api->input_sizes(call, 0));
  return 0;
}

//===----------------------------------------------------------------------===//
// Sum: y = scale * (x0 + x1 + ...), of any number of inputs of one shape
//===----------------------------------------------------------------------===//

static int32_t sum(void *, void *, sdx_op_call *call) {
  float scale = 1;
  api->attribute_float(call, "scale", &scale);
  auto *y = static_cast<float *>(outputLike(call, 0, 0));
  if (!y)
    return 1;
  int64_t n = count(call, 0);
  std::fill(y, y + n, 0.0f);
  for (int32_t k = 0; k < api->input_count(call); ++k) {
    if (!api->has_input(call, k))
      continue;
    if (count(call, k) != n) {
      api->fail(call, "the inputs differ in size");
      return 1;
    }
    auto *x = static_cast<const float *>(api->input_data(call, k));
    for (int64_t i = 0; i < n; ++i)
      y[i] += scale * x[i];
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Positive: the positive elements and their places, of a size that the run
// tells; the places may be left out
//===----------------------------------------------------------------------===//

static int32_t inferPositive(void *, sdx_op_call *call) {
  const int64_t open = -1;
  api->set_output_type(call, 0, api->input_type(call, 0), 1, &open);
  return api->set_output_type(call, 1, SDX_OP_INT64, 1, &open);
}

static int32_t positive(void *, void *, sdx_op_call *call) {
  auto *x = static_cast<const float *>(api->input_data(call, 0));
  int64_t n = count(call, 0);
  auto *places = static_cast<int64_t *>(api->scratch(call, n * 8));
  if (!places)
    return 1;
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i)
    if (x[i] > 0)
      places[found++] = i;
  auto *y = static_cast<float *>(api->output(call, 0, SDX_OP_FLOAT, 1, &found));
  if (!y)
    return 1;
  for (int64_t i = 0; i < found; ++i)
    y[i] = x[places[i]];
  if (!api->has_output(call, 1))
    return 0;
  void *out = api->output(call, 1, SDX_OP_INT64, 1, &found);
  if (!out)
    return 1;
  memcpy(out, places, found * 8);
  return 0;
}

//===----------------------------------------------------------------------===//
// Join: all strings of a tensor in one, with the attribute between them
//===----------------------------------------------------------------------===//

static int32_t inferJoin(void *, sdx_op_call *call) {
  return api->set_output_type(call, 0, SDX_OP_STRING, 0, nullptr);
}

static int32_t join(void *, void *, sdx_op_call *call) {
  sdx_op_string between = {"", 0};
  api->attribute_string(call, "between", &between);
  auto *x = static_cast<const sdx_op_string *>(api->input_data(call, 0));
  std::string text;
  for (int64_t i = 0; i < count(call, 0); ++i)
    text += (i ? std::string(between.data, between.size) : "") +
            std::string(x[i].data, x[i].size);
  if (!api->output(call, 0, SDX_OP_STRING, 0, nullptr))
    return 1;
  return api->set_string(call, 0, 0, text.data(), text.size());
}

//===----------------------------------------------------------------------===//
// Describe: all attributes as numbers, in one row
//===----------------------------------------------------------------------===//

static int32_t inferRow(void *, sdx_op_call *call) {
  const int64_t open = -1;
  return api->set_output_type(call, 0, SDX_OP_DOUBLE, 1, &open);
}

static int32_t describeAttributes(void *, void *, sdx_op_call *call) {
  std::vector<double> row;
  int64_t i;
  float f;
  if (api->attribute_int(call, "i", &i))
    row.push_back(double(i));
  if (api->attribute_float(call, "f", &f))
    row.push_back(f);
  const int64_t *is;
  const float *fs;
  const sdx_op_string *ss;
  size_t n;
  if (api->attribute_ints(call, "is", &is, &n))
    row.insert(row.end(), is, is + n);
  if (api->attribute_floats(call, "fs", &fs, &n))
    row.insert(row.end(), fs, fs + n);
  if (api->attribute_strings(call, "ss", &ss, &n))
    for (size_t k = 0; k < n; ++k)
      row.push_back(double(ss[k].size));
  int32_t type, rank;
  const int64_t *sizes;
  const void *data;
  if (api->attribute_tensor(call, "t", &type, &rank, &sizes, &data) &&
      type == SDX_OP_INT32 && rank == 1)
    for (int64_t k = 0; k < sizes[0]; ++k)
      row.push_back(static_cast<const int32_t *>(data)[k]);
  row.push_back(double(api->opset_version(call)));
  int64_t size = int64_t(row.size());
  void *y = api->output(call, 0, SDX_OP_DOUBLE, 1, &size);
  if (!y)
    return 1;
  memcpy(y, row.data(), size * 8);
  return 0;
}

//===----------------------------------------------------------------------===//
// Count: how often its node was run; the state counts itself in g_states
//===----------------------------------------------------------------------===//

static std::atomic<int64_t> states{0};

extern "C" __attribute__((visibility("default"))) int64_t test_states(void) {
  return states;
}

static int32_t createCounter(void *, sdx_op_call *call, void **state) {
  int64_t first = 0;
  api->attribute_int(call, "first", &first);
  if (first < 0) {
    api->fail(call, "it cannot count from below zero");
    return 1;
  }
  *state = new int64_t(first);
  ++states;
  return 0;
}

static void destroyCounter(void *, void *state) {
  delete static_cast<int64_t *>(state);
  --states;
}

static int32_t inferCount(void *, sdx_op_call *call) {
  return api->set_output_type(call, 0, SDX_OP_INT64, 0, nullptr);
}

static int32_t countRuns(void *, void *state, sdx_op_call *call) {
  auto *y =
      static_cast<int64_t *>(api->output(call, 0, SDX_OP_INT64, 0, nullptr));
  if (!y)
    return 1;
  *y = (*static_cast<int64_t *>(state))++;
  return 0;
}

//===----------------------------------------------------------------------===//
// What goes wrong
//===----------------------------------------------------------------------===//

static int32_t throwing(void *, void *, sdx_op_call *) {
  throw std::runtime_error("not today");
}

static int32_t silent(void *, void *, sdx_op_call *) { return 7; }

static int32_t givesNothing(void *, void *, sdx_op_call *) { return 0; }

/// What the attribute asks for.
static int32_t wrong(void *, void *, sdx_op_call *call) {
  int64_t what = 0;
  api->attribute_int(call, "what", &what);
  const int64_t sizes[] = {2, 3}, negative = -4, huge = INT64_MAX / 2;
  switch (what) {
  case 0: // type
    api->output(call, 0, SDX_OP_DOUBLE, 1, sizes);
    break;
  case 1: // rank
    api->output(call, 0, SDX_OP_FLOAT, 2, sizes);
    break;
  case 2: // size
    api->output(call, 0, SDX_OP_FLOAT, 1, &negative);
    break;
  case 3: // more than there is
    api->output(call, 0, SDX_OP_FLOAT, 1, &huge);
    break;
  case 4: // a result that is not there
    api->output(call, 5, SDX_OP_FLOAT, 1, sizes);
    break;
  case 5: // twice
    outputLike(call, 0, 0);
    outputLike(call, 0, 0);
    break;
  case 6: // not of strings
    outputLike(call, 0, 0);
    return api->set_string(call, 0, 0, "x", 1);
  case 7:
    api->scratch(call, -1);
    break;
  case 8: // in a run
    return api->set_output_type(call, 0, SDX_OP_FLOAT, 1, sizes);
  case 9:
    return inferPositive(nullptr, call);
  default: // no such input, no such attribute
    if (api->input_data(call, 9) || api->input_sizes(call, -1) ||
        api->input_rank(call, 9) != -1 || api->has_input(call, -1) ||
        api->attribute_int(call, "none", &what) ||
        api->attribute_int(call, nullptr, &what))
      return 1;
    return outputLike(call, 0, 0) ? 0 : 1;
  }
  return 0;
}

static int32_t inferUnranked(void *, sdx_op_call *call) {
  return api->set_output_type(call, 0, SDX_OP_FLOAT, -1, nullptr);
}
static int32_t inferNonsense(void *, sdx_op_call *call) {
  const int64_t size = -7;
  return api->set_output_type(call, 0, SDX_OP_FLOAT, 1, &size);
}
static int32_t inferNoType(void *, sdx_op_call *call) {
  return api->set_output_type(call, 0, 999, 0, nullptr);
}
static int32_t inferFails(void *, sdx_op_call *call) {
  api->fail(call, "it wants a matrix");
  return 1;
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

static int32_t add(sdx_op_registry *registry, const char *name,
                   int32_t (*infer)(void *, sdx_op_call *),
                   int32_t (*compute)(void *, void *, sdx_op_call *),
                   int32_t maxInputs = 1, int32_t maxOutputs = 1,
                   uint32_t flags = 0) {
  sdx_op op = {};
  op.abi_version = SDX_OP_ABI_VERSION;
#ifdef VARIANT_WrongVersion
  op.abi_version = 99;
#endif
  op.flags = flags;
  op.domain = "test";
  op.name = name;
  op.since_version = 1;
  op.min_inputs = maxInputs == 0 ? 0 : 1;
  op.max_inputs = maxInputs;
  op.min_outputs = 1;
  op.max_outputs = maxOutputs;
  op.infer = infer;
  op.compute = compute;
  if (!strcmp(name, "Count")) {
    op.create = createCounter;
    op.destroy = destroyCounter;
  }
  return api->add(registry, &op);
}

extern "C" __attribute__((visibility("default"))) int32_t
sardonyx_register_custom_ops(const sdx_op_api *given,
                             sdx_op_registry *registry) {
  api = given;
#ifdef VARIANT_Empty
  return 0;
#endif
#ifdef VARIANT_Failing
  api->fail_registration(registry, "the licence has run out");
  return 1;
#endif
  add(registry, "Sum", inferLike, sum, -1);
  add(registry, "Positive", inferPositive, positive, 1, 2);
  add(registry, "Join", inferJoin, join);
  add(registry, "Describe", inferRow, describeAttributes, 0);
  add(registry, "Count", inferCount, countRuns, 0, 1,
      SDX_OP_STATEFUL | SDX_OP_ONE_THREAD);
  add(registry, "Declared", nullptr, sum, -1);
  add(registry, "BadThrows", inferLike, throwing);
  add(registry, "BadSilent", inferLike, silent);
  add(registry, "BadNothing", inferLike, givesNothing);
  add(registry, "BadResult", inferLike, wrong);
  add(registry, "BadUnranked", inferUnranked, sum);
  add(registry, "BadSize", inferNonsense, sum);
  add(registry, "BadType", inferNoType, sum);
  return add(registry, "BadInfer", inferFails, sum);
}
