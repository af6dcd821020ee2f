//===- MapFunctions.cpp - What compiled code does with maps ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>

using namespace sardonyx::runtime;

/// scores [rows, keys], the keys in ascending order, the column of each -> a
/// sequence of maps, one a row. All share their keys, and the memory of their
/// values.
static void zip(RuntimeCall &call) {
  auto scores = call.tensor<float>();
  auto keys = call.tensor<int64_t>();
  auto columns = call.tensor<int64_t>();
  int64_t rows = scores.sizes[0], width = keys.count();
  std::shared_ptr<void> sharedKeys = call.allocate(width * sizeof(int64_t));
  std::shared_ptr<void> values = call.allocate(rows * width * sizeof(float));
  if (!sharedKeys || !values)
    return;
  std::copy(keys.begin(), keys.end(), static_cast<int64_t *>(sharedKeys.get()));
  auto *to = static_cast<float *>(values.get());
  std::vector<ListItem> items;
  items.reserve(2 * rows);
  for (int64_t r = 0; r < rows; ++r, to += width) {
    for (int64_t k = 0; k < width; ++k)
      to[k] = scores.data[r * width + columns.data[k]];
    items.push_back({sharedKeys, {width}});
    items.push_back({std::shared_ptr<void>(values, to), {width}});
  }
  *call.tensor<int64_t>().data = call.lists().add(List(std::move(items)));
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_map_zip, zip)
