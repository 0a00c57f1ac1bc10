# SPDX-License-Identifier: MIT
#
# sutler_program(NAME name SOURCES files [LINK libraries])
#   Builds one test program, linked like any program of the system: not against the library.
#
# sutler_test(NAME name
#             [SOURCES files]            build this program and run it with the library preloaded
#             [COMMAND command...]       or: run this (a runner that preloads TEST_LIBRARY itself)
#             [ARGS args] [FULL_ARGS args]
#             [MODES modes]              modes of the ci set (default: rcs)
#             [FULL_MODES modes]         modes of the full set (default: all)
#             [LABELS labels]            ci, full (default: both)
#             [TIMEOUT s] [FULL_TIMEOUT s] [ENVIRONMENT rows] [SERIAL] [NATIVE_ONLY])
#
# A mode is rcs or cpu (SUTLER_SYNC); or norseq: the kernel's rseq withheld by the C library, everything else at its
# default, so that the library's own fallback is what runs; or thread: locks, and more heaps than cpus, chosen by a hash of
# the thread (papers/policies), so that threads share heaps they did not in cpu mode; or own: rcs, with the C library's
# rseq areas withheld and the library's own in their place, as where the C library is too old.  Where ARGS and FULL_ARGS
# differ the long run is a test of its own, NAME.MODE.full; otherwise one test carries both labels.

set(SUTLER_ALL_MODES rcs cpu thread norseq own)
if(CMAKE_CROSSCOMPILING)
  # qemu-user has no rseq.
  set(SUTLER_ALL_MODES cpu thread)
elseif(NOT SUTLER_HAS_GLIBC)
  # musl registers no rseq area: what the library then does by itself.
  set(SUTLER_ALL_MODES norseq)
endif()
if(NOT TARGET sutler_policies)
  list(REMOVE_ITEM SUTLER_ALL_MODES thread)
endif()

# Sets in the caller what a mode asks for: variables, and the library under test.
macro(sutler_mode mode)
  set(library sutler)
  if("${mode}" STREQUAL "norseq")
    set(mode_environment GLIBC_TUNABLES=glibc.pthread.rseq=0)
  elseif("${mode}" STREQUAL "own")
    set(mode_environment GLIBC_TUNABLES=glibc.pthread.rseq=0 SUTLER_SYNC=rcs)
    set(library sutler_own_areas)
  elseif("${mode}" STREQUAL "thread")
    set(mode_environment SUTLER_SYNC=cpu SUTLER_POLICY=thread)
    set(library sutler_policies)
  else()
    set(mode_environment SUTLER_SYNC=${mode})
  endif()
endmacro()

include(CheckCCompilerFlag)
check_c_compiler_flag(-Wno-use-after-free SUTLER_KNOWS_USE_AFTER_FREE)

function(sutler_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LINK")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
  # What is tested must not be folded away, nor warned about: these programs misuse memory on purpose.
  target_compile_options(${arg_NAME} PRIVATE -g -fno-builtin $<$<BOOL:${SUTLER_KNOWS_USE_AFTER_FREE}>:-Wno-use-after-free>)
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LINK} Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

function(sutler_test_register)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL;PRELOAD" "NAME;MODE;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
  sutler_mode(${arg_MODE})
  # A command may preload the library itself.
  string(REPLACE "$<TARGET_FILE:sutler>" "$<TARGET_FILE:${library}>" command "${arg_COMMAND}")
  string(REPLACE "$<TARGET_FILE:sutler>" "$<TARGET_FILE:${library}>" environment "${arg_ENVIRONMENT}")
  list(APPEND environment TEST_LIBRARY=$<TARGET_FILE:${library}> ${mode_environment})
  if(arg_PRELOAD)
    list(APPEND environment TEST_EXPECT_SUTLER=1)
    if(CMAKE_CROSSCOMPILING)
      set(command ${CMAKE_CROSSCOMPILING_EMULATOR} -E LD_PRELOAD=$<TARGET_FILE:${library}> ${command})
    else()
      list(APPEND environment LD_PRELOAD=$<TARGET_FILE:${library}>)
    endif()
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${command})
  set_tests_properties(${arg_NAME} PROPERTIES ENVIRONMENT "${environment}" LABELS "${arg_LABELS}"
                       TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77 RUN_SERIAL ${arg_SERIAL})
endfunction()

function(sutler_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL;NATIVE_ONLY" "NAME;TIMEOUT;FULL_TIMEOUT"
                        "SOURCES;COMMAND;ARGS;FULL_ARGS;MODES;FULL_MODES;LABELS;ENVIRONMENT")
  if(arg_NATIVE_ONLY AND CMAKE_CROSSCOMPILING)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_FULL_TIMEOUT)
    math(EXPR arg_FULL_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  math(EXPR full_seconds "${arg_FULL_TIMEOUT} - 10")
  if(NOT arg_LABELS)
    set(arg_LABELS ci full)
  endif()
  if(NOT arg_MODES)
    set(arg_MODES rcs)
  endif()
  if(NOT arg_FULL_MODES)
    set(arg_FULL_MODES ${SUTLER_ALL_MODES})
  endif()
  if(CMAKE_CROSSCOMPILING)
    set(arg_MODES cpu)
  elseif(NOT SUTLER_HAS_GLIBC)
    set(arg_MODES norseq)
  endif()

  set(command ${arg_COMMAND})
  set(flags)
  if(arg_SERIAL)
    list(APPEND flags SERIAL)
  endif()
  if(arg_SOURCES)
    string(REPLACE "." "_" program test_${arg_NAME})
    sutler_program(NAME ${program} SOURCES ${arg_SOURCES})
    set(command $<TARGET_FILE:${program}>)
    list(APPEND flags PRELOAD)
  endif()

  foreach(mode IN LISTS SUTLER_ALL_MODES)
    set(labels)
    if("full" IN_LIST arg_LABELS AND mode IN_LIST arg_FULL_MODES)
      if(DEFINED arg_FULL_ARGS)
        sutler_test_register(NAME ${arg_NAME}.${mode}.full MODE ${mode} COMMAND ${command} ${arg_FULL_ARGS} LABELS full
                             TIMEOUT ${arg_FULL_TIMEOUT} ENVIRONMENT ${arg_ENVIRONMENT} TEST_SECONDS=${full_seconds}
                             ${flags})
      else()
        list(APPEND labels full)
      endif()
    endif()
    if("ci" IN_LIST arg_LABELS AND mode IN_LIST arg_MODES)
      list(APPEND labels ci)
    endif()
    if(labels)
      sutler_test_register(NAME ${arg_NAME}.${mode} MODE ${mode} COMMAND ${command} ${arg_ARGS} LABELS ${labels}
                           TIMEOUT ${arg_TIMEOUT} ENVIRONMENT ${arg_ENVIRONMENT} ${flags})
    endif()
  endforeach()
endfunction()
