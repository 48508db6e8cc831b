# An installed tree:
#   lib/moegauge/    the binary and, beside it, the modules that it opens
#   bin/moegauge     a link to that binary
#   share/moegauge/  the data it reads, laid out as in the source tree
# The binary finds the rest from its own real path, so the tree may be moved as a whole.
if(NOT TARGET moegauge)
  return()
endif()
include(GNUInstallDirs)

get_property(modules GLOBAL PROPERTY MOEGAUGE_MODULES)
if(modules)
  add_dependencies(moegauge ${modules})
endif()
set(libdir ${CMAKE_INSTALL_LIBDIR}/moegauge)
install(TARGETS moegauge ${modules} RUNTIME DESTINATION ${libdir} LIBRARY DESTINATION ${libdir})

file(RELATIVE_PATH link /${CMAKE_INSTALL_BINDIR} /${libdir}/moegauge)
install(CODE "
  set(bin \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  file(MAKE_DIRECTORY \"\${bin}\")
  file(CREATE_LINK ${link} \"\${bin}/moegauge\" SYMBOLIC)
  message(STATUS \"Installing: \${bin}/moegauge -> ${link}\")")

set(data ${CMAKE_INSTALL_DATADIR}/moegauge)
install(DIRECTORY suites DESTINATION ${data}
  FILES_MATCHING PATTERN "*.json" PATTERN "benchmarks" EXCLUDE)
install(DIRECTORY results/schema DESTINATION ${data}/results OPTIONAL)
file(GLOB config_folders RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS kernels/*/configs)
foreach(folder IN LISTS config_folders)
  install(DIRECTORY ${folder}/ DESTINATION ${data}/${folder})
endforeach()
