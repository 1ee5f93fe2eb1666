# kaas_library, kaas_binary, kaas_test, kaas_fuzz: how a module's CMakeLists.txt names its targets.
#
#   kaas_library(wire SOURCES batch.cc frame.cc DEPS base ZLIB::ZLIB)
#   kaas_test(wire SOURCES batch_test.cc DEPS zstd)
#   kaas_fuzz(wire_batch SOURCES batch_fuzz.cc DEPS wire)
#   kaas_binary(kaas SOURCES kaas.cc DEPS broker)
#
# DEPS are modules by name, or any other CMake target. The precompiled header with Asio is chosen by
# `PCH asio`, none by `PCH none`.

set(KAAS_MODULES base wire storage security net telemetry client catalog kube cluster coordinator
                 broker operator console bin)

# Files that are generated during a build hang on this target, so that tools which only read sources
# can have them without compiling anything.
add_custom_target(generated)
# Everything that is run and is no test.
add_custom_target(programs)
add_custom_target(fuzzers)

configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in
               ${PROJECT_BINARY_DIR}/generated/base/version.h @ONLY)

function(kaas_link target visibility)
    foreach(dependency IN LISTS ARGN)
        if(NOT dependency IN_LIST KAAS_MODULES)
            target_link_libraries(${target} ${visibility} ${dependency})
        elseif(TARGET kaas_${dependency})
            target_link_libraries(${target} ${visibility} kaas_${dependency})
        else()
            message(FATAL_ERROR "${target} needs module ${dependency}, which does not exist or stands "
                                "below it in KAAS_MODULES")
        endif()
    endforeach()
endfunction()

function(kaas_library name)
    cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PCH" "SOURCES;DEPS")
    set(target kaas_${name})
    if(ARG_SOURCES)
        add_library(${target} STATIC ${ARG_SOURCES})
        kaas_link(${target} PUBLIC kaas_common ${ARG_DEPS})
        kaas_use_pch(${target} "${ARG_PCH}" ${ARG_SOURCES})
        # A source may include a header that another module generates.
        add_dependencies(${target} generated)
    else()
        add_library(${target} INTERFACE)
        kaas_link(${target} INTERFACE kaas_common ${ARG_DEPS})
    endif()
endfunction()

function(kaas_executable target)
    cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PCH;FOLDER" "SOURCES;DEPS")
    add_executable(${target} ${ARG_SOURCES})
    kaas_link(${target} PRIVATE kaas_common ${ARG_DEPS})
    kaas_use_pch(${target} "${ARG_PCH}" ${ARG_SOURCES})
    add_dependencies(${target} generated)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${ARG_FOLDER})
endfunction()

function(kaas_binary name)
    kaas_executable(${name} FOLDER bin ${ARGN})
    add_dependencies(programs ${name})
endfunction()

# One gtest binary a module, in build/<preset>/tests, and one ctest entry of the module's name.
function(kaas_test name)
    cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PCH;TIMEOUT" "SOURCES;DEPS;LABELS")
    set(target kaas_${name}_test)
    if(TARGET kaas_${name})
        list(PREPEND ARG_DEPS kaas_${name})
    endif()
    kaas_executable(${target} FOLDER tests PCH ${ARG_PCH} SOURCES ${ARG_SOURCES}
                    DEPS ${ARG_DEPS} GTest::gmock_main)
    add_test(NAME ${name} COMMAND ${target})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    set_tests_properties(${name} PROPERTIES
        TIMEOUT ${ARG_TIMEOUT}
        LABELS "${ARG_LABELS}"
        ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1;UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=second_deadlock_stack=1")
endfunction()

# A libFuzzer target, in build/fuzz/fuzz. Other presets skip it.
function(kaas_fuzz name)
    if(KAAS_FUZZ)
        kaas_executable(kaas_${name}_fuzz FOLDER fuzz ${ARGN})
        target_link_options(kaas_${name}_fuzz PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzzers kaas_${name}_fuzz)
    endif()
endfunction()
