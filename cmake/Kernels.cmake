# SPDX-License-Identifier: BSD-3-Clause
#
# GPU kernels: nvcc compiles each source into a fat binary with machine code for some architectures and
# PTX of the newest of them, for later ones, and an object of the host's compiler carries them all.
# Nothing of CUDA is linked. Without nvcc the object is empty, and one line of the configuration says so.
#
#   NVCC=path               in the environment or as -DDOORBELL_NVCC=path; OFF: build no kernels
#   -DDOORBELL_GPUS=90      the architectures, as in sm_90, in rising order; those that nvcc does not
#                           know are left out

set(DOORBELL_NVCC "$ENV{NVCC}" CACHE STRING "nvcc, which compiles the GPU kernels; OFF: none")
set(all_gpus 80 90 100)
set(DOORBELL_GPUS "${all_gpus}" CACHE STRING "GPU architectures to compile for, such as 80;90;100")

if(DOORBELL_NVCC STREQUAL "")
    find_program(nvcc_found nvcc HINTS $ENV{CUDA_HOME} /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(nvcc_found)
    set(nvcc ${nvcc_found})
else()
    set(nvcc ${DOORBELL_NVCC})
endif()

set(db_kernel_flags "")
set(db_cuda_version 0)
if(nvcc)
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET
        RESULT_VARIABLE nvcc_fails)
    execute_process(COMMAND ${nvcc} --list-gpu-code OUTPUT_VARIABLE nvcc_codes ERROR_QUIET)
    if(nvcc_fails OR NOT nvcc_says MATCHES "release ([0-9]+)\\.([0-9]+)")
        message(FATAL_ERROR "${nvcc} is no nvcc that runs; name another with -DDOORBELL_NVCC=path, or "
            "build without GPU kernels with -DDOORBELL_NVCC=OFF")
    endif()
    set(nvcc_release "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    math(EXPR db_cuda_version "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
    set(built "")
    foreach(architecture ${DOORBELL_GPUS})
        if(nvcc_codes MATCHES "sm_${architecture}[^0-9]")
            list(APPEND db_kernel_flags -gencode=arch=compute_${architecture},code=sm_${architecture})
            list(APPEND built sm_${architecture})
            set(newest ${architecture})
        endif()
    endforeach()
    if(NOT built)
        message(FATAL_ERROR "${nvcc} compiles for none of DOORBELL_GPUS=${DOORBELL_GPUS}; for sm_90 CUDA "
            "11.8 or later is needed. Name others, or build without GPU kernels with -DDOORBELL_NVCC=OFF")
    endif()
    list(APPEND db_kernel_flags -gencode=arch=compute_${newest},code=compute_${newest})
    if(CMAKE_COMPILE_WARNING_AS_ERROR)
        list(APPEND db_kernel_flags -Werror all-warnings)
    endif()
    list(JOIN built ", " built)
    message(STATUS "GPU kernels: ${built} and PTX, by ${nvcc} (CUDA ${nvcc_release})")
else()
    set(reason "there is no nvcc")
    if(NOT DOORBELL_NVCC STREQUAL "")
        set(reason "DOORBELL_NVCC is ${DOORBELL_NVCC}")
    endif()
    message(STATUS "GPU kernels: none, because ${reason}; everything else is built "
        "(-DDOORBELL_NVCC=path names an nvcc)")
endif()

# db_add_kernels(target prefix source...): adds to `target` an object with the fat binaries of the
# sources: `<prefix>_images[]` (struct db_gpu_image), `<prefix>_image_count` (size_t), and the CUDA
# version that made them, `<prefix>_cuda_version` (uint32_t, 1000 * major + 10 * minor).
function(db_add_kernels target prefix)
    set(stem ${CMAKE_CURRENT_BINARY_DIR}/${prefix}_images)
    set(fatbins "")
    set(count 0)
    set(blobs "")
    set(rows "")
    if(nvcc)
        foreach(source ${ARGN})
            get_filename_component(name ${source} NAME_WE)
            set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${prefix}_${name}.fatbin)
            add_custom_command(OUTPUT ${fatbin}
                COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh ${fatbin}.report
                    ${nvcc} -x cu -std=c++17 -Xptxas -v -fatbin
                    ${db_kernel_flags} -I${PROJECT_SOURCE_DIR}/include -MD -MF ${fatbin}.d -o ${fatbin}
                    ${CMAKE_CURRENT_SOURCE_DIR}/${source}
                DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/nvcc.sh DEPFILE ${fatbin}.d VERBATIM
                COMMENT "Compiling GPU kernels of ${source}")
            list(APPEND fatbins ${fatbin})
            string(APPEND blobs "BLOB(${count}, \"${fatbin}\");\n")
            string(APPEND rows "    ROW(${count}),\n")
            math(EXPR count "${count} + 1")
        endforeach()
    else()
        set(rows "    {0, 0},\n")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/images.c.in ${stem}.c @ONLY)
    target_sources(${target} PRIVATE ${stem}.c)
    set_source_files_properties(${stem}.c PROPERTIES OBJECT_DEPENDS "${fatbins}")
endfunction()
