# The runtime for machines other than this one, by clang and Debian's cross
# libraries, where these are there (g++-aarch64-linux-gnu).
set(other_flags -O2 -DNDEBUG -fPIC -std=c++17 -fvisibility=hidden
    -fvisibility-inlines-hidden -ffunction-sections -fdata-sections)
# Headers without code of their own, which are the same for all machines.
set(other_include ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${other_include})
foreach(header xxhash.h)
  file(CREATE_LINK /usr/include/${header} ${other_include}/${header} SYMBOLIC)
endforeach()
# What takes libraries that are not there for other machines is left out, and
# what only the JIT needs.
file(GLOB other_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/lib/Runtime/*.cpp ${PROJECT_SOURCE_DIR}/lib/Model/*.cpp)
list(FILTER other_sources EXCLUDE REGEX "/(Image|Regex|Case|Symbols|LoadArtifact)[^/]*$")
list(APPEND other_sources ${CMAKE_CURRENT_SOURCE_DIR}/HalfParts.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/OneThread.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/Program.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/Start.S ${CMAKE_CURRENT_SOURCE_DIR}/StartParts.cpp)
file(GLOB other_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/sardonyx/Runtime/*.h
  ${PROJECT_SOURCE_DIR}/include/sardonyx/Model/*.h
  ${PROJECT_SOURCE_DIR}/include/sardonyx-c/*.h
  ${PROJECT_SOURCE_DIR}/lib/Runtime/*.h ${PROJECT_SOURCE_DIR}/lib/Model/*.h)

function(add_other_machine name)
  if(name STREQUAL multiarch)
    return()
  endif()
  set(static_libraries)
  foreach(library stdc++ gcc_eh gcc)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} --target=${name} -print-file-name=lib${library}.a
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT IS_ABSOLUTE ${file} OR NOT EXISTS ${file})
      message(STATUS "Models cannot be built for ${name}: there is no lib${library}.a for it")
      return()
    endif()
    list(APPEND static_libraries ${file})
  endforeach()
  set(objects)
  foreach(source ${other_sources})
    get_filename_component(base ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}/${base}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/${name}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER} --target=${name} ${other_flags}
              -Wno-unused-command-line-argument
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
    COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${archive} "-DARCHIVES=${own};${static_libraries}"
            -P ${CMAKE_CURRENT_SOURCE_DIR}/MergeArchives.cmake
    DEPENDS ${objects} ${CMAKE_CURRENT_SOURCE_DIR}/MergeArchives.cmake VERBATIM)
  add_custom_target(SardonyxRuntimeFor-${name} ALL DEPENDS ${archive})
  install(FILES ${archive} DESTINATION lib/sardonyx/${name})
  # Of what pip builds it is no part.
  install(FILES ${archive} DESTINATION sardonyx/lib/sardonyx/${name} COMPONENT python OPTIONAL
          EXCLUDE_FROM_ALL)
endfunction()

add_other_machine(aarch64-linux-gnu)
