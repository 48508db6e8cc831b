# Shared by the scripts of this folder; sourced, never run. Needs `root`, the source folder.

# Seconds are counted from the first script of a chain.
export MOEGAUGE_START=${MOEGAUGE_START:-$(date +%s)}
say() { printf '[%4d s] %s\n' "$(($(date +%s) - MOEGAUGE_START))" "$*" >&2; }

# stop CODE SENTENCE...: what is wrong, then what would be right, a line each.
stop() {
  local code=$1
  printf '%s: %s\n' "${0##*/}" "$2" >&2
  shift 2
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit "$code"
}

jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

# One bench or test at a time in a tree: two would build over each other and spoil each other's times.
hold_tree() {
  mkdir -p "$root/build" 2>/dev/null && [ -w "$root/build" ] ||
    stop 4 "cannot write to $root/build as $(id -un)" \
      "it belongs to another user: remove it, or run as that user"
  [ -z "${MOEGAUGE_TREE_HELD:-}" ] && command -v flock >/dev/null || return 0
  exec 9>"$root/build/.lock" || stop 4 "cannot write to $root/build/.lock as $(id -un)"
  flock -n 9 || stop 4 "another bench or test is at work in $root" "wait for it to end"
  export MOEGAUGE_TREE_HELD=1
}

# configure FOLDER PRESET [CMAKE OPTIONS...]
configure() {
  local folder=$1 preset=$2
  shift 2
  if [ -f "$folder/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    say "configure: ${folder#"$root"/} belongs to a tree elsewhere; starting it afresh"
    rm -rf "$folder"
  fi
  mkdir -p "$folder"
  (cd "$root" && cmake --preset "$preset" -B "$folder" "$@") >"$folder/configure.log" 2>&1 9>&- && return 0
  cat "$folder/configure.log" >&2
  return 1
}

# build FOLDER [TARGET...]: ninja's progress on a terminal; elsewhere faults only.
build() {
  local folder=$1 quiet=--quiet
  shift
  [ -t 2 ] && quiet=
  cmake --build "$folder" --parallel "$jobs" ${1:+--target "$@"} -- $quiet >&2 9>&-
}
