# The runtime for machines other than this one, by clang and Debian's libraries
# for them, where these are there (g++-aarch64-linux-gnu; wasi-libc,
# libc++-22-dev-wasm32 and libclang-rt-22-dev-wasm32).
set(other_flags -O2 -DNDEBUG -fPIC -std=c++17 -fvisibility=hidden
    -fvisibility-inlines-hidden -ffunction-sections -fdata-sections
    -Wno-unused-command-line-argument)
# Headers without code of their own, which are the same for all machines.
set(other_include ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${other_include})
foreach(header xxhash.h)
  file(CREATE_LINK /usr/include/${header} ${other_include}/${header} SYMBOLIC)
endforeach()
# What takes libraries that are not there for other machines is left out
# (lib/Runtime/Image, regular expressions, letters' cases), and what only the JIT
# needs.
file(GLOB other_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/lib/Runtime/*.cpp ${PROJECT_SOURCE_DIR}/lib/Model/*.cpp)
list(FILTER other_sources EXCLUDE REGEX "/(Regex|Case|Symbols|LoadArtifact)[^/]*$")
# What uses CUDA's driver, for machines that have one.
file(GLOB other_device_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/lib/Runtime/GPU/*.cpp ${PROJECT_SOURCE_DIR}/lib/Model/Device/*.cpp)
file(GLOB other_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/sardonyx/Runtime/*.h
  ${PROJECT_SOURCE_DIR}/include/sardonyx/Model/*.h
  ${PROJECT_SOURCE_DIR}/include/sardonyx-c/*.h
  ${PROJECT_SOURCE_DIR}/lib/Runtime/*.h ${PROJECT_SOURCE_DIR}/lib/Model/*.h
  ${PROJECT_SOURCE_DIR}/lib/Runtime/GPU/*.h ${PROJECT_SOURCE_DIR}/lib/Model/Device/*.h
  ${CMAKE_CURRENT_SOURCE_DIR}/Web/include/*.h)

# runtime_for(name FLAGS ... SOURCES ... ARCHIVES ...): libsardonyx-runtime.a for
# a machine, with the members of its own libraries.
function(runtime_for name)
  cmake_parse_arguments(arg "" "" "FLAGS;SOURCES;ARCHIVES" ${ARGN})
  set(objects)
  foreach(source ${arg_SOURCES})
    get_filename_component(base ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}/${base}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${name}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} ${other_flags} ${arg_FLAGS}
              -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -isystem ${other_include}
              -c ${source} -o ${object}
      DEPENDS ${source} ${other_headers} VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(own ${CMAKE_CURRENT_BINARY_DIR}/${name}/libown.a)
  set(archive ${CMAKE_BINARY_DIR}/lib/sardonyx/${name}/libsardonyx-runtime.a)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${own}
    COMMAND ${CMAKE_AR} qc ${own} ${objects}
    COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${archive} "-DARCHIVES=${own};${arg_ARCHIVES}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/MergeArchives.cmake
    DEPENDS ${objects} ${CMAKE_CURRENT_SOURCE_DIR}/MergeArchives.cmake VERBATIM)
  add_custom_target(SardonyxRuntimeFor-${name} ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION lib/sardonyx/${name})
  # Of what pip builds it is no part.
  install(FILES ${archive} DESTINATION sardonyx/lib/sardonyx/${name} COMPONENT python OPTIONAL
          EXCLUDE_FROM_ALL)
endfunction()

function(add_other_machine name)
  if(name STREQUAL multiarch)
    return()
  endif()
  set(archives)
  foreach(library stdc++ gcc_eh gcc)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} --target=${name} -print-file-name=lib${library}.a
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT IS_ABSOLUTE ${file} OR NOT EXISTS ${file})
      message(STATUS "Models cannot be built for ${name}: there is no lib${library}.a for it")
      return()
    endif()
    list(APPEND archives ${file})
  endforeach()
  runtime_for(${name} FLAGS --target=${name}
    SOURCES ${other_sources} ${other_device_sources}
      ${CMAKE_CURRENT_SOURCE_DIR}/HalfParts.cpp ${CMAKE_CURRENT_SOURCE_DIR}/OneThread.cpp
      ${CMAKE_CURRENT_SOURCE_DIR}/Program.cpp
      ${CMAKE_CURRENT_SOURCE_DIR}/Start.S ${CMAKE_CURRENT_SOURCE_DIR}/StartParts.cpp
    ARCHIVES ${archives})
endfunction()

# WebAssembly has no system: what asks for one has its counterpart in Web. Its
# C++ library knows neither threads nor exceptions, setjmp is the engine's.
function(add_web)
  set(name wasm32-wasi)
  set(llvm ${LLVM_LIBRARY_DIRS}/..)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir
    OUTPUT_VARIABLE resources OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(archives ${LLVM_LIBRARY_DIRS}/${name}/libc++.a ${LLVM_LIBRARY_DIRS}/${name}/libc++abi.a
    /usr/lib/${name}/libc.a /usr/lib/${name}/libm.a
    ${resources}/lib/wasi/libclang_rt.builtins-wasm32.a)
  foreach(file ${archives})
    if(NOT EXISTS ${file})
      message(STATUS "Models cannot be built for ${name}: there is no ${file}")
      return()
    endif()
  endforeach()
  set(sources ${other_sources})
  list(FILTER sources EXCLUDE REGEX "/(ThreadPool|CpuTopology|ForkSafeMutex|MachineMemory|FileMap|HalfConversions)[.]cpp$")
  runtime_for(${name}
    FLAGS --target=wasm32-wasip1 -msimd128 -fno-exceptions -fno-PIC
      -mexception-handling -mllvm -wasm-enable-sjlj -mllvm -wasm-use-legacy-eh
      -nostdinc++ -nostdlibinc
      -isystem ${llvm}/include/${name}/c++/v1 -isystem ${llvm}/include/c++/v1
      -isystem ${CMAKE_CURRENT_SOURCE_DIR}/Web/include -isystem /usr/include/${name}
    SOURCES ${sources}
      ${CMAKE_CURRENT_SOURCE_DIR}/Web/Machine.cpp ${CMAKE_CURRENT_SOURCE_DIR}/Web/SetJmp.cpp
    ARCHIVES ${archives})
endfunction()

add_other_machine(aarch64-linux-gnu)
add_web()
