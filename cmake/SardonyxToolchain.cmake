# ccache, lld, sanitizers and the build's Python.

set(LLVM_ROOT "/usr/lib/llvm-22" CACHE PATH "Where LLVM and MLIR 22 are installed")
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # PCH needs the sloppiness; see ccache's manual, "Precompiled headers".
  set(ccache_env ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR})
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache_env} ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache_env} ${CCACHE_PROGRAM})
endif()

find_program(LLD_PROGRAM ld.lld-22 HINTS ${LLVM_ROOT}/bin)
if(LLD_PROGRAM AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(--ld-path=${LLD_PROGRAM})
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  # Upstream's headers use features that clang calls deprecated.
  add_compile_options(-Wno-deprecated-declarations)
endif()
add_compile_options(-Wall)

if(SARDONYX_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer
                      -fno-sanitize=vptr,function)
  add_link_options(-fsanitize=address,undefined)
endif()
if(SARDONYX_FUZZ)
  # What the fuzzers find ends them, undefined behaviour too.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

if(NOT SARDONYX_PYTHON)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(SARDONYX_PYTHON ${Python3_EXECUTABLE} CACHE FILEPATH "" FORCE)
endif()
