//===- CustomFunctions.cpp - Calls of operators that callers brought ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results whose sizes only the call tells come as a list of one tensor each,
// which is emptied when the tensor is taken: in a loop they would pile up.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <cstring>

using namespace sardonyx::runtime;

/// number of the node, and what CustomNodes::compute reads.
static void custom(RuntimeCall &call) {
  int64_t node = call.number();
  if (CustomNodes *nodes = call.context().customNodes())
    nodes->compute(node, call);
  else
    call.fail("the session has no custom operators");
  call.context().poll();
}

/// list, position, element bytes -> that item, which leaves the list.
static void take(RuntimeCall &call) {
  int64_t handle = *call.tensor<int64_t>().data;
  auto position = static_cast<size_t>(*call.tensor<int64_t>().data);
  int64_t elementBytes = call.number();
  auto out = call.tensor<char>();
  const List *list = call.lists().find(handle);
  if (!list || position >= list->size() ||
      (*list)[position].count() != out.count())
    return call.fail("a result of the operator is of another size");
  memcpy(out.data, (*list)[position].data.get(), out.count() * elementBytes);
  call.lists().drop(handle);
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_custom, custom)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_custom_take, take)
