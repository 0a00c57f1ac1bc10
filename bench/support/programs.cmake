# SPDX-License-Identifier: MIT
#
# The loader only warns when it cannot preload a library, and the run would then say nothing about it: that warning
# fails a test, and so does any message of the library itself.
#
# bench_program(NAME SOURCE... [TEST key=value ...] [UNTESTED])
#   builds NAME and, unless it is UNTESTED, registers it with CTest twice, with the parameters after TEST: under the C
#   library's allocator and with Sutler preloaded.  A sanitizer's allocator and a preloaded one exclude each other, so
#   sanitizer builds register none.

function(bench_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "UNTESTED" "" "TEST")
  add_executable(bench_${name} ${program_UNPARSED_ARGUMENTS})
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(bench_${name} PRIVATE bench_support)
  if(SUTLER_SANITIZE OR program_UNTESTED)
    return()
  endif()
  foreach(library IN ITEMS glibc sutler)
    add_test(NAME bench.${name}.${library} COMMAND bench_${name} ${program_TEST})
  endforeach()
  set_tests_properties(bench.${name}.glibc bench.${name}.sutler PROPERTIES
    LABELS "ci;bench" TIMEOUT 60 SKIP_RETURN_CODE 77)
  set_tests_properties(bench.${name}.sutler PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:sutler>" FAIL_REGULAR_EXPRESSION "cannot be preloaded;sutler: ")
endfunction()

# bench_cids_test(NAME [key=value ...])
#   registers a program with CTest once more, with the build with synthetic cids preloaded (tests/support/cids.h).
function(bench_cids_test name)
  if(SUTLER_SANITIZE)
    return()
  endif()
  add_dependencies(bench_${name} sutler_cids)
  add_test(NAME bench.${name}.cids COMMAND bench_${name} ${ARGN})
  set_tests_properties(bench.${name}.cids PROPERTIES LABELS "ci;bench" TIMEOUT 60
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:sutler_cids>" FAIL_REGULAR_EXPRESSION "cannot be preloaded;sutler: ")
endfunction()

# bench_command_test(NAME COMMAND [key=value ...])
#   registers a test of a shell command, run through the program `command`, under both allocators.
function(bench_command_test name command)
  if(SUTLER_SANITIZE)
    return()
  endif()
  foreach(library IN ITEMS glibc sutler)
    add_test(NAME bench.${name}.${library} COMMAND bench_command name=${name} "run=${command}" ${ARGN})
    set_tests_properties(bench.${name}.${library} PROPERTIES LABELS "ci;bench" TIMEOUT 60)
  endforeach()
  set_tests_properties(bench.${name}.sutler PROPERTIES
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:sutler>" FAIL_REGULAR_EXPRESSION "cannot be preloaded;sutler: ")
endfunction()
