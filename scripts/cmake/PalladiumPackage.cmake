# `cpack` in a build folder makes a package of what is built there: on Debian and what descends from it
# palladium_<version>_<architecture>.deb, else an archive.
set(CPACK_PACKAGE_NAME palladium)
set(CPACK_PACKAGE_VENDOR Palladium)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "kernel language in C++20 and its CUDA JIT runtime")
set(CPACK_PACKAGE_DESCRIPTION
"Palladium is JAX Pallas for C++: kernels are lambdas over blocks of arrays,
recorded once, emitted as CUDA C++, compiled by NVRTC and kept in a cache.
Without a GPU they run in an interpreter, and their CUDA C++ in an emulator.
.
This package has the library, its headers, its compile helper and the command
line tool. Kernels for a GPU are compiled by NVIDIA's NVRTC 12.9 or newer,
those of the emulator by a C++ compiler.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
# Whoever gives a package to others names themselves: -DCPACK_PACKAGE_CONTACT="Name <address>".
set(CPACK_PACKAGE_CONTACT "Palladium maintainers <palladium@localhost>" CACHE STRING
  "Maintainer of the packages that cpack makes")

find_program(PALLADIUM_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(PALLADIUM_DPKG_SHLIBDEPS)
set(CPACK_GENERATOR TGZ)
if(PALLADIUM_DPKG_SHLIBDEPS AND CMAKE_LIBRARY_ARCHITECTURE)
  set(CPACK_GENERATOR DEB)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Those of the C and C++ libraries as dpkg-shlibdeps finds them; it must not ask who owns our own.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ (>= 4:12) | clang-16")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cuda-nvrtc-13-0 | cuda-nvrtc-12-9")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/scripts/cmake/palladium_cpack.cmake)
include(CPack)
