# The package sardonyx_runtime: of sardonyx, what needs no compiler.
set(runtime_files ${CMAKE_CURRENT_LIST_DIR}/runtime/sardonyx_runtime/__init__.py
                  ${CMAKE_CURRENT_LIST_DIR}/sardonyx/py.typed)
foreach(file _adapters _arrays _async _attributes _binding _config_keys _cuda _devices _log _native_session
             _providers _run_options _running _suggest _values errors)
  list(APPEND runtime_files ${CMAKE_CURRENT_LIST_DIR}/sardonyx/${file}.py)
endforeach()
install(FILES ${runtime_files} DESTINATION sardonyx_runtime COMPONENT python)
