# sardonyx_add_model(NAME MODEL model.onnx [CPU cpu...] [DIM name=size...]
#                    [OPTIONS option...])
#
# Compiles a model when the project is built. What links to the target NAME has the
# model inside and its functions in NAME.h (NAME.hpp in C++), and needs neither
# Sardonyx nor the model when it runs. CPU, DIM and OPTIONS are those of
# `sardonyx build`.
function(sardonyx_add_model name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "MODEL" "CPU;DIM;OPTIONS")
  if(NOT ARG_MODEL OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sardonyx_add_model(NAME MODEL model.onnx [CPU cpu...] "
      "[DIM name=size...] [OPTIONS option...]), got '${ARGN}'")
  endif()
  get_filename_component(model ${ARG_MODEL} ABSOLUTE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.model)
  file(MAKE_DIRECTORY ${folder})
  set(options ${ARG_OPTIONS})
  if(ARG_CPU)
    list(JOIN ARG_CPU "," cpus)
    list(APPEND options --cpu ${cpus})
  endif()
  foreach(dim ${ARG_DIM})
    list(APPEND options --dim ${dim})
  endforeach()
  set(archive ${folder}/${name}.a)
  add_custom_command(OUTPUT ${archive}
    BYPRODUCTS ${folder}/${name}.h ${folder}/${name}.hpp
    COMMAND Sardonyx::sardonyx build ${model} -o ${archive} --name ${name} --quiet ${options}
    DEPENDS ${model} COMMENT "Compiling the model ${name}" VERBATIM)
  add_custom_target(${name}-model DEPENDS ${archive})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}-model)
  target_link_libraries(${name} INTERFACE ${archive} m)
  target_include_directories(${name} INTERFACE ${folder})
endfunction()
