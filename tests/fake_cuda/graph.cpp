// The fake driver's functions on captured streams and graphs. A graph remembers its kernels by
// their handles, as a driver does: one that was unloaded meanwhile is a crash there, an error here.
#include <algorithm>

#include "tests/fake_cuda/driver.hpp"

using namespace fake_cuda;

EXPORT int cuStreamBeginCapture_v2(abi::Stream stream, int) {
  ENTER(cuStreamBeginCapture);
  if (stream == nullptr || check_stream(stream) != 0) return invalid_handle;
  if (stream->recording != nullptr) return invalid_value;
  stream->recording = new CudaGraph;
  driver().graphs.insert(stream->recording);
  ++driver().state.graphs;
  return 0;
}

EXPORT int cuStreamEndCapture(abi::Stream stream, abi::Graph* graph) {
  ENTER(cuStreamEndCapture);
  if (stream == nullptr || check_stream(stream) != 0) return invalid_handle;
  *graph = std::exchange(stream->recording, nullptr);
  return *graph == nullptr ? invalid_value : 0;
}

EXPORT int cuStreamGetCaptureInfo_v2(abi::Stream stream, int* status, std::uint64_t* id,
                                     abi::Graph* graph, const abi::GraphNode**, std::size_t*) {
  ENTER(cuStreamGetCaptureInfo);
  if (stream == nullptr || check_stream(stream) != 0) return invalid_handle;
  *status = stream->recording == nullptr ? 0 : 1;
  if (id != nullptr) *id = 1;
  if (graph != nullptr) *graph = stream->recording;
  return 0;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, capture_mode);
  return 0;
}

EXPORT int cuUserObjectCreate(abi::UserObject* object, void* pointer, void (*destroy)(void*),
                              unsigned, unsigned) {
  ENTER(cuUserObjectCreate);
  *object = new abi::CudaUserObject{{pointer, destroy}};
  return 0;
}

EXPORT int cuGraphRetainUserObject(abi::Graph graph, abi::UserObject object, unsigned,
                                   unsigned flags) {
  ENTER(cuGraphRetainUserObject);
  if (driver().graphs.count(graph) == 0) return invalid_handle;
  if (flags != abi::graph_user_object_move) return invalid_value;
  graph->kept.push_back(object->object);
  delete object;
  return 0;
}

EXPORT int cuGraphInstantiateWithFlags(abi::Graph* executable, abi::Graph graph,
                                       unsigned long long) {
  ENTER(cuGraphInstantiate);
  if (driver().graphs.count(graph) == 0) return invalid_handle;
  *executable = new CudaGraph(*graph);
  driver().graphs.insert(*executable);
  ++driver().state.graphs;
  return 0;
}

EXPORT int cuGraphLaunch(abi::Graph executable, abi::Stream stream) {
  ENTER(cuGraphLaunch);
  if (driver().graphs.count(executable) == 0) return invalid_handle;
  if (const int bad = check_stream(stream); bad != 0) return bad;
  for (const void* kernel : executable->kernels) {
    if (driver().kernel_handles.count(kernel) == 0) return invalid_handle;
    static_cast<CudaKernel*>(const_cast<void*>(kernel))->may_run = true;
  }
  return 0;
}

/// Also of one that was instantiated.
EXPORT int cuGraphDestroy(abi::Graph graph) {
  ENTER(cuGraphDestroy);
  if (driver().graphs.erase(graph) == 0) return invalid_handle;
  delete graph;
  --driver().state.graphs;
  return 0;
}

std::span<const fake_cuda::Entry> fake_cuda::graph_entries() {
  static const Entry entries[] = {
      ENTRY_V2(cuStreamBeginCapture, 10010),
      ENTRY(cuStreamEndCapture, 10000),
      ENTRY_V2(cuStreamGetCaptureInfo, 11030),
      ENTRY(cuThreadExchangeStreamCaptureMode, 10010),
      ENTRY(cuUserObjectCreate, 11030),
      ENTRY(cuGraphRetainUserObject, 11030),
      ENTRY(cuGraphInstantiateWithFlags, 11040),
      ENTRY(cuGraphLaunch, 10000),
      ENTRY(cuGraphDestroy, 10000),
  };
  return entries;
}
