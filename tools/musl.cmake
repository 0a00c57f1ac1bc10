# Build against musl with Debian's musl-tools, for this machine: musl-gcc knows musl's headers only, so the kernel's are
# linked into a directory of the build.  On a machine whose own libc is musl (Alpine) no toolchain file is needed.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_ASM_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER_WORKS ON) # there is no libstdc++ for musl here, and nothing of C++ is built
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(part IN ITEMS linux asm-generic ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/asm)
  get_filename_component(name ${part} NAME)
  file(CREATE_LINK /usr/include/${part} ${kernel_headers}/${name} SYMBOLIC)
endforeach()
foreach(language IN ITEMS C ASM)
  set(CMAKE_${language}_FLAGS_INIT "-isystem ${kernel_headers}")
endforeach()
