# SPDX-License-Identifier: BSD-3-Clause
#
# What differs in tests/interop: more programs again in each environment in which libmlx5 works the
# device in another way (all_opcodes and many_queues are run in them by tests/CMakeLists.txt), and the
# tests that need more time. Included at the end of tests/CMakeLists.txt.

set(main_programs scatter_gather wr_api extended_poll protection_errors flush_and_recovery)
set(threaded_programs completion_channel)

# interop_variant(name VARIABLE=value program...)
function(interop_variant name variable)
    foreach(program ${ARGN})
        db_test(interop/${program} AS ${name} ENV ${variable} LABELS variant TIMEOUT 120)
    endforeach()
endfunction()

# Doorbells without BlueFlame; BlueFlame only for inline data.
interop_variant(shut_up_bf MLX5_SHUT_UP_BF=1 ring_wrap ${main_programs} ${threaded_programs})
interop_variant(no_prefer_bf MLX5_POST_SEND_PREFER_BF=0 ${main_programs} ${threaded_programs})
# CQEs of 128 bytes, and never data in a CQE.
interop_variant(cqe_128 MLX5_CQE_SIZE=128 ring_wrap ${main_programs} ${threaded_programs})
interop_variant(no_scatter_to_cqe MLX5_SCATTER_TO_CQE=0 ${main_programs})
# No locks in libmlx5: only for programs of one thread.
interop_variant(single_threaded MLX5_SINGLE_THREADED=1 ring_wrap ${main_programs})
# Other numbers of UAR registers: many for each queue pair its own, and few for all.
interop_variant(total_uuars_32 MLX5_TOTAL_UUARS=32 ${main_programs} ${threaded_programs})
interop_variant(total_uuars_8 MLX5_TOTAL_UUARS=8 many_queues ${threaded_programs})
# Memory that a child does not inherit.
interop_variant(fork_safe RDMAV_FORK_SAFE=1 ${main_programs} ring_wrap contexts
    left_behind ${threaded_programs})

foreach(program ring_wrap many_queues limits share_ways share_wrap share_reserve)
    db_test_timeout(interop/${program} 120)
endforeach()
foreach(program shared_ops shared_warps)
    db_test_timeout(interop/${program} 300)
endforeach()
db_test_timeout(interop/proxy_bench 600)
