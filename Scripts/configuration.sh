# Sourced by the other scripts: how everything is built. `build_flags` goes to each `swift build` and `swift test`, so that
# the tool, its tests, the demo and the benchmarks are one build: optimized, as the tests decode for minutes in debug code,
# and with what `@testable import` needs.
#
#   REEL_CONFIGURATION=debug Scripts/test    builds faster after a change, and runs slower

case ${REEL_CONFIGURATION:=release} in
  release) build_flags=(-c release -Xswiftc -enable-testing) ;;
  debug) build_flags=(-c debug) ;;
  *)
    echo "REEL_CONFIGURATION is '$REEL_CONFIGURATION': release and debug are known" >&2
    exit 64
    ;;
esac
