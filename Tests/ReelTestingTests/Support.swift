import ReelCore

/// When the simulations of the tests begin: 2026-01-31T12:00:00Z.
let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value, timescale: 1_000_000) }
