# The precompiled headers that the libraries share: of MLIR, and of the onnx dialect. They are two, so that a change of
# an op of ONNX compiles again only what knows these ops.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
function(sardonyx_precompiled name header)
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
  target_compile_options(${name} PRIVATE -fno-exceptions)
  target_include_directories(${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
endfunction()
sardonyx_precompiled(SardonyxPCH pch.h)
sardonyx_precompiled(SardonyxONNXPCH pch-onnx.h)
add_dependencies(SardonyxONNXPCH SardonyxONNXIncGen)
