# Writes the text of HEADERS to OUTPUT as a literal of C++, without their
# includes of each other.
set(text "")
foreach(header ${HEADERS})
  file(READ ${header} content)
  string(REGEX REPLACE "#include \"sardonyx-c/[A-Za-z]+.h\"\n" "" content "${content}")
  string(APPEND text "${content}\n")
endforeach()
# A literal may hold some kilobytes only; neighbours become one.
string(REPLACE "\n\n" "\n)INTERFACE\"\n    R\"INTERFACE(\n" text "${text}")
file(WRITE ${OUTPUT} "R\"INTERFACE(${text})INTERFACE\"\n")
