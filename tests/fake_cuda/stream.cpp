// The fake driver's functions on streams and events.
#include <atomic>

#include "tests/fake_cuda/driver.hpp"

using namespace fake_cuda;

EXPORT int cuStreamCreate(abi::Stream* stream, unsigned) {
  ENTER_WITH_CONTEXT(cuStreamCreate);
  *stream = new CudaStream{contexts.back()->device};
  driver().streams.insert(*stream);
  ++driver().state.streams;
  return 0;
}

EXPORT int cuStreamDestroy_v2(abi::Stream stream) {
  ENTER(cuStreamDestroy);
  if (driver().streams.erase(stream) == 0) return invalid_handle;
  delete stream;
  --driver().state.streams;
  return 0;
}

EXPORT int cuStreamSynchronize(abi::Stream stream) {
  ENTER(cuStreamSynchronize);
  wait_for_kernels();
  return check_stream(stream);
}

EXPORT int cuStreamQuery(abi::Stream stream) {
  ENTER(cuStreamQuery);
  if (driver().hangs) return not_ready;
  return check_stream(stream);
}

EXPORT int cuStreamWaitEvent(abi::Stream stream, abi::Event event, unsigned) {
  ENTER(cuStreamWaitEvent);
  if (driver().events.count(event) == 0) return invalid_handle;
  return check_stream(stream);
}

EXPORT int cuStreamIsCapturing(abi::Stream stream, int* status) {
  if (driver().state.recording || !driver().state.results.empty()) {
    ENTER(cuStreamIsCapturing);
  }
  const bool is_recording = stream != nullptr && stream->recording != nullptr;
  *status = driver().state.capturing || is_recording ? 1 : 0;
  return check_stream(stream);
}

EXPORT int cuEventCreate(abi::Event* event, unsigned) {
  ENTER_WITH_CONTEXT(cuEventCreate);
  *event = new CudaEvent;
  driver().events.insert(*event);
  ++driver().state.events;
  return 0;
}

EXPORT int cuEventDestroy_v2(abi::Event event) {
  ENTER(cuEventDestroy);
  if (driver().events.erase(event) == 0) return invalid_handle;
  delete event;
  --driver().state.events;
  return 0;
}

EXPORT int cuEventRecord(abi::Event event, abi::Stream stream) {
  ENTER(cuEventRecord);
  if (driver().events.count(event) == 0) return invalid_handle;
  static std::atomic<int> records = 0;
  event->recorded = true;
  event->order = ++records;
  return check_stream(stream);
}

EXPORT int cuEventQuery(abi::Event event) {
  ENTER(cuEventQuery);
  if (driver().hangs) return not_ready;
  return driver().events.count(event) != 0 ? 0 : invalid_handle;
}

EXPORT int cuEventSynchronize(abi::Event event) {
  ENTER(cuEventSynchronize);
  wait_for_kernels();
  return driver().events.count(event) != 0 ? 0 : invalid_handle;
}

EXPORT int cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  ENTER(cuEventElapsedTime);
  if (driver().events.count(start) == 0 || driver().events.count(end) == 0) return invalid_handle;
  if (!start->recorded || !end->recorded) return invalid_handle;
  *milliseconds = 0.5f * static_cast<float>(end->order - start->order);
  return 0;
}

std::span<const fake_cuda::Entry> fake_cuda::stream_entries() {
  static const Entry entries[] = {
      ENTRY(cuStreamCreate, 2000),      ENTRY_V2(cuStreamDestroy, 4000),
      ENTRY(cuStreamSynchronize, 2000), ENTRY(cuStreamQuery, 2000),
      ENTRY(cuStreamWaitEvent, 3020),   ENTRY(cuStreamIsCapturing, 10000),
      ENTRY(cuEventCreate, 2000),       ENTRY_V2(cuEventDestroy, 4000),
      ENTRY(cuEventRecord, 2000),       ENTRY(cuEventQuery, 2000),
      ENTRY(cuEventSynchronize, 2000),  ENTRY(cuEventElapsedTime, 2000),
  };
  return entries;
}
