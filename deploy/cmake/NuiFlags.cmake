# Compiler settings of every target. Presets choose sanitizers and -Werror.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(NUI_WERROR "warnings are errors" OFF)
set(NUI_SANITIZE "" CACHE STRING "value for -fsanitize=, e.g. address,undefined")

find_program(NUI_CCACHE ccache)
if(NUI_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${NUI_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${NUI_CCACHE})
endif()

# Asserts check invariants that stay checked in production: never define NDEBUG.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${config} "${CMAKE_CXX_FLAGS_${config}}")
endforeach()

add_library(nui_flags INTERFACE)
target_include_directories(nui_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(nui_flags INTERFACE _GNU_SOURCE NUI_VERSION="${PROJECT_VERSION}")
target_compile_options(nui_flags INTERFACE
    -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-align -Wundef -Wvla -Wformat=2
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings>
    -fno-common -fstack-protector-strong)
if(NUI_WERROR)
    target_compile_options(nui_flags INTERFACE -Werror)
endif()
# A program loads only the libraries that it calls: nui without the HTTP server of the daemons and the ten libraries under it.
target_link_options(nui_flags INTERFACE -Wl,--as-needed)
if(NUI_SANITIZE)
    target_compile_options(nui_flags INTERFACE -fsanitize=${NUI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # At fixed addresses: starting and ending a program with sanitizers touches a quarter fewer pages, and tests start thousands.
    target_link_options(nui_flags INTERFACE -fsanitize=${NUI_SANITIZE}
                        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
elseif(CMAKE_BUILD_TYPE MATCHES "Rel")
    target_compile_options(nui_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    target_link_options(nui_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
