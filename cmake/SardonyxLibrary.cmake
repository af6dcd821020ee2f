# sardonyx_library(NAME [EXCEPTIONS] [PLAIN] [ONNX] [DEPENDS t...] [LINK lib...])
#
# A static library of every .cpp in the calling folder. It shares a precompiled
# header of MLIR (of the onnx dialect, with ONNX), unless it is PLAIN (no MLIR at
# all) or uses EXCEPTIONS (importer, exporter, contrib and the libonnx bridge only).
function(sardonyx_library name)
  cmake_parse_arguments(ARG "EXCEPTIONS;PLAIN;ONNX" "" "DEPENDS;LINK;SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${CMAKE_BINARY_DIR}/pch.cpp)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(NOT ARG_PLAIN)
    target_link_libraries(${name} PUBLIC SardonyxLLVM)
    if(NOT ARG_EXCEPTIONS)
      target_compile_options(${name} PRIVATE -fno-exceptions)
      set(precompiled SardonyxPCH)
      if(ARG_ONNX)
        set(precompiled SardonyxONNXPCH)
      endif()
      target_precompile_headers(${name} REUSE_FROM ${precompiled})
    endif()
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# sardonyx_sanitize_threads(TARGET...)
# ThreadSanitizer, where it is asked for, over what runs models. The compiler
# stays without: it shares its threads with MLIR, which has none of it, and whose
# synchronisation it therefore would not see.
function(sardonyx_sanitize_threads)
  if(SARDONYX_SANITIZE_THREADS)
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE -fsanitize=thread -O1 -g1)
      target_link_options(${target} PUBLIC -fsanitize=thread)
      # The precompiled header is made without.
      set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    endforeach()
  endif()
endfunction()

# sardonyx_tablegen(TARGET FILE.td [OUTPUT FLAG...]... )
# Runs mlir-tblgen once for each "OUTPUT|FLAGS" pair.
function(sardonyx_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  foreach(pair ${ARGN})
    string(REPLACE "|" ";" pair "${pair}")
    list(POP_FRONT pair output)
    mlir_tablegen(${output} ${pair})
  endforeach()
  set(outputs ${TABLEGEN_OUTPUT})
  add_custom_target(${target} DEPENDS ${outputs})
endfunction()
