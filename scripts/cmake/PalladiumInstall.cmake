# `cmake --install`: headers, libpalladium.so, its compile helper, the CLI, and what find_package(palladium) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/palladium DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
install(TARGETS palladium_library EXPORT palladium)
if(TARGET palladium_cli)
  set_target_properties(palladium_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS palladium_cli)
endif()

# Where codegen/nvrtc looks for it.
install(TARGETS palladium_compile RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/palladium)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/palladium)
install(EXPORT palladium FILE palladiumConfig.cmake NAMESPACE palladium::
  DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/palladiumConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/palladiumConfigVersion.cmake DESTINATION ${package_folder})
