#include "tests/fake_nvtx/fake_nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

fake_nvtx::State& the_state() {
  static auto& state = *new fake_nvtx::State;
  return state;
}

const std::string& name_of(nvtxDomainHandle_t domain) {
  return *reinterpret_cast<const std::string*>(domain);
}

void record(nvtxDomainHandle_t domain, const std::string& pushed) {
  fake_nvtx::State& s = the_state();
  const std::lock_guard lock(s.mutex);
  s.events.push_back({std::this_thread::get_id(), name_of(domain), pushed});
}

nvtxDomainHandle_t create(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(new std::string(text));
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool is_registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  record(domain, is_registered
                     ? *reinterpret_cast<const std::string*>(attributes->message.registered)
                     : "not registered");
  return 0;
}

int pop(nvtxDomainHandle_t domain) {
  record(domain, "");
  return 0;
}

template <class F>
void set(NvtxFunctionTable table, NvtxCallbackIdCore2 which, F* function) {
  *table[which] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

FAKE_API fake_nvtx::State* fake_nvtx_state() { return &the_state(); }

FAKE_API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
      size <= NVTX_CBID_CORE2_DomainCreateA)
    return 0;
  set(table, NVTX_CBID_CORE2_DomainCreateA, create);
  set(table, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  set(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  the_state().is_attached = true;
  return 1;
}
