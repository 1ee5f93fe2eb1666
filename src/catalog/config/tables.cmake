# tools/configgen turns config/**/*.toml into the tables of known configs and their typed structs; the
# sources are in ${config_tables}.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(configgen ${PROJECT_SOURCE_DIR}/tools/configgen)
set(generated ${PROJECT_BINARY_DIR}/generated/catalog/config)
file(GLOB definitions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/config/*.toml
                                        ${PROJECT_SOURCE_DIR}/config/*/*.toml)
file(GLOB generator CONFIGURE_DEPENDS ${configgen}/*.py)
set(config_tables
    ${generated}/broker_settings.cc
    ${generated}/broker_table.cc
    ${generated}/client_metrics_table.cc
    ${generated}/group_table.cc
    ${generated}/topic_settings.cc
    ${generated}/topic_table.cc)

add_custom_command(
    OUTPUT ${config_tables} ${generated}/broker_settings.h ${generated}/topic_settings.h
    COMMAND Python3::Interpreter ${configgen}/configgen.py cpp ${generated}
    DEPENDS ${definitions} ${generator}
    COMMENT "Generating the configuration tables"
    VERBATIM)
add_custom_target(config_tables DEPENDS ${config_tables})
add_dependencies(generated config_tables)

# The recorded answers of Apache, for the test that compares ours with them.
set(recording ${PROJECT_SOURCE_DIR}/tests/apache/recorded/describe_configs.tsv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recording})
file(READ ${recording} recorded)
configure_file(config/apache_describe_configs.h.in ${generated}/apache_describe_configs.h @ONLY)
