# The build configuration, sourced by the other scripts. `build_flags` goes to every `swift build` and `swift test`,
# so the tool, its tests, the demo and the benchmarks share one build. It is optimized, because decoding takes the
# tests minutes in debug code, and it supports `@testable import`.
#
#   REEL_CONFIGURATION=debug Scripts/test    compiles faster after a change, runs slower

case ${REEL_CONFIGURATION:=release} in
  release) build_flags=(-c release -Xswiftc -enable-testing) ;;
  debug) build_flags=(-c debug) ;;
  *)
    echo "REEL_CONFIGURATION is '$REEL_CONFIGURATION'; it must be release or debug" >&2
    exit 64
    ;;
esac
