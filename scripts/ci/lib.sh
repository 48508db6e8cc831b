# Shared by the recipes of this folder; sourced, never run. Needs `root`, the source folder.
. "$root/scripts/lib.sh"

# build_of TREE [BUILT]: sets `built` to a folder that holds bin/moegauge. BUILT is a build folder or an
# installed tree of an earlier stage; without it TREE is built now.
build_of() {
  built=${2:-$1/build/default}
  if [ -n "${2:-}" ]; then
    [ -x "$built/bin/moegauge" ] || stop 2 "$built has no bin/moegauge" "name a build folder or an installed tree"
    return
  fi
  [ -f "$1/CMakePresets.json" ] || stop 4 "$1 is no tree of moegauge that can be built: it has no CMakePresets.json"
  say "build: $1"
  local log
  log=$(mktemp) || stop 4 "no temporary file can be made"
  (cd "$1" && cmake --preset default && cmake --build --preset default --parallel "$jobs" --target moegauge) \
    >"$log" 2>&1 9>&- || { cat "$log" >&2; rm -f "$log"; stop 4 "$1 could not be built; the words are above"; }
  rm -f "$log"
}

# fresh_folder DIR: what an earlier run left there must not pass for this one's.
fresh_folder() {
  [ ! -e "$1" ] || [ -z "$(ls -A "$1" 2>/dev/null)" ] || stop 2 "$1 holds something already" "name a new folder, or remove it"
  mkdir -p "$1" || stop 4 "$1 cannot be made"
}

# The places where a CI system shows things, by what it sets in the environment.
on_github() { [ "${GITHUB_ACTIONS:-}" = true ]; }
on_buildkite() { [ "${BUILDKITE:-}" = true ] && command -v buildkite-agent >/dev/null; }

# shown MARKDOWN CODE: the report where people look; what the code means in the log.
shown() {
  local style=error
  case $2 in 0) style=success ;; 4) style=warning ;; esac
  if on_buildkite && [ -f "$1" ]; then
    buildkite-agent annotate --style "$style" --context moegauge <"$1" || say "buildkite-agent could not annotate"
  fi
  case $2 in
    0) say "passed" ;;
    1) say "FAILED: a case is slower, wrong or no longer ok; $1 says which and what to do" ;;
    4) say "NO VERDICT: neither passed nor failed; see above, mend the machine or the baseline, and run again" ;;
    *) say "exit code $2: see above" ;;
  esac
}
