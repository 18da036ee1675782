# libpalladium.so, the one library that is shipped: all components, hidden but for PALLADIUM_API,
# with their dependencies linked inside. Its target is not called `palladium`: that is the file which
# is the command line tool.
include(GNUInstallDirs)
get_property(palladium_components GLOBAL PROPERTY PALLADIUM_COMPONENTS)
add_library(palladium_library SHARED)
add_library(palladium::palladium ALIAS palladium_library)
foreach(component IN LISTS palladium_components)
  target_sources(palladium_library PRIVATE $<TARGET_OBJECTS:${component}>)
endforeach()
# The objects above are the whole of the components; naming these too brings in what they link.
target_link_libraries(palladium_library PRIVATE ${palladium_components})
target_link_options(palladium_library PRIVATE -Wl,--exclude-libs,ALL
  -Wl,--version-script,${CMAKE_CURRENT_LIST_DIR}/palladium.map
  $<$<NOT:$<BOOL:${PALLADIUM_SANITIZE}>>:-Wl,--no-undefined>)
target_compile_features(palladium_library PUBLIC cxx_std_20)
target_include_directories(palladium_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Before 1.0 a minor version may break what a program was linked with.
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(palladium_library PROPERTIES
  OUTPUT_NAME palladium EXPORT_NAME palladium
  LINKER_LANGUAGE CXX LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/palladium.map
  VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
