import Foundation
import ReelCore
import ReelManifest

/// The segments of a rung to print as JSON. Each one is made only when it is written, so memory does not grow with
/// their number.
struct PrintedSegments {
  /// The empty value of a record's field `segments`, which is replaced by the segments when the record is printed.
  typealias Placeholder = [Int]

  /// The initializations, which segments refer to by index.
  let initializations: [InitializationReference]
  private let indexes: [InitializationReference: Int]
  private let segments: SegmentList.SubSequence
  private let total: Int

  /// - Parameters:
  ///   - segments: The part of `list` to print.
  ///   - withInitializations: True to print the initializations as well.
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

  /// Prints `record` with the lists of segments in its `segments` fields. If some of a list are left out, a field
  /// `segments_omitted` after it gives their number. Left out are the last segments, or the oldest ones of a live
  /// rung.
  static func print(_ record: some Encodable, with lists: [PrintedSegments]) throws(ReelError) {
    // Quotes inside strings are escaped, so this text occurs only as a placeholder.
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

  /// The largest text of the segments of all rungs.
  private static let byteBudget = 32 << 20
  private static let pieceSize = 64 << 10

  /// - Parameter budget: The number of bytes that may still be written. Segments beyond it are left out.
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
