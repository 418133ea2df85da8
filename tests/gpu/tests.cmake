# SPDX-License-Identifier: BSD-3-Clause
#
# The tests of real GPUs: over a CUDA driver that the test controls (fake_driver.c), everywhere; and on
# a real one, where there is one. Included at the end of tests/CMakeLists.txt.

set(tests_gpu_shared "")

# fake_library(target folder/library source definition...): LIBRARY.so.1 in a folder of its own.
function(fake_library target path source)
    get_filename_component(folder ${path} DIRECTORY)
    get_filename_component(library ${path} NAME)
    add_library(${target} SHARED ${source})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE doorbell_headers)
    target_compile_definitions(${target} PRIVATE ${ARGN})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${library} SUFFIX .so.1
        C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/${folder})
endfunction()

fake_library(test_fake_driver fake_driver/libcuda gpu/fake_driver.c)
fake_library(test_fake_nvml fake_driver/libnvidia-ml gpu/fake_nvml.c)
fake_library(test_fake_old_driver fake_old_driver/libcuda gpu/fake_driver.c FAKE_DRIVER_OLD)
set(fake LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fake_driver)
set(fake_old LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/fake_old_driver)

db_test(gpu/cuda_errors ENV ${fake})
db_test(gpu/cuda_memory ENV ${fake})
db_test(gpu/cuda_queues ENV ${fake})
db_test(gpu/cuda_registration ENV ${fake})
db_test(gpu/info_line ENV ${fake})
db_test(gpu/info_way)
target_sources(test_gpu_info_way PRIVATE ${PROJECT_SOURCE_DIR}/tool/info_gpu.c)
db_test(gpu/no_driver ARGS "no NVIDIA driver|libcuda.so.1|CPU threads")
db_test(gpu/no_driver AS old ARGS "too old|cuMemHostRegister_v2|CPU threads" ENV ${fake_old})
db_test(gpu/no_kernels ENV ${fake})
db_test(gpu/kernel_images)
db_test(gpu/real_gpu)
db_test(gpu/real_lanes)
foreach(experiment one-op ordering inline rate issue l2 clock proxy-enqueue loaded proxy-rate payload
        idle warmth)
    db_test(gpu/cuda_bench AS ${experiment} ARGS ${experiment} ENV ${fake} TIMEOUT 120)
endforeach()
foreach(program cuda_errors cuda_memory cuda_queues cuda_registration cuda_bench)
    add_dependencies(test_gpu_${program} test_fake_driver test_fake_nvml)
endforeach()
add_dependencies(test_gpu_no_driver test_fake_old_driver)
