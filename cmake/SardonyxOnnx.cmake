# libonnx: the C++ sources that the onnx wheel ships (checker, schemas,
# inference, inliner), as one static library over Debian's protobuf.

execute_process(
  COMMAND ${SARDONYX_PYTHON} -c "import onnx, os; print(os.path.dirname(os.path.dirname(onnx.__file__)))"
  OUTPUT_VARIABLE ONNX_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(Protobuf 3.21 REQUIRED)

set(proto_out ${CMAKE_BINARY_DIR}/libonnx)
file(MAKE_DIRECTORY ${proto_out})
foreach(stem onnx-ml onnx-operators-ml onnx-data)
  if(EXISTS ${ONNX_ROOT}/onnx/${stem}.proto)
    list(APPEND protos ${ONNX_ROOT}/onnx/${stem}.proto)
    list(APPEND proto_srcs ${proto_out}/onnx/${stem}.pb.cc)
    list(APPEND proto_hdrs ${proto_out}/onnx/${stem}.pb.h)
  endif()
endforeach()
add_custom_command(
  OUTPUT ${proto_srcs} ${proto_hdrs}
  COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${ONNX_ROOT} --cpp_out=${proto_out} ${protos}
  DEPENDS ${protos} COMMENT "Generating libonnx's protobuf classes")

# Relative, so that the filter doesn't see where this tree happens to lie.
file(GLOB_RECURSE onnx_srcs RELATIVE ${ONNX_ROOT} ${ONNX_ROOT}/onnx/*.cc)
list(FILTER onnx_srcs EXCLUDE REGEX "cpp2py_export|/test/|/fuzz/")
list(TRANSFORM onnx_srcs PREPEND ${ONNX_ROOT}/)
add_library(SardonyxLibOnnx STATIC ${onnx_srcs} ${proto_srcs})
target_compile_definitions(SardonyxLibOnnx PUBLIC ONNX_ML=1 ONNX_NAMESPACE=onnx
                           __ONNX_NO_DOC_STRINGS)
target_include_directories(SardonyxLibOnnx SYSTEM PUBLIC ${proto_out} ${ONNX_ROOT})
target_link_libraries(SardonyxLibOnnx PUBLIC
  $<IF:${is_portable},SardonyxPortableProtobuf,protobuf::libprotobuf>)
# Its speed matters little and its build time does.
target_compile_options(SardonyxLibOnnx PRIVATE -w -O1)
if(SARDONYX_SANITIZE)
  # Its arithmetic on a hostile model's sizes is told when it overflows, and goes on.
  target_compile_options(SardonyxLibOnnx PRIVATE -g0 -fsanitize-recover=undefined)
endif()
