# Device code, compiled ahead with any clang that knows the architectures; no header or library of
# ROCm is needed. One code object for each architecture, beside the binary.
set(hip_architectures gfx942 gfx950 gfx1201)

if(MOEGAUGE_HIP)
  find_program(MOEGAUGE_HIP_CLANG NAMES clang++-22 amdclang++ HINTS ENV ROCM_PATH PATHS /opt/rocm
    PATH_SUFFIXES bin llvm/bin)
endif()
if(NOT MOEGAUGE_HIP OR NOT MOEGAUGE_HIP_CLANG)
  message(STATUS "hip: no device code (clang++-22 or amdclang++ not found, or MOEGAUGE_HIP is OFF)")
  return()
endif()

set(hip_code_objects "")
foreach(arch IN LISTS hip_architectures)
  set(object ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/moegauge_hip_${arch}.co)
  # The driver knows no -MF for device code by itself.
  add_custom_command(OUTPUT ${object}
    COMMAND ${MOEGAUGE_HIP_CLANG} -x hip --offload-arch=${arch} --cuda-device-only
      --no-gpu-bundle-output -nogpuinc -nogpulib -std=c++17 -O3 -ffp-contract=off -Wall -Wextra
      -Werror -mcode-object-version=5 -ffile-prefix-map=${PROJECT_SOURCE_DIR}/= -I${PROJECT_SOURCE_DIR}
      -c -Xclang -dependency-file -Xclang ${object}.d -Xclang -MT -Xclang ${object}
      -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/device/layer.hip
    DEPENDS device/layer.hip DEPFILE ${object}.d
    COMMENT "Compiling device code for ${arch}" VERBATIM)
  list(APPEND hip_code_objects ${object})
endforeach()
add_custom_target(hip_code DEPENDS ${hip_code_objects})
# Whoever builds the tool alone waits for it only where there is a GPU that could run it.
if(EXISTS /dev/kfd)
  add_dependencies(kernels_hip hip_code)
endif()
include(GNUInstallDirs)
install(FILES ${hip_code_objects} DESTINATION ${CMAKE_INSTALL_LIBDIR}/moegauge OPTIONAL)
