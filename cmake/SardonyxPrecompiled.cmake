# The precompiled header of MLIR's core that the libraries share.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
add_library(SardonyxPCH STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
target_compile_options(SardonyxPCH PRIVATE -fno-exceptions)
target_include_directories(SardonyxPCH SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_precompile_headers(SardonyxPCH PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.h)
