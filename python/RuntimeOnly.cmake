# The package sardonyx_runtime: of sardonyx, what needs no compiler.
set(runtime_files __init__.py)
list(TRANSFORM runtime_files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/runtime/sardonyx_runtime/)
foreach(file _adapters _arrays _async _attributes _binding _config_keys _cuda _devices _log _native_session
             _providers _run_options _running _suggest _values errors)
  list(APPEND runtime_files ${CMAKE_CURRENT_SOURCE_DIR}/sardonyx/${file}.py)
endforeach()
list(APPEND runtime_files ${CMAKE_CURRENT_SOURCE_DIR}/sardonyx/py.typed)
install(TARGETS _runtime LIBRARY DESTINATION sardonyx_runtime COMPONENT python)
install(FILES ${runtime_files} DESTINATION sardonyx_runtime COMPONENT python)
