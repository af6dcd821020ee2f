# LLVM, MLIR and lld 22, as programs and libraries of the compiler use them.

# Both of LLVM_ROOT and of one release: MLIR's interfaces change with each.
find_package(LLVM 22.1 QUIET CONFIG PATHS ${LLVM_ROOT}/lib/cmake/llvm NO_DEFAULT_PATH)
if(LLVM_CONSIDERED_VERSIONS AND NOT LLVM_FOUND)
  message(FATAL_ERROR "'${LLVM_ROOT}' (LLVM_ROOT) has LLVM ${LLVM_CONSIDERED_VERSIONS}, "
                      "and Sardonyx is written for 22.1")
elseif(NOT LLVM_FOUND OR NOT EXISTS ${LLVM_ROOT}/lib/cmake/mlir)
  message(FATAL_ERROR "'${LLVM_ROOT}' (LLVM_ROOT) has no LLVM with MLIR for programs that use them. "
                      "On Debian: apt-get install llvm-22-dev libmlir-22-dev mlir-22-tools")
endif()
find_package(MLIR REQUIRED CONFIG PATHS ${LLVM_ROOT}/lib/cmake/mlir NO_DEFAULT_PATH)
list(APPEND CMAKE_MODULE_PATH ${LLVM_CMAKE_DIR} ${MLIR_CMAKE_DIR})
include(TableGen)
include(AddMLIR)
set(MLIR_TABLEGEN_EXE ${LLVM_ROOT}/bin/mlir-tblgen)
set(MLIR_TABLEGEN_TARGET "")

# What the project's libraries link of LLVM, MLIR and lld: shared libraries, so
# that links are quick. A program or an extension whose property
# SARDONYX_STATIC_LLVM is on has what it uses of their archives inside, for where
# LLVM is not installed. LLVM's own targets name its shared library, therefore the
# archives are listed as files.
# One whose property SARDONYX_PORTABLE is on has all other libraries inside, too, but
# the C library's (python/wheel).
set(is_portable $<BOOL:$<TARGET_PROPERTY:SARDONYX_PORTABLE>>)
option(SARDONYX_STATIC_LLVM "Whether the Python module holds LLVM and MLIR" OFF)
find_package(LLD REQUIRED CONFIG HINTS ${LLVM_ROOT}/lib/cmake/lld)
find_package(ZLIB REQUIRED)
file(GLOB llvm_archives ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
add_library(SardonyxLLVMArchives INTERFACE)
target_link_libraries(SardonyxLLVMArchives INTERFACE
  ${LLVM_LIBRARY_DIRS}/liblldELF.a ${LLVM_LIBRARY_DIRS}/liblldWasm.a
  ${LLVM_LIBRARY_DIRS}/liblldCommon.a
  -Wl,--start-group ${llvm_archives} -Wl,--end-group
  $<IF:${is_portable},-l:libz.a,ZLIB::ZLIB> $<IF:${is_portable},-l:libzstd.a,zstd>
  ${CMAKE_DL_LIBS} pthread)
# Nobody can name what is inside, and what nobody uses is left out. Constructors of
# globals are next to each other: all run when the file is loaded.
target_link_options(SardonyxLLVMArchives INTERFACE
  -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-z,keep-text-section-prefix)
add_library(SardonyxLLVMShared INTERFACE)
target_link_libraries(SardonyxLLVMShared INTERFACE MLIR LLVM)
add_library(SardonyxLLDShared INTERFACE)
target_link_libraries(SardonyxLLDShared INTERFACE lldELF lldWasm lldCommon)

set(is_static $<BOOL:$<TARGET_PROPERTY:SARDONYX_STATIC_LLVM>>)
add_library(SardonyxLLVM INTERFACE)
target_link_libraries(SardonyxLLVM INTERFACE
  $<IF:${is_static},SardonyxLLVMArchives,SardonyxLLVMShared>)
add_library(SardonyxLLD INTERFACE)
target_link_libraries(SardonyxLLD INTERFACE
  $<IF:${is_static},SardonyxLLVMArchives,SardonyxLLDShared>)
target_include_directories(SardonyxLLD SYSTEM INTERFACE ${LLD_INCLUDE_DIRS})
if(NOT SARDONYX_STATIC_LLVM)
  set(CMAKE_INSTALL_RPATH ${LLVM_LIBRARY_DIRS})
endif()
