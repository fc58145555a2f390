internal import Foundation
package import ReelCore
internal import ReelModels
internal import ReelFiles
internal import ReelPool
internal import ReelSources
internal import ReelSimulation

/// The results file of a lab: JSON Lines, a header and then a line for each run that has ended.
///
/// A line is written as soon as its run has ended, so finished runs survive the process. The next start
/// continues from there: an incomplete line is dropped, and failed runs are repeated. When all runs are done,
/// `finish()` puts the lines in the order of the runs; the same lab then gives the same bytes, however often
/// it was interrupted.
///
/// Two stores of the same file exclude each other (`flock`). Confined to one thread at a time.
package final class LabStore {
  /// The first line.
  package struct Header: Sendable, Hashable, Codable {
    /// The version of the format, which the names of the figures belong to.
    package var lab = 3
    /// The version of Reel.
    package var reel: String
    /// `LabInputs.fingerprint`.
    package var fingerprint: String
    package var runs: Int

    package init(reel: String, fingerprint: String, runs: Int) {
      self.reel = reel
      self.fingerprint = fingerprint
      self.runs = runs
    }
  }

  private let file: LockedFile
  private let header: Header
  /// The position of each run's line; the last one's if there are several.
  private var lines: [Line?]

  private struct Line {
    var range: Range<Int64>
    var hasFailed: Bool
  }

  /// Opens the file, or creates it.
  ///
  /// - Parameters:
  ///   - path: The file; nil for a private one.
  ///   - restarts: True to drop existing results of a lab in the file.
  /// - Throws: `ReelError` of kind `cannotCreateOutput` if the file is in use, has the results of another
  ///   lab, or is not a results file; or if it can't be opened, read or written.
  package init(path: String?, header: Header, restarts: Bool = false) throws(ReelError) {
    self.header = header
    lines = Array(repeating: nil, count: header.runs)
    file = try LockedFile(
      path: path,
      inUse: (
        "another reel lab is using it", "wait until it ends, or name another file with --results"
      ))
    if try readHeader(restarts: restarts) {
      try readLines()
    } else {
      try file.truncate(to: 0)
      try file.append(Array(try JSONLine.string(header).utf8) + [0x0a])
      headerEnd = file.byteCount
    }
  }

  /// The number of runs that have ended, including failed ones.
  package var endedCount: Int { lines.count { $0 != nil } }

  /// The number of runs that have failed.
  package var failedCount: Int { lines.count { $0?.hasFailed ?? false } }

  /// Returns true if the run at `index` has ended without an error.
  package func isDone(_ index: Int) -> Bool { lines[index].map { !$0.hasFailed } ?? false }

  /// Writes the result of the run at `index`.
  ///
  /// - Throws: `ReelError.cannotWriteOutput`. The file is then unchanged.
  package func append(_ result: LabResult, at index: Int) throws(ReelError) {
    // The number comes first, where it can be read without decoding the rest.
    let text = try JSONLine.string(result).dropFirst()
    let start = file.byteCount
    let head = "{\"number\":\(index)," + (result.error == nil ? "" : "\"failed\":true,")
    try file.append(Array("\(head)\(text)\n".utf8))
    lines[index] = Line(range: start..<file.byteCount, hasFailed: result.error != nil)
  }

  /// Returns the results so far, in the order of the runs.
  ///
  /// - Parameter runs: The lab's runs. The results share their strings.
  package func results(_ runs: LabRuns) throws(ReelError) -> [LabResult] {
    var results: [LabResult] = []
    results.reserveCapacity(endedCount)
    let decoder = JSONDecoder()
    for (index, line) in lines.enumerated() {
      guard let line else { continue }
      let bytes = try file.read(line.range)
      guard var result = try? decoder.decode(LabResult.self, from: Data(bytes)) else {
        throw damaged("the result of run \(index) can't be read")
      }
      result.run = runs[index]
      results.append(result)
    }
    return results
  }

  /// Puts the lines in the order of the runs. The file is replaced atomically.
  ///
  /// - Throws: `ReelError` if the new file can't be created or written. The old one then remains.
  package func finish() throws(ReelError) {
    guard file.path != nil, !isOrdered else { return }
    try file.replace(with: [0..<headerEnd] + lines.compactMap { $0?.range })
    var start = headerEnd
    for index in lines.indices {
      guard let line = lines[index] else { continue }
      let end = start + Int64(line.range.count)
      lines[index]?.range = start..<end
      start = end
    }
  }

  // MARK: - Private

  private var headerEnd: Int64 = 0

  /// True if the file is as `finish()` would leave it.
  private var isOrdered: Bool {
    var end = headerEnd
    for line in lines {
      guard let line else { continue }
      guard line.range.lowerBound == end else { return false }
      end = line.range.upperBound
    }
    return end == file.byteCount
  }

  /// Returns false if the file has to be written from its beginning.
  private func readHeader(restarts: Bool) throws(ReelError) -> Bool {
    guard file.byteCount > 0 else { return false }
    let first = try file.read(0..<min(file.byteCount, Int64(Self.lineLimit)))
    let prefix = Array("{\"fingerprint\":".utf8)
    guard first.starts(with: prefix.prefix(first.count)) else { throw foreign }
    guard let end = first.firstIndex(of: 0x0a) else {
      guard first.count < Self.lineLimit else { throw foreign }
      // Not even the header was written.
      return false
    }
    guard let found = try? JSONDecoder().decode(Header.self, from: Data(first[..<end])) else { throw foreign }
    guard !restarts else { return false }
    guard found.lab == header.lab else { throw other("the results are from another version of reel lab") }
    guard found.reel == header.reel else {
      throw other("the results are from reel \(found.reel), and this is reel \(header.reel)")
    }
    guard found == header else { throw other("the results are from another configuration") }
    headerEnd = Int64(end) + 1
    return true
  }

  private func readLines() throws(ReelError) {
    var number = 1
    let end = try file.forEachLine(from: headerEnd, limit: Self.lineLimit) { bytes, range throws(ReelError) in
      number += 1
      guard let line = Self.line(bytes), lines.indices.contains(line.index) else {
        throw damaged("line \(number) is not a result")
      }
      lines[line.index] = Line(range: range, hasFailed: line.hasFailed)
    }
    guard let end else { throw damaged("line \(number + 1) is not a result") }
    // An interrupted run may have left an incomplete line.
    if end < file.byteCount { try file.truncate(to: end) }
  }

  /// Returns the number of a line's run, and whether it failed; nil for lines that `append` does not write.
  private static func line(_ bytes: ArraySlice<UInt8>) -> (index: Int, hasFailed: Bool)? {
    let prefix = Array("{\"number\":".utf8)
    guard bytes.starts(with: prefix), bytes.last == UInt8(ascii: "}") else { return nil }
    let rest = bytes.dropFirst(prefix.count)
    let digits = rest.prefix { (0x30...0x39).contains($0) }
    guard let index = Int(String(decoding: digits, as: UTF8.self)) else { return nil }
    return (index, rest.dropFirst(digits.count).starts(with: Array(",\"failed\":true,".utf8)))
  }

  /// The maximum length of a line, in bytes.
  private static let lineLimit = 1 << 20

  private var foreign: ReelError {
    ReelError(
      .cannotCreateOutput, "the file exists and holds no lab results", at: file.path,
      advice: "remove it, or name another file with --results")
  }

  private func other(_ reason: String) -> ReelError {
    ReelError(
      .cannotCreateOutput, reason, at: file.path,
      advice: "use --restart to discard them, or --results to name another file")
  }

  private func damaged(_ reason: String) -> ReelError {
    ReelError(.badManifest, reason, at: file.path, advice: "use --restart to start over")
  }
}

