# Two precompiled headers: what almost every source includes, and the same with Asio for the modules
# that own sockets. They are made here and not by target_precompile_headers, because that puts a
# header of the build directory into them, and then neither they nor any object that uses them can be
# shared by checkouts at different paths (docs/decisions/0002). These see only system headers.
#
# Sources still include what they use: the lint preset compiles without.

set(KAAS_PCH_std
    algorithm array atomic bit chrono cstdint cstring deque expected functional map memory optional
    span string string_view thread unordered_map utility variant vector
    fmt/format.h)
set(KAAS_PCH_asio ${KAAS_PCH_std} boost/asio.hpp)

# The file that clang takes for the header proper. It must exist everywhere and hold next to nothing.
set(KAAS_PCH_ROOT /usr/include/stdc-predef.h)

function(kaas_add_pch flavour)
    set(target kaas_pch_${flavour})
    add_library(${target} OBJECT ${KAAS_PCH_ROOT})
    target_link_libraries(${target} PRIVATE kaas_common)
    target_compile_options(${target} PRIVATE
        -x c++-header -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp"
        "SHELL:-include $<JOIN:${KAAS_PCH_${flavour}}, -include >")
endfunction()

if(KAAS_PCH)
    set_source_files_properties(${KAAS_PCH_ROOT} PROPERTIES LANGUAGE CXX)
    kaas_add_pch(std)
    kaas_add_pch(asio)
endif()

function(kaas_use_pch target flavour)
    if(NOT KAAS_PCH OR flavour STREQUAL "none")
        return()
    endif()
    if(NOT flavour)
        set(flavour std)
    endif()
    set(pch ${PROJECT_BINARY_DIR}/CMakeFiles/kaas_pch_${flavour}.dir${KAAS_PCH_ROOT}.o)
    target_compile_options(${target} PRIVATE -include-pch ${pch})
    set_property(SOURCE ${ARGN} APPEND PROPERTY OBJECT_DEPENDS ${pch})
    add_dependencies(${target} kaas_pch_${flavour})
endfunction()
