# Writes a C++ file with the hash of what the CPU kernels are compiled from: their sources in the
# order of their names, and the compiler and flags that BUILD holds.
# cmake -DROOT=<source root> -DFILES=<a,b,...> -DBUILD=<file> -DOUT=<file> -P code_hash.cmake
string(REPLACE "," ";" FILES "${FILES}")
list(SORT FILES)
file(READ "${BUILD}" text)
foreach(file IN LISTS FILES)
  file(SHA256 "${ROOT}/${file}" hash)
  string(APPEND text "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING "${hash}" 0 16 hash)
file(WRITE "${OUT}"
  "#include \"kernels/cpu/code_hash.h\"\n\nnamespace moegauge::cpu {\n\n"
  "std::string_view code_hash() { return \"${hash}\"; }\n\n}  // namespace moegauge::cpu\n")
