# Every library that the project links, all from Debian's packages, under the names modules use.

find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)

# Packages without CMake files of their own: a header and a library are enough to name them.
function(kaas_import target header library)
    find_path(${target}_INCLUDE ${header} REQUIRED)
    find_library(${target}_LIBRARY ${library} REQUIRED)
    mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION ${${target}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${${target}_INCLUDE})
endfunction()

kaas_import(isal isa-l.h isal)
kaas_import(lz4 lz4frame.h lz4)
kaas_import(zstd zstd.h zstd)
kaas_import(snappy snappy.h snappy)
kaas_import(re2 re2/re2.h re2)
kaas_import(jemalloc jemalloc/jemalloc.h jemalloc_pic)

# What every target sees. Library definitions stand here once, because a precompiled header refuses
# to be used by a target that is compiled with other definitions.
add_library(kaas_common INTERFACE)
target_include_directories(kaas_common INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                 ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(kaas_common INTERFACE
    # Asio's deprecated interfaces and its fallbacks for old compilers are not for us.
    BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_ARRAY BOOST_ASIO_DISABLE_BOOST_BIND)
target_link_libraries(kaas_common INTERFACE fmt::fmt spdlog::spdlog Boost::json Boost::url
                                            Threads::Threads)
