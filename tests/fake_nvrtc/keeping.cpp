// The real NVRTC, which FAKE_NVRTC_REAL names, with a memory: the text of every kernel is kept for
// the fake driver, which has nothing else to compute from. Where: tests/fake_cuda/texts.hpp.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

#include "tests/fake_cuda/texts.hpp"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
std::map<void*, std::string>& sources() {
  static auto& all = *new std::map<void*, std::string>;
  return all;
}

void* real(const char* name) {
  static void* const library = [] {
    const char* path = ::getenv("FAKE_NVRTC_REAL");
    void* opened = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      ::fprintf(stderr, "FAKE_NVRTC_REAL names no NVRTC: %s\n", ::dlerror());
      ::abort();
    }
    return opened;
  }();
  return ::dlsym(library, name);
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(real(name))(arguments...);
}

/// The kernel's own text, which stands behind the prelude.
void keep(const std::string& source, const void* cubin) {
  const std::string file = fake_cuda::text_file(cubin);
  const std::string mark = "#line 1 \"kernel.cu\"\n";
  const std::size_t at = source.rfind(mark);
  if (file.empty() || at == source.npos) return;
  const std::string temporary = file + "." + std::to_string(::getpid());
  if (std::FILE* out = ::fopen(temporary.c_str(), "w")) {
    ::fputs(source.c_str() + at + mark.size(), out);
    ::fclose(out);
    ::rename(temporary.c_str(), file.c_str());
  }
}

}  // namespace

FAKE_API const char* nvrtcGetErrorString(int code) {
  return reinterpret_cast<const char* (*)(int)>(real("nvrtcGetErrorString"))(code);
}
FAKE_API int nvrtcVersion(int* major, int* minor) { return call("nvrtcVersion", major, minor); }
FAKE_API int nvrtcGetNumSupportedArchs(int* count) {
  return call("nvrtcGetNumSupportedArchs", count);
}
FAKE_API int nvrtcGetSupportedArchs(int* numbers) {
  return call("nvrtcGetSupportedArchs", numbers);
}
FAKE_API int nvrtcCreateProgram(void** program, const char* source, const char* name, int headers,
                                const char* const* texts, const char* const* names) {
  const int code = call("nvrtcCreateProgram", program, source, name, headers, texts, names);
  const std::lock_guard lock(mutex);
  if (code == 0) sources()[*program] = source;
  return code;
}
FAKE_API int nvrtcDestroyProgram(void** program) {
  {
    const std::lock_guard lock(mutex);
    sources().erase(*program);
  }
  return call("nvrtcDestroyProgram", program);
}
FAKE_API int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  return call("nvrtcCompileProgram", program, count, options);
}
FAKE_API int nvrtcGetProgramLogSize(void* program, std::size_t* size) {
  return call("nvrtcGetProgramLogSize", program, size);
}
FAKE_API int nvrtcGetProgramLog(void* program, char* log) {
  return call("nvrtcGetProgramLog", program, log);
}
FAKE_API int nvrtcGetPTXSize(void* program, std::size_t* size) {
  return call("nvrtcGetPTXSize", program, size);
}
FAKE_API int nvrtcGetPTX(void* program, char* ptx) { return call("nvrtcGetPTX", program, ptx); }
FAKE_API int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return call("nvrtcGetCUBINSize", program, size);
}
FAKE_API int nvrtcGetCUBIN(void* program, char* cubin) {
  const int code = call("nvrtcGetCUBIN", program, cubin);
  const std::lock_guard lock(mutex);
  if (code == 0) keep(sources()[program], cubin);
  return code;
}
