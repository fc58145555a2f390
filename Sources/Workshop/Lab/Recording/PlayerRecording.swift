internal import Foundation
package import ReelCore
internal import ReelPool

/// Reads a recording of `reel serve --record`, line by line: of any length, in bounded memory.
package final class PlayerRecording {
  package let run: RecordedRun
  /// What a user has to know about the recording, a line each. Complete when `next` has returned nil.
  package private(set) var notes: [String] = []

  private let path: String
  private let file: FileHandle
  private let decoder = RecordedLine.decoder
  private var buffer: ArraySlice<UInt8> = []
  private var lineNumber = 0
  private var clocks: [String: ReportedClock] = [:]

  private static let pieceByteCount = 1 << 20
  private static let lineLimit = 16 << 20

  /// Opens a recording and reads its first line.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile`, or `badManifest` if it is not a recording, or one of another version.
  package init(path: String) throws(ReelError) {
    self.path = path
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw ReelError(.noSuchFile, "no such recording, or it can't be read", at: path)
    }
    self.file = file
    struct Version: Decodable {
      var kind: String
      var version: Int
    }
    let (line, _) = try Self.nextLine(of: file, &buffer, at: path) ?? ([], true)
    lineNumber = 1
    guard let version = try? decoder.decode(Version.self, from: Data(line)), version.kind == "run" else {
      throw ReelError(.badManifest, "not a recording", at: path, advice: "reel serve --record writes one")
    }
    guard version.version == RecordedRun.currentVersion else {
      throw ReelError(
        .badManifest,
        "a recording of version \(version.version), and this program reads \(RecordedRun.currentVersion)",
        at: path)
    }
    do {
      run = try decoder.decode(RecordedRun.self, from: Data(line))
    } catch {
      throw ReelError(.badManifest, RecordedLine.reason(of: error), at: path, place: .line(1))
    }
  }

  /// Returns the index of each item of the recording in a feed, which may have others too.
  ///
  /// - Parameter items: The paths or URLs of the items. They may have more components in front than those of the recording.
  /// - Throws: `ReelError` of kind `usage` unless the feed has them all, in this order.
  package func places(in items: [String]) throws(ReelError) -> [Int] {
    var (places, next) = ([Int](), 0)
    for recorded in run.items {
      let parts = recorded.name.split(separator: "/")
      let place = items[next...].firstIndex { item in
        item.split(separator: "/").suffix(parts.count).elementsEqual(parts)
      }
      guard let place else {
        let order = places.isEmpty ? "" : " after those before it"
        throw ReelError(
          .usage, "a recording of another feed: this one has no item \(recorded.name)\(order)", at: path)
      }
      places.append(place)
      next = place + 1
    }
    return places
  }

  /// True if the clock of a playback has run apart from that of the server, as far as the recording was read.
  package func clockRunsApart(of playback: String) -> Bool { clocks[playback]?.isApart ?? false }

  /// Returns the next line, or nil at the end. Lines of kinds that this program does not know are skipped.
  ///
  /// A last line that was cut off ends the recording, with a note.
  ///
  /// - Parameter isWithoutRequests: True to return reports only, which takes much less time.
  /// - Throws: `ReelError` of kind `badManifest` with the number of a line that can't be read.
  package func next(isWithoutRequests: Bool = false) throws(ReelError) -> RecordedLine? {
    while let (line, isWhole) = try Self.nextLine(of: file, &buffer, at: path) {
      lineNumber += 1
      guard isWhole else {
        notes.append("\(path): line \(lineNumber) was cut off, so the recording ends before it")
        return nil
      }
      do {
        switch try decoder.decode(Kind.self, from: Data(line)).kind {
        case "request":
          if isWithoutRequests { continue }
          return .request(try decoder.decode(RecordedRequest.self, from: Data(line)))
        case "start", "swipe", "end":
          return try placed(try decoder.decode(PlayerReport.self, from: Data(line)))
        default: continue
        }
      } catch {
        throw ReelError(
          .badManifest, "not a line of a recording: \(RecordedLine.reason(of: error))", at: path,
          place: .line(lineNumber))
      }
    }
    return nil
  }

  // MARK: - Private

  private struct Kind: Decodable { let kind: String? }

  private func placed(_ report: PlayerReport) throws(ReelError) -> RecordedLine {
    try report.check()
    guard let offset = report.clockOffsetMs else { return .report(report, swipeMs: nil) }
    var clock = clocks[report.playback] ?? ReportedClock()
    if let difference = clock.add(offset) {
      notes.append(
        "\(path): the clock of playback \(report.playback) runs apart from the server's, by \(Int(difference)) ms at line "
          + "\(lineNumber): its waits are right, but not their times among the requests")
    }
    clocks[report.playback] = clock
    return .report(report, swipeMs: report.swipeMs.map { $0 + clock.offsetMs })
  }

  /// Returns the next line, and whether it has its end; nil at the end of the file.
  private static func nextLine(
    of file: FileHandle, _ buffer: inout ArraySlice<UInt8>, at path: String
  ) throws(ReelError) -> (bytes: ArraySlice<UInt8>, isWhole: Bool)? {
    var searched = 0
    while true {
      if let end = buffer.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer = buffer[(end + 1)...] }
        return (buffer[..<end], true)
      }
      searched = buffer.count
      guard searched <= lineLimit else {
        throw ReelError(.badManifest, "a line is longer than \(lineLimit) bytes", at: path)
      }
      let piece: Data?
      do { piece = try file.read(upToCount: pieceByteCount) } catch {
        throw ReelError(.noSuchFile, "can't be read", at: path)
      }
      guard let piece, !piece.isEmpty else {
        defer { buffer = [] }
        return buffer.isEmpty ? nil : (buffer, false)
      }
      // A new array, so that what was read before is freed.
      buffer = (Array(buffer) + piece)[...]
    }
  }
}

/// The clock of a player in relation to that of the server, from the offsets of its reports. Each of these is too large by
/// the time that its report took, so the least of several is the best.
struct ReportedClock {
  private static let memory = 5
  /// Less can be the time that reports take.
  private static let toleranceMs = 250.0

  private var recent: [Double] = []
  private var earliest: Double?
  private(set) var isApart = false

  /// The offset to use for the latest report.
  var offsetMs: Double { recent.min() ?? 0 }

  /// Adds the offset of a report. Returns by how much the clocks have run apart, once, when that is known.
  mutating func add(_ offset: Double) -> Double? {
    recent.append(offset)
    if recent.count > Self.memory { recent.removeFirst() }
    guard recent.count == Self.memory else { return nil }
    guard let earliest else {
      earliest = offsetMs
      return nil
    }
    guard !isApart, abs(offsetMs - earliest) > Self.toleranceMs else { return nil }
    isApart = true
    return abs(offsetMs - earliest)
  }
}
