//===- DriverStreams.cpp - The fake CUDA driver: streams and events -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/fakecuda/DriverState.h"
#include <algorithm>

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::fakecuda;

CUresult cuda::cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
                                          int) {
  DriverState &state = DriverState::get();
  return state.call("cuStreamCreateWithPriority", Needs::Context, [&] {
    if (flags != CU_STREAM_NON_BLOCKING)
      return state.tell(CUDA_ERROR_NOT_SUPPORTED,
                        "streams that wait for the default stream are not "
                        "supported");
    state.streams.push_back(std::make_unique<CUstream_st>());
    *stream = state.streams.back().get();
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuStreamSynchronize(CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuStreamSynchronize", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    return stream ? state.drain(stream) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuda::cuStreamDestroy(CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuStreamDestroy", Needs::Context, [&] {
    auto found =
        std::find_if(state.streams.begin(), state.streams.end(),
                     [&](const auto &known) { return known.get() == handle; });
    if (found == state.streams.end())
      return CUDA_ERROR_INVALID_HANDLE;
    CUresult code = state.drain(handle);
    state.streams.erase(found);
    return code;
  });
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

CUresult cuda::cuEventCreate(CUevent *event, unsigned int flags) {
  DriverState &state = DriverState::get();
  return state.call("cuEventCreate", Needs::Context, [&] {
    *event = new CUevent_st{!(flags & CU_EVENT_DISABLE_TIMING), nullptr};
    state.events.insert(*event);
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuEventDestroy(CUevent event) {
  DriverState &state = DriverState::get();
  return state.call("cuEventDestroy", Needs::Context, [&] {
    if (!state.events.erase(event))
      return CUDA_ERROR_INVALID_HANDLE;
    delete event;
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuEventRecord(CUevent event, CUstream handle) {
  DriverState &state = DriverState::get();
  return state.call("cuEventRecord", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream || !state.events.count(event))
      return CUDA_ERROR_INVALID_HANDLE;
    event->record = std::make_shared<EventRecord>();
    event->record->stream = stream;
    state.push(stream, [record = event->record] {
      record->isDone = true;
      record->time = std::chrono::steady_clock::now();
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int) {
  DriverState &state = DriverState::get();
  return state.call("cuStreamWaitEvent", Needs::Context, [&] {
    CUstream stream = state.find(handle);
    if (!stream || !state.events.count(event))
      return CUDA_ERROR_INVALID_HANDLE;
    if (event->record && !event->record->isDone)
      stream->queue.push_back({event->record, nullptr});
    return CUDA_SUCCESS;
  });
}

CUresult cuda::cuEventSynchronize(CUevent event) {
  DriverState &state = DriverState::get();
  return state.call("cuEventSynchronize", Needs::Context, [&] {
    if (!state.events.count(event))
      return CUDA_ERROR_INVALID_HANDLE;
    while (event->record && !event->record->isDone && !state.isLost())
      state.advance(event->record->stream);
    return state.loss();
  });
}

CUresult cuda::cuEventQuery(CUevent event) {
  DriverState &state = DriverState::get();
  return state.call("cuEventQuery", Needs::Context, [&] {
    if (!state.events.count(event))
      return CUDA_ERROR_INVALID_HANDLE;
    if (!event->record || event->record->isDone)
      return CUDA_SUCCESS;
    // Who asks often enough sees the work end.
    state.advance(event->record->stream);
    return state.isLost() ? state.loss() : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuda::cuEventElapsedTime(float *milliseconds, CUevent start,
                                  CUevent end) {
  DriverState &state = DriverState::get();
  return state.call("cuEventElapsedTime", Needs::Context, [&] {
    for (CUevent event : {start, end})
      if (!state.events.count(event) || !event->isTimed || !event->record)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!start->record->isDone || !end->record->isDone)
      return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(
                        end->record->time - start->record->time)
                        .count();
    return CUDA_SUCCESS;
  });
}