extension LabInputs {
  /// A hash of everything that determines the results: the same on every machine, and for the same files in
  /// another folder.
  ///
  /// It covers the contents of feed files, recordings and traces, and the sizes of the local files in the
  /// feeds, but not the contents of media.
  package var fingerprint: String {
    var hash = FNV1a()
    hash.combine("lab 1")
    for feed in feeds {
      hash.combine("feed \(feed.name) \(feed.feed.name) \(feed.contentHash)")
      for item in feed.feed.items {
        if case .url(let url) = item.source, url.isFileURL {
          hash.combine("item \(Self.byteCount(url.path) ?? -1)")
        }
      }
    }
    for link in links { hash.combine("link \(link.name) \(link.group) \(Self.text(link.spec))") }
    for dwell in dwells {
      hash.combine("dwell \(dwell.name) \(dwell.spec.shares)")
      if case .trace(let trace) = dwell.spec.dwell {
        for entry in trace.entries { hash.combine("\(entry.dwell) \(entry.move)") }
      } else {
        hash.combine("\(dwell.spec.dwell)")
      }
    }
    for device in devices { hash.combine("device \(device.name)") }
    hash.combine("pools \(configuration.slotCounts)")
    hash.combine("policies \(configuration.policies.map(\.description))")
    if let player = configuration.player { hash.combine("player \((try? player.json()) ?? player.name)") }
    hash.combine("seeds \(configuration.seeds)")
    hash.combine("settle \(configuration.settle)")
    hash.combine("swipes \(configuration.swipeCount ?? -1)")
    hash.combine("rungs \(configuration.bandwidth ?? -1) \(configuration.maximumHeight ?? -1)")
    hash.combine("first rung \(configuration.firstRung.rawValue)")
    if let visits = configuration.visits { hash.combine("visits \(visits)") }
    let digits = String(hash.value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  // MARK: - Private

  private static func text(_ link: LinkSpec) -> String {
    let recording = link.recording.map { "\($0.fingerprint)" } ?? "-"
    let start = link.drawsStart ? "drawn" : "\(link.start)"
    return "\(link.bitsPerSecond) \(recording) \(link.roundTripTime) \(start) \(link.jitter) "
      + "\(link.features.optionNames)"
  }

  private static func byteCount(_ path: String) -> Int64? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: path)
    return (attributes?[.size] as? NSNumber)?.int64Value
  }
}
