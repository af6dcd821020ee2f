# LLVM and MLIR 22, ccache, lld, sanitizers and the build's Python.

set(LLVM_ROOT "/usr/lib/llvm-22" CACHE PATH "Where LLVM and MLIR 22 are installed")
find_package(LLVM 22.1 REQUIRED CONFIG HINTS ${LLVM_ROOT}/lib/cmake/llvm)
find_package(MLIR REQUIRED CONFIG HINTS ${LLVM_ROOT}/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${LLVM_CMAKE_DIR} ${MLIR_CMAKE_DIR})
include(TableGen)
include(AddMLIR)
set(MLIR_TABLEGEN_EXE ${LLVM_ROOT}/bin/mlir-tblgen)
set(MLIR_TABLEGEN_TARGET "")

# What the project's libraries link of LLVM, MLIR and lld: shared libraries, so
# that links are quick; or archives, for what is installed where LLVM is not.
# LLVM's own targets name its shared library, therefore the files are listed.
option(SARDONYX_STATIC_LLVM "Link what is used of LLVM and MLIR into each program" OFF)
find_package(LLD REQUIRED CONFIG HINTS ${LLVM_ROOT}/lib/cmake/lld)
add_library(SardonyxLLVM INTERFACE)
add_library(SardonyxLLD INTERFACE)
target_include_directories(SardonyxLLD SYSTEM INTERFACE ${LLD_INCLUDE_DIRS})
if(SARDONYX_STATIC_LLVM)
  set(llvm_lib ${LLVM_LIBRARY_DIRS})
  file(GLOB llvm_archives ${llvm_lib}/libMLIR*.a ${llvm_lib}/libLLVM*.a)
  find_package(ZLIB REQUIRED)
  target_link_libraries(SardonyxLLVM INTERFACE
    -Wl,--start-group ${llvm_archives} -Wl,--end-group
    ZLIB::ZLIB zstd ${CMAKE_DL_LIBS} pthread)
  target_link_libraries(SardonyxLLD INTERFACE
    ${llvm_lib}/liblldELF.a ${llvm_lib}/liblldCommon.a SardonyxLLVM)
  add_link_options(-Wl,--gc-sections)
else()
  target_link_libraries(SardonyxLLVM INTERFACE MLIR LLVM)
  target_link_libraries(SardonyxLLD INTERFACE lldELF lldCommon)
endif()

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
if(NOT SARDONYX_STATIC_LLVM)
  add_link_options(-Wl,-rpath,${LLVM_ROOT}/lib)
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
