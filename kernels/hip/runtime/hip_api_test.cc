// The numbers and signatures of hip_api.h against the runtime's own header; built where that is.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1  // as releases before 6 call it
#include "kernels/hip/runtime/hip_api.h"

#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <type_traits>

namespace moegauge::hip {
namespace {

// Alike when handles, enumerations and errors are taken for what they are in a call.
template <typename T>
struct Passed {
  using Type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <typename T>
struct Passed<T*> {
  using Type = std::conditional_t<std::is_same_v<std::remove_const_t<T>, char>, char*, void*>;
};
template <typename Function>
struct Signature;
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  using Type = typename Passed<R>::Type (*)(typename Passed<A>::Type...);
};
template <typename Ours, typename Theirs>
constexpr bool alike =
    std::is_same_v<typename Signature<Ours>::Type, typename Signature<Theirs>::Type>;

TEST(HipApi, HasTheNumbersOfTheHeader) {
  EXPECT_EQ(hip_success, static_cast<int>(hipSuccess));
  EXPECT_EQ(hip_out_of_memory, static_cast<int>(hipErrorOutOfMemory));
  EXPECT_EQ(hip_no_device, static_cast<int>(hipErrorNoDevice));
  EXPECT_EQ(hip_no_binary_for_gpu, static_cast<int>(hipErrorNoBinaryForGpu));
  EXPECT_EQ(hip_copy_to_device, static_cast<int>(hipMemcpyHostToDevice));
  EXPECT_EQ(hip_copy_to_host, static_cast<int>(hipMemcpyDeviceToHost));
  EXPECT_EQ(hip_copy_on_device, static_cast<int>(hipMemcpyDeviceToDevice));
  EXPECT_EQ(hip_stream_non_blocking, static_cast<unsigned>(hipStreamNonBlocking));
  EXPECT_EQ(hip_capture_thread_local, static_cast<int>(hipStreamCaptureModeThreadLocal));
}

TEST(HipApi, HasTheSignaturesOfTheHeader) {
  EXPECT_TRUE((alike<decltype(HipApi::runtime_get_version), decltype(&hipRuntimeGetVersion)>));
  EXPECT_TRUE((alike<decltype(HipApi::get_error_name), decltype(&hipGetErrorName)>));
  EXPECT_TRUE((alike<decltype(HipApi::get_error_string), decltype(&hipGetErrorString)>));
  EXPECT_TRUE((alike<decltype(HipApi::get_device_count), decltype(&hipGetDeviceCount)>));
  EXPECT_TRUE((alike<decltype(HipApi::set_device), decltype(&hipSetDevice)>));
  EXPECT_TRUE((alike<decltype(HipApi::get_device_properties), decltype(&hipGetDeviceProperties)>));
  EXPECT_TRUE((alike<decltype(HipApi::device_get_name), decltype(&hipDeviceGetName)>));
  EXPECT_TRUE((alike<decltype(HipApi::device_total_mem), decltype(&hipDeviceTotalMem)>));
  EXPECT_TRUE((alike<decltype(HipApi::free), decltype(&hipFree)>));
  EXPECT_TRUE((alike<decltype(HipApi::memcpy_async), decltype(&hipMemcpyAsync)>));
  EXPECT_TRUE((alike<decltype(HipApi::memset_async), decltype(&hipMemsetAsync)>));
  EXPECT_TRUE((alike<decltype(HipApi::stream_create), decltype(&hipStreamCreateWithFlags)>));
  EXPECT_TRUE((alike<decltype(HipApi::stream_destroy), decltype(&hipStreamDestroy)>));
  EXPECT_TRUE((alike<decltype(HipApi::stream_synchronize), decltype(&hipStreamSynchronize)>));
  EXPECT_TRUE((alike<decltype(HipApi::stream_begin_capture), decltype(&hipStreamBeginCapture)>));
  EXPECT_TRUE((alike<decltype(HipApi::stream_end_capture), decltype(&hipStreamEndCapture)>));
  EXPECT_TRUE((alike<decltype(HipApi::event_create), decltype(&hipEventCreate)>));
  EXPECT_TRUE((alike<decltype(HipApi::event_destroy), decltype(&hipEventDestroy)>));
  EXPECT_TRUE((alike<decltype(HipApi::event_record), decltype(&hipEventRecord)>));
  EXPECT_TRUE((alike<decltype(HipApi::event_synchronize), decltype(&hipEventSynchronize)>));
  EXPECT_TRUE((alike<decltype(HipApi::event_elapsed_time), decltype(&hipEventElapsedTime)>));
  EXPECT_TRUE((alike<decltype(HipApi::graph_instantiate), decltype(&hipGraphInstantiate)>));
  EXPECT_TRUE((alike<decltype(HipApi::graph_launch), decltype(&hipGraphLaunch)>));
  EXPECT_TRUE((alike<decltype(HipApi::graph_destroy), decltype(&hipGraphDestroy)>));
  EXPECT_TRUE((alike<decltype(HipApi::graph_exec_destroy), decltype(&hipGraphExecDestroy)>));
  EXPECT_TRUE((alike<decltype(HipApi::module_load_data), decltype(&hipModuleLoadData)>));
  EXPECT_TRUE((alike<decltype(HipApi::module_unload), decltype(&hipModuleUnload)>));
  EXPECT_TRUE((alike<decltype(HipApi::module_get_function), decltype(&hipModuleGetFunction)>));
  EXPECT_TRUE((alike<decltype(HipApi::module_launch_kernel), decltype(&hipModuleLaunchKernel)>));
}

}  // namespace
}  // namespace moegauge::hip
