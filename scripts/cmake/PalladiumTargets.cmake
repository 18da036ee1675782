# One static library per folder: the rows of the architecture's table of targets. All targets begin
# with palladium_, since a project that adds this one has targets of its own; files that people call
# by name are named without it (palladium_file_name).
#
# palladium_component(<folder> [BEFORE_NVRTC] SOURCES <files> [USES <folders>] [PRIVATE_LIBRARIES <targets>])
#   `codegen/graph` becomes target `palladium_codegen_graph`. USES names the folders whose headers it may
#   include; the tests in tests/house fail on an include that this does not allow. What stands
#   BEFORE_NVRTC runs once for each compile of a kernel, which takes a hundred times as long: it is
#   the host compiler whose time counts.
# palladium_folder(<folder>)
#   Adds the folder's CMakeLists.txt once, whoever asks first. A component brings in what it uses
#   by itself, so that each can be configured alone (PALLADIUM_ONLY).
# palladium_add_test(<label> <sentence> COMMAND <words> [PROPERTIES <names and values>])
#   The ctest entry "<label>: <sentence>"; in another project "palladium: <label>: <sentence>", with
#   the label palladium_<label>.
include(PalladiumDependencies)

set(palladium_test_prefix "")
set(palladium_label_prefix "")
if(NOT PROJECT_IS_TOP_LEVEL)
  set(palladium_test_prefix "palladium: ")
  set(palladium_label_prefix palladium_)
endif()

add_library(palladium_flags INTERFACE)
# Graphs, messages and debug information name our files from the repository's root, wherever it lies;
# ccache may hand their paths to the compiler relative to the build folder.
cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR}
  OUTPUT_VARIABLE palladium_upwards)
target_compile_options(palladium_flags INTERFACE -Wall -Wextra
  $<$<BOOL:${PALLADIUM_WERROR}>:-Werror>
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -ffile-prefix-map=${palladium_upwards}/=
  # g++ 12 reports std::string's own memcpy (gcc bug 105651), and in a unity build it takes every
  # .cpp for a header, which should not show what an anonymous namespace hides.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-subobject-linkage>)
target_include_directories(palladium_flags INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

set_property(GLOBAL PROPERTY PALLADIUM_COMPONENTS "")
set_property(GLOBAL PROPERTY PALLADIUM_FOLDERS "")

function(palladium_folder folder)
  get_property(seen GLOBAL PROPERTY PALLADIUM_FOLDERS)
  if(folder IN_LIST seen)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY PALLADIUM_FOLDERS ${folder})
  add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
endfunction()

function(palladium_target_of folder variable)
  string(REPLACE "/" "_" name ${folder})
  set(${variable} palladium_${name} PARENT_SCOPE)
endfunction()

# The file of target palladium_<name> is called <name>.
function(palladium_file_name target)
  string(REGEX REPLACE "^palladium_" "" name ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
endfunction()

function(palladium_add_test label sentence)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "COMMAND;PROPERTIES")
  set(name "${palladium_test_prefix}${label}: ${sentence}")
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${palladium_label_prefix}${label} ${ARG_PROPERTIES})
endfunction()

# The target's files are compiled so many at a time, if PALLADIUM_UNITY says so: fewer where JSON is
# among them, which alone takes as long as eight others, so that one file is still built again soon.
function(palladium_unity target batch)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${PALLADIUM_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()

function(palladium_component folder)
  cmake_parse_arguments(ARG "BEFORE_NVRTC" "" "SOURCES;USES;PRIVATE_LIBRARIES" ${ARGN})
  palladium_target_of(${folder} name)
  add_library(${name} STATIC ${ARG_SOURCES})
  palladium_unity(${name} 8)
  target_link_libraries(${name} PUBLIC palladium_flags palladium_fmt)
  foreach(used IN LISTS ARG_USES)
    palladium_folder(${used})
    palladium_target_of(${used} used_name)
    target_link_libraries(${name} PUBLIC ${used_name})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_LIBRARIES})
  if(ARG_BEFORE_NVRTC)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  set_property(TARGET ${name} PROPERTY PALLADIUM_FOLDER ${folder})
  set_property(TARGET ${name} PROPERTY PALLADIUM_USES "${ARG_USES}")
  set_property(GLOBAL APPEND PROPERTY PALLADIUM_COMPONENTS ${name})
endfunction()
