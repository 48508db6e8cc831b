# Run by CTest: each module of MODULES shows exactly one symbol, so that no template instantiated for
# one instruction set can be bound by code built for another.
foreach(module IN LISTS MODULES)
  execute_process(COMMAND ${NM} -D --defined-only --format=posix ${module}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(^|\n)[^ \n]+" names "${symbols}")
  string(STRIP "${names}" names)
  if(NOT names STREQUAL "moegauge_gemm_abt")
    message(FATAL_ERROR "${module} exports '${names}'; it must export moegauge_gemm_abt alone")
  endif()
endforeach()
