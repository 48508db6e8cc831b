# The compiler and the flags that every target of ours is built with.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old; moegauge needs g++ 12 or clang++ 14")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "clang++ ${CMAKE_CXX_COMPILER_VERSION} is too old; moegauge needs g++ 12 or clang++ 14")
endif()

# Paths are hashed from the source folder, so that a fresh clone is served by the cache of another.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
endif()

# -ffp-contract=off: results must not depend on whether the compiler happened to fuse a multiply and
# an add (docs/decisions/0006-no-contraction.md). -ffile-prefix-map: no folder of this machine in what
# is built.
add_library(moegauge_options INTERFACE)
target_include_directories(moegauge_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(moegauge_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -ffp-contract=off
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= $<$<BOOL:${MOEGAUGE_WERROR}>:-Werror>)
target_link_libraries(moegauge_options INTERFACE Threads::Threads)
# GCC 12 warns of overlapping copies in "literal" + std::string (GCC bug 105651), where there are none.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(moegauge_options INTERFACE -Wno-restrict)
endif()

if(MOEGAUGE_SANITIZE)
  # GCC documents -Wmaybe-uninitialized and its kin as unreliable in instrumented code.
  target_compile_options(moegauge_options INTERFACE
    -fsanitize=${MOEGAUGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_compile_definitions(moegauge_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(moegauge_options INTERFACE -fsanitize=${MOEGAUGE_SANITIZE})
endif()
