# nui_library (name SOURCES... [LIBS ...])    a static library of the project
# nui_test (name SOURCES... [LIBS ...])       a cmocka test registered with ctest
# nui_quick (TESTS...)                        tests of the quick tier
# nui_counted (name)                          NAME_counted: it and all of the project under it once more, counting
include(CMakeParseArguments)

function(nui_library name)
    cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
    add_library(${name} STATIC ${A_SOURCES} ${A_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PUBLIC nui_flags ${A_LIBS})
endfunction()

# What takes longer than two seconds is not in `ctest -L quick`, the tier to run after every edit (a minute in all).
set(NUI_SLOW
    meta_kills meta_metad meta_prices prop_local_life prop_local_model prop_local_replay prop_local_steady test_bank_awards test_bank_beside
    test_bank_bounds test_bank_cli test_bank_daemon test_bank_history test_bank_migrations test_bank_overlap
    test_bank_players test_bank_rates test_bank_recovery test_bank_roles test_bank_rules test_bank_schema
    test_bank_signed test_bank_standby test_bank_store test_client_faults test_lab_command test_lab_experiments
    test_local_coalloc test_local_history test_local_jobs test_local_life test_local_passes test_local_query test_local_trust test_metas
    test_rm_embedded test_sim_claims test_sim_grid test_slurm_rm)

function(nui_quick)
    foreach(name ${ARGN})
        if(NOT name IN_LIST NUI_SLOW)
            set_property(TEST ${name} APPEND PROPERTY LABELS quick)
        endif()
    endforeach()
endfunction()

function(nui_test name)
    cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
    add_executable(${name} ${A_SOURCES} ${A_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE nui_flags ${A_LIBS} cmocka)
    add_test(NAME ${name} COMMAND ${name})
    if(NOT A_TIMEOUT)
        set(A_TIMEOUT 1800) # against hangs only; a loaded machine may take its time
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT})
    nui_quick(${name})
endfunction()

# Copies of a library and of those of the project that it links to, in which every basic block calls
# __sanitizer_cov_trace_pc: for tests that measure work. The same code whatever else is built: no sanitizers, -O1. The
# libraries themselves come after their copies, for what they link to.
function(nui_counted name)
    if(TARGET ${name}_counted OR NOT TARGET ${name} OR NOT name MATCHES "^nui_" OR name MATCHES "^nui_(flags|proto)$")
        return()
    endif()
    get_target_property(dir ${name} SOURCE_DIR)
    get_target_property(sources ${name} SOURCES)
    get_target_property(libs ${name} LINK_LIBRARIES)
    list(TRANSFORM sources PREPEND ${dir}/ REGEX "^[^/]")
    add_library(${name}_counted STATIC EXCLUDE_FROM_ALL ${sources})
    foreach(s ${sources})
        if(s MATCHES "^${CMAKE_BINARY_DIR}/")
            set_source_files_properties(${s} PROPERTIES GENERATED TRUE)
        endif()
    endforeach()
    add_dependencies(${name}_counted ${name})
    target_include_directories(${name}_counted PRIVATE $<TARGET_PROPERTY:${name},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${name}_counted PRIVATE $<TARGET_PROPERTY:${name},COMPILE_DEFINITIONS>)
    target_compile_options(${name}_counted PRIVATE -O1 -w -fsanitize-coverage=trace-pc)
    foreach(l ${libs})
        nui_counted(${l})
        if(TARGET ${l}_counted)
            target_link_libraries(${name}_counted PUBLIC ${l}_counted)
        endif()
    endforeach()
    target_link_libraries(${name}_counted PUBLIC ${name})
endfunction()
