# Writes the text of FILES to OUTPUT as a literal of C++, headers without their
# includes of each other.
set(text "")
foreach(file ${FILES})
  file(READ ${file} content)
  string(REGEX REPLACE "#include \"sardonyx-c/[A-Za-z]+.h\"\n" "" content "${content}")
  string(APPEND text "${content}\n")
endforeach()
# A literal may hold some kilobytes only; neighbours become one.
string(REPLACE "\n\n" "\n)INTERFACE\"\n    R\"INTERFACE(\n" text "${text}")
file(WRITE ${OUTPUT} "R\"INTERFACE(${text})INTERFACE\"\n")
