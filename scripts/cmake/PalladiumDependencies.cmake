# What the components are linked with, as targets:
#   fmt::fmt-header-only, Threads::Threads       everywhere
#   palladium_zstd, palladium_crypto             from their archives, so that libpalladium.so never
#                                                meets the user's own copies
#   palladium_cuda_headers                       cuda.h only: libcuda and libnvrtc are opened at run time
#   palladium_nvtx                               NVTX 3, headers only; nothing where there is none
#   palladium_spdlog                             headers only; Debian's target would bring libfmt.so
#   nlohmann_json::nlohmann_json
# All but the first line are looked for when a component first asks, by palladium_need(<target>); the
# last one by palladium_need(nlohmann_json).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

function(palladium_need target)
  if(TARGET ${target})
    return()
  endif()
  if(target STREQUAL nlohmann_json)
    find_package(nlohmann_json REQUIRED GLOBAL)
    return()
  endif()
  set(definitions "")
  if(target STREQUAL palladium_spdlog)
    find_path(SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
    set(include ${SPDLOG_INCLUDE})
    set(libraries fmt::fmt-header-only Threads::Threads)
    set(definitions SPDLOG_FMT_EXTERNAL)
  elseif(target STREQUAL palladium_zstd)
    find_path(ZSTD_INCLUDE zstd.h REQUIRED)
    find_library(ZSTD_ARCHIVE libzstd.a REQUIRED)
    set(include ${ZSTD_INCLUDE})
    set(libraries ${ZSTD_ARCHIVE})
  elseif(target STREQUAL palladium_crypto)
    find_path(CRYPTO_INCLUDE openssl/sha.h REQUIRED)
    find_library(CRYPTO_ARCHIVE libcrypto.a REQUIRED)
    set(include ${CRYPTO_INCLUDE})
    set(libraries ${CRYPTO_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})
  elseif(target STREQUAL palladium_cuda_headers)
    find_program(NVCC nvcc)
    if(NVCC)
      file(REAL_PATH ${NVCC} nvcc)
      cmake_path(GET nvcc PARENT_PATH toolkit)
      cmake_path(GET toolkit PARENT_PATH toolkit)
    endif()
    # What pip made of the wheels: .deps/nvidia/cu13, and cuda_runtime before CUDA 13.
    file(GLOB wheels ${PROJECT_SOURCE_DIR}/.deps/nvidia/*)
    find_path(PALLADIUM_CUDA_INCLUDE cuda.h
      HINTS $ENV{CUDA_HOME} /usr/local/cuda ${toolkit} ${wheels}
      PATH_SUFFIXES include targets/x86_64-linux/include REQUIRED)
    set(include ${PALLADIUM_CUDA_INCLUDE})
    set(libraries ${CMAKE_DL_LIBS})
  elseif(target STREQUAL palladium_nvtx)
    find_path(PALLADIUM_NVTX_INCLUDE nvtx3/nvToolsExt.h
      HINTS ${PALLADIUM_CUDA_INCLUDE} $ENV{CUDA_HOME} /usr/local/cuda
      PATH_SUFFIXES include targets/x86_64-linux/include)
    set(include "")
    set(libraries ${CMAKE_DL_LIBS})
    if(PALLADIUM_NVTX_INCLUDE)
      set(include ${PALLADIUM_NVTX_INCLUDE})
      set(definitions PALLADIUM_HAS_NVTX)
    else()
      message(STATUS "no nvtx3/nvToolsExt.h: PALLADIUM_NVTX=1 will do nothing")
    endif()
  else()
    message(FATAL_ERROR "no dependency is named ${target}")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${include}"  # of an imported target: system headers
    INTERFACE_LINK_LIBRARIES "${libraries}"
    INTERFACE_COMPILE_DEFINITIONS "${definitions}")
endfunction()
