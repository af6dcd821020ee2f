//===- DriverLinks.cpp - The fake CUDA driver: cubins of PTX --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/Cubin.h"
#include "tools/fakecuda/DriverState.h"
#include "tools/fakecuda/DriverWork.h"
#include <cstring>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

CUresult cuda::cuLinkCreate(unsigned int count, CUjit_option *options,
                            void **values, CUlinkState *made) {
  DriverState &state = DriverState::get();
  return state.call("cuLinkCreate", Needs::Context, [&] {
    if (!made || (count && (!options || !values)))
      return CUDA_ERROR_INVALID_VALUE;
    *made = new CUlinkState_st();
    (*made)->log = findLog(count, options, values);
    state.links.insert(*made);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuLinkAddData(CUlinkState link, CUjitInputType type, void *data,
                             size_t bytes, const char *, unsigned int,
                             CUjit_option *, void **) {
  DriverState &state = DriverState::get();
  return state.call("cuLinkAddData", Needs::Context, [&] {
    if (!state.links.count(link))
      return CUDA_ERROR_INVALID_HANDLE;
    const char *text = static_cast<const char *>(data);
    if (!text || !bytes || text[bytes - 1] != 0)
      return state.tell(CUDA_ERROR_INVALID_VALUE,
                        "PTX to link does not end in a zero");
    if (type != CU_JIT_INPUT_PTX || !link->text.empty())
      return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                        "one text of PTX can be linked, and nothing else");
    std::string error = checkText(text, state.settings().sm);
    // What it makes of the text is of no use but for its errors.
    Memory scratch;
    if (error.empty() && Module::parse(text, scratch, error))
      error.clear();
    if (!error.empty()) {
      writeLog(link->log, error);
      return state.tell(CUDA_ERROR_INVALID_PTX, error);
    }
    link->text = text;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuLinkComplete(CUlinkState link, void **cubin, size_t *bytes) {
  DriverState &state = DriverState::get();
  return state.call("cuLinkComplete", Needs::Context, [&] {
    if (!state.links.count(link))
      return CUDA_ERROR_INVALID_HANDLE;
    if (!cubin || link->text.empty())
      return CUDA_ERROR_INVALID_VALUE;
    link->cubin = makeCubin(link->text, state.settings().sm, /*isOwn=*/false);
    *cubin = link->cubin.data();
    if (bytes)
      *bytes = link->cubin.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuLinkDestroy(CUlinkState link) {
  DriverState &state = DriverState::get();
  return state.call("cuLinkDestroy", Needs::Context, [&] {
    if (!state.links.erase(link))
      return CUDA_ERROR_INVALID_HANDLE;
    delete link;
    return CUDA_SUCCESS;
  });
}
