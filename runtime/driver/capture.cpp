#include "runtime/driver/capture.hpp"

#include <utility>

#include "codegen/base/log.hpp"

namespace palladium::driver {

bool is_capturing(StreamHandle stream) {
  // The default stream cannot be captured, and asking about it would spoil the capture of another.
  if (stream == nullptr) return false;
  int status = 0;
  check(api().cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
  return status == abi::capture_active;
}

void keep_while_captured(StreamHandle stream, std::shared_ptr<const void> kept) {
  if (!is_capturing(stream)) return;
  int status = 0;
  abi::Graph graph = nullptr;
  check(api().cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr),
        "cuStreamGetCaptureInfo");
  using Kept = std::shared_ptr<const void>;
  auto held = std::make_unique<Kept>(std::move(kept));
  abi::UserObject object = nullptr;
  check(api().cuUserObjectCreate(
            &object, held.get(), [](void* mine) { delete static_cast<Kept*>(mine); }, 1,
            abi::user_object_no_destructor_sync),
        "cuUserObjectCreate");
  (void)held.release();
  check(api().cuGraphRetainUserObject(graph, object, 1, abi::graph_user_object_move),
        "cuGraphRetainUserObject");
}

RelaxedCapture::RelaxedCapture() {
  check(api().cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
}

RelaxedCapture::~RelaxedCapture() {
  const abi::Result result = api().cuThreadExchangeStreamCaptureMode(&mode_);
  if (result != abi::success && result != abi::deinitialized)
    log::error("cuThreadExchangeStreamCaptureMode: " + describe(result));
}

}  // namespace palladium::driver
