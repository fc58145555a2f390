extension FrameNames {
  /// The names that a list gives.
  ///
  /// - Parameter hasSeveral: Whether the source may have several files: they are numbered, unless their times are in
  ///   their names.
  init(_ names: BatchNames, hasSeveral: Bool) {
    let isNumbered = hasSeveral && !names.hasTime
    let first = names.hasTime ? nil : names.fileName(time: 0, number: isNumbered ? 1 : nil)
    self.init(first: first, usesTime: names.hasTime) { number, time, isTaken in
      names.fileName(time: time, number: isNumbered || isTaken ? number : nil)
    }
  }
}
