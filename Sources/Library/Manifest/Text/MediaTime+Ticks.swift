import ReelCore

extension MediaTime {
  /// `ticks` of a timescale that may not fit 32 bits: then they become nanoseconds, rounded down.
  init(ticks: Int64, timescale: Int64) {
    if let fitting = Int32(exactly: timescale) {
      self.init(value: ticks, timescale: fitting)
    } else {
      let product = Int128(ticks) * 1_000_000_000
      self.init(value: Int64(clamping: product / Int128(max(timescale, 1))), timescale: 1_000_000_000)
    }
  }
}
