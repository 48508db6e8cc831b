# How this project declares libraries, run-time modules, tests and benchmarks.

# What neither computes nor is timed is built quickly: -O1 compiles in 55 to 75% of the time of -O3.
set(MOEGAUGE_COLD $<$<CONFIG:Release>:-O1>)

# moegauge_library(name SOURCES ... [LINK ...]): a static library named after its folder.
function(moegauge_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} STATIC ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD "${MOEGAUGE_TOGETHER}" UNITY_BUILD_BATCH_SIZE 8)
  target_link_libraries(${name} PUBLIC moegauge_options ${arg_LINK})
endfunction()

# moegauge_module(name SOURCES ... [LINK ...] [OPTIONS ...]): a shared object that is opened at run
# time by its file name, name.so, beside the binary; OPTIONS are its -m flags. Only symbols called
# moegauge_* are exported. The target that opens it says add_dependencies(that_target name).
function(moegauge_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;OPTIONS")
  add_library(${name} MODULE ${arg_SOURCES})
  # GCC's own AVX-512 headers start from values that they leave undefined on purpose (GCC bug 105593).
  target_compile_options(${name} PRIVATE ${arg_OPTIONS}
    $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique;-Wno-uninitialized;-Wno-maybe-uninitialized>)
  target_link_libraries(${name} PRIVATE moegauge_options ${arg_LINK})
  target_link_options(${name} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/scripts/cmake/module.map)
  set_target_properties(${name} PROPERTIES
    PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/scripts/cmake/module.map)
  set_property(GLOBAL APPEND PROPERTY MOEGAUGE_MODULES ${name})
endfunction()

# Labels: unit (the default), accuracy, kill (ends processes on purpose), slow. ./scripts/test runs
# unit and accuracy; ./scripts/test --full runs all.
function(moegauge_test_properties name labels)
  if(NOT labels)
    set(labels unit)
  endif()
  foreach(label IN LISTS labels)
    if(NOT label MATCHES "^(unit|accuracy|kill|slow)$")
      message(FATAL_ERROR "${name}: unknown test label '${label}'; use unit, accuracy, kill or slow")
    endif()
  endforeach()
  # 77: the test says that something it needs is not on this machine.
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()

# moegauge_test(name SOURCES ... [LINK ...] [LABELS ...]): a GoogleTest binary, one CTest test, run
# in the source folder; the tests stand beside the code.
function(moegauge_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;LABELS")
  add_executable(${name} ${arg_SOURCES})
  target_compile_options(${name} PRIVATE ${MOEGAUGE_COLD})
  target_link_libraries(${name} PRIVATE moegauge_options ${arg_LINK} GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  moegauge_test_properties(${name} "${arg_LABELS}")
endfunction()

# moegauge_python_test(name SCRIPT file [ARGS ...] [LABELS ...]): a Python unittest script, run in
# the source folder. ARGS may hold $<TARGET_FILE:...>. Packages of scripts/requirements.txt are
# importable; the script exits 77, naming the package, where one that it needs is missing.
function(moegauge_python_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT" "ARGS;LABELS")
  if(NOT Python3_Interpreter_FOUND)
    message(STATUS "test ${name} is left out: no python3")
    return()
  endif()
  add_test(NAME ${name}
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/python ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT} ${arg_ARGS}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  moegauge_test_properties(${name} "${arg_LABELS}")
endfunction()

# moegauge_benchmark(name SOURCES ... [LINK ...]): a Google Benchmark binary for one of our own
# parts. Built with everything so that it cannot rot; run by hand, never as a timed test.
function(moegauge_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE moegauge_options ${arg_LINK} benchmark::benchmark)
endfunction()

# moegauge_fuzzer(name SOURCES ... [LINK ...]): a libFuzzer binary, built where MOEGAUGE_FUZZ is on;
# MOEGAUGE_SANITIZE=fuzzer-no-link,address,undefined,float-cast-overflow instruments the libraries that
# it calls.
function(moegauge_fuzzer name)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MOEGAUGE_FUZZ needs clang++: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE moegauge_options ${arg_LINK} -fsanitize=fuzzer)
endfunction()

# moegauge_embed(VARIABLE HEADER file NAMESPACE name FILES ...): text files, relative to the root, as
# string literals. HEADER declares in NAMESPACE `struct EmbeddedFile {const char *name, *text;}` and
# `std::span<const EmbeddedFile> embedded_files()`; VARIABLE becomes the source file that defines it.
function(moegauge_embed variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;NAMESPACE" "FILES")
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded.cc)
  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/embed.cmake)
  list(JOIN arg_FILES "," names)
  list(TRANSFORM arg_FILES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DFILES=${names} -DHEADER=${arg_HEADER}
            -DNAMESPACE=${arg_NAMESPACE} -DOUT=${out} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding text for ${arg_HEADER}" VERBATIM)
  set(${variable} ${out} PARENT_SCOPE)
endfunction()
