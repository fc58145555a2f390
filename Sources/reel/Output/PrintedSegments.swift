import Foundation
import ReelCore
import ReelManifest

/// The segments of a rung that are printed as JSON. They are made one by one when they are written, so that their number
/// costs no memory.
struct PrintedSegments {
  /// What a record has in its field `segments` instead of them.
  typealias Placeholder = [Int]

  /// What they refer to by its index.
  let initializations: [InitializationReference]
  private let indexes: [InitializationReference: Int]
  private let segments: SegmentList.SubSequence
  private let total: Int

  /// - Parameters:
  ///   - segments: Those of `list` that are printed.
  ///   - withInitializations: The initializations are printed as well.
  init(_ segments: SegmentList.SubSequence, of list: SegmentList, withInitializations: Bool) {
    var known: [InitializationReference] = []
    var indexes: [InitializationReference: Int] = [:]
    let note = { (reference: InitializationReference) in
      guard indexes[reference] == nil else { return }
      indexes[reference] = known.count
      known.append(reference)
    }
    if withInitializations, let common = list.commonInitialization, !segments.isEmpty {
      note(common)
    } else if withInitializations {
      for segment in segments { segment.initialization.map(note) }
    }
    initializations = known
    self.indexes = indexes
    self.segments = segments
    total = list.count
  }

  /// Prints `record` with the segments that belong into its fields `segments`, list after list. Where some of a list are
  /// left out, a field `segments_omitted` behind tells how many: the last ones, or of a live rung the oldest.
  static func print(_ record: some Encodable, with lists: [PrintedSegments]) throws(ReelError) {
    // A quote inside of a string is escaped: this stands nowhere but where a list belongs.
    let placeholder = "\"segments\":[]"
    let parts = try JSONLine.string(record).components(separatedBy: placeholder)
    guard parts.count == lists.count + 1 else {
      throw ReelError(.internalFault, "a result has \(parts.count - 1) lists of segments, not \(lists.count)")
    }
    var text = JSONText()
    var budget = byteBudget
    for (part, list) in zip(parts, lists) {
      text.append(part)
      try list.write(to: &text, budget: &budget)
    }
    text.append(parts[lists.count])
    text.append("\n")
    try Console.write(text.bytes)
  }

  // MARK: - Private

  /// Of the segments of all rungs, as text.
  private static let byteBudget = 32 << 20
  private static let pieceSize = 64 << 10

  /// - Parameter budget: Bytes that may still be written: what is beyond is left out.
  private func write(to text: inout JSONText, budget: inout Int) throws(ReelError) {
    text.append("\"segments\":[")
    var count = 0
    for segment in segments {
      guard budget > 0 else { break }
      if count > 0 { text.append(",") }
      count += 1
      let record = SegmentRecord(segment, initialization: segment.initialization.flatMap { indexes[$0] })
      record.write(to: &text)
      budget -= record.byteCount
      if text.bytes.count >= Self.pieceSize {
        try Console.write(text.bytes)
        text.removeAll()
      }
    }
    text.append("]")
    if count < total { text.append(",\"segments_omitted\":\(total - count)") }
  }
}
