# cmake -DOUTPUT=FILE -DSOURCES="a.cpp;b.cpp" -P CollectFunctions.cmake
#
# Writes DO(name) for each SARDONYX_RUNTIME_FUNCTION(name, ...) of the sources,
# in order of their names: what compiled code may call (Symbols.cpp).
set(names)
foreach(source ${SOURCES})
  file(STRINGS ${source} lines REGEX "^SARDONYX_RUNTIME_FUNCTION\\(")
  foreach(line ${lines})
    string(REGEX REPLACE "^SARDONYX_RUNTIME_FUNCTION\\(([a-z0-9_]+),.*" "DO(\\1)\n" line "${line}")
    list(APPEND names "${line}")
  endforeach()
endforeach()
list(SORT names)
list(REMOVE_DUPLICATES names)
string(CONCAT text ${names})
file(WRITE ${OUTPUT} "${text}")
