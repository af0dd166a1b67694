# nui_library (name SOURCES... [LIBS ...])    a static library of the project
# nui_test (name SOURCES... [LIBS ...])       a cmocka test registered with ctest
include(CMakeParseArguments)

function(nui_library name)
    cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
    add_library(${name} STATIC ${A_SOURCES} ${A_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PUBLIC nui_flags ${A_LIBS})
endfunction()

function(nui_test name)
    cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
    add_executable(${name} ${A_SOURCES} ${A_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE nui_flags ${A_LIBS} cmocka)
    add_test(NAME ${name} COMMAND ${name})
    if(NOT A_TIMEOUT)
        set(A_TIMEOUT 600) # against hangs only; a loaded machine may take its time
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT})
endfunction()
