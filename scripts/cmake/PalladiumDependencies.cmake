# What the components are linked with, as targets of ours, so that they never meet those that a
# project which adds this one has of the same libraries:
#   Threads::Threads                             everywhere
#   palladium_fmt                                headers only, everywhere
#   palladium_zstd, palladium_crypto             from their archives, so that libpalladium.so never
#                                                meets the user's own copies
#   palladium_cuda_headers                       cuda.h only: libcuda and libnvrtc are opened at run time
#   palladium_nvtx                               NVTX 3, headers only; nothing where there is none
#   palladium_spdlog                             headers only; Debian's target would bring libfmt.so
#   palladium_json, palladium_cli11              headers only
# All but the first are looked for when a component first asks, by palladium_need(<target>).
find_package(Threads REQUIRED)

# Where a header, or an archive, of a dependency is, in a cache variable: PALLADIUM_<name>_INCLUDE or
# PALLADIUM_<name>_ARCHIVE.
function(palladium_find_include name header)
  find_path(PALLADIUM_${name}_INCLUDE ${header} REQUIRED)
  mark_as_advanced(PALLADIUM_${name}_INCLUDE)
endfunction()
function(palladium_find_archive name file)
  find_library(PALLADIUM_${name}_ARCHIVE ${file} REQUIRED)
  mark_as_advanced(PALLADIUM_${name}_ARCHIVE)
endfunction()

function(palladium_need target)
  if(TARGET ${target})
    return()
  endif()
  set(definitions "")
  set(libraries "")
  if(target STREQUAL palladium_fmt)
    palladium_find_include(FMT fmt/format.h)
    set(include ${PALLADIUM_FMT_INCLUDE})
    set(definitions FMT_HEADER_ONLY=1)
  elseif(target STREQUAL palladium_json)
    palladium_find_include(JSON nlohmann/json.hpp)
    set(include ${PALLADIUM_JSON_INCLUDE})
  elseif(target STREQUAL palladium_cli11)
    palladium_find_include(CLI11 CLI/CLI.hpp)
    set(include ${PALLADIUM_CLI11_INCLUDE})
  elseif(target STREQUAL palladium_spdlog)
    palladium_need(palladium_fmt)
    palladium_find_include(SPDLOG spdlog/spdlog.h)
    set(include ${PALLADIUM_SPDLOG_INCLUDE})
    set(libraries palladium_fmt Threads::Threads)
    set(definitions SPDLOG_FMT_EXTERNAL)
  elseif(target STREQUAL palladium_zstd)
    palladium_find_include(ZSTD zstd.h)
    palladium_find_archive(ZSTD libzstd.a)
    set(include ${PALLADIUM_ZSTD_INCLUDE})
    set(libraries ${PALLADIUM_ZSTD_ARCHIVE})
  elseif(target STREQUAL palladium_crypto)
    palladium_find_include(CRYPTO openssl/sha.h)
    palladium_find_archive(CRYPTO libcrypto.a)
    set(include ${PALLADIUM_CRYPTO_INCLUDE})
    set(libraries ${PALLADIUM_CRYPTO_ARCHIVE} Threads::Threads ${CMAKE_DL_LIBS})
  elseif(target STREQUAL palladium_cuda_headers)
    find_program(PALLADIUM_NVCC nvcc)
    mark_as_advanced(PALLADIUM_NVCC)
    if(PALLADIUM_NVCC)
      file(REAL_PATH ${PALLADIUM_NVCC} nvcc)
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
  # Those of an imported target are given with -isystem.
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${include}"
    INTERFACE_LINK_LIBRARIES "${libraries}"
    INTERFACE_COMPILE_DEFINITIONS "${definitions}")
endfunction()
palladium_need(palladium_fmt)
