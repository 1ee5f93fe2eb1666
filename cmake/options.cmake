# How every target is compiled. All flags and definitions are global on purpose: a precompiled header
# can be shared only by targets that are compiled alike.

option(KAAS_PCH "Use the shared precompiled headers" ON)
option(KAAS_FUZZ "Build libFuzzer targets" OFF)
option(KAAS_CCACHE "Compile through ccache when it is installed" ON)
set(KAAS_SANITIZE "" CACHE STRING "address (with undefined), thread, or empty")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

add_compile_options(
    -Wall -Wextra -Wshadow -Wthread-safety -Werror
    # Not CMAKE_POSITION_INDEPENDENT_CODE: that compiles libraries with -fPIC and programs with -fPIE,
    # and one precompiled header cannot serve both.
    -fPIE
    -fno-omit-frame-pointer -ffunction-sections -fdata-sections
    # Paths in debug information and __FILE__ start at the source directory, so that objects are the
    # same wherever the checkout lies. The second form is what ccache turns the first one into.
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
    -ffile-prefix-map=../../=)
add_link_options(-pie -fuse-ld=lld -Wl,--gc-sections)

if(KAAS_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(KAAS_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
elseif(NOT KAAS_SANITIZE STREQUAL "")
    message(FATAL_ERROR "KAAS_SANITIZE is address, thread or empty, not '${KAAS_SANITIZE}'")
endif()
if(KAAS_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# docs/decisions/0002: hits across checkouts at other paths need all of these settings. They are set
# here, not in the environment, so that a bare `ninja` hits too.
find_program(CCACHE ccache)
if(KAAS_CCACHE AND CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env
        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros
        ${CCACHE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
