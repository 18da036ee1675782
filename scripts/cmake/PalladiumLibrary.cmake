# libpalladium.so, the one library that is shipped: all components, hidden but for PALLADIUM_API,
# with their dependencies linked inside.
get_property(palladium_components GLOBAL PROPERTY PALLADIUM_COMPONENTS)
add_library(palladium SHARED)
add_library(palladium::palladium ALIAS palladium)
foreach(component IN LISTS palladium_components)
  target_sources(palladium PRIVATE $<TARGET_OBJECTS:${component}>)
endforeach()
# The objects above are the whole of the components; naming these too brings in what they link.
target_link_libraries(palladium PRIVATE ${palladium_components})
target_link_options(palladium PRIVATE -Wl,--exclude-libs,ALL
  -Wl,--version-script,${CMAKE_CURRENT_LIST_DIR}/palladium.map
  $<$<NOT:$<BOOL:${PALLADIUM_SANITIZE}>>:-Wl,--no-undefined>)
target_compile_features(palladium PUBLIC cxx_std_20)
target_include_directories(palladium INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(palladium PROPERTIES
  LINKER_LANGUAGE CXX LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/palladium.map
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
