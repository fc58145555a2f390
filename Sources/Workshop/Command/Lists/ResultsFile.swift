import Foundation
import ReelCore
import ReelFiles
import ReelLab

/// The results of a run as JSON Lines. Each line is written in one piece when its source is done, so a killed
/// process loses at most the line that it was writing. The file is locked while it is open.
final class ResultsFile: Sendable {
  /// The sources of earlier runs that are not tried again.
  struct Finished: Sendable {
    var written: Set<SourceHash> = []
    var failed: Set<SourceHash> = []
  }

  /// The maximum length of a line in bytes; a file with a longer one is not a results file.
  static let lineLimit = 1 << 28

  private let file: Locked<LockedFile>
  private let canResume: Bool

  /// Locks a file, and reads its results.
  ///
  /// An incomplete last line is removed, and so are blank lines and those of sources that failed temporarily,
  /// which are tried again: each source has one line.
  ///
  /// - Parameters:
  ///   - canResume: False for runs that can't be continued.
  ///   - resumes: True to continue an existing file; otherwise one with content is refused.
  ///   - overwrites: True to replace the content of an existing file.
  ///
  /// Throws `ReelError.cannotCreateOutput` if the file can't be opened, belongs to a running process, or has other
  /// content than results; `cannotWriteOutput` if the disk is full.
  static func open(
    path: String, canResume: Bool = true, resumes: Bool, overwrites: Bool
  ) throws(ReelError) -> (file: ResultsFile, finished: Finished) {
    let file = try LockedFile(
      path: path,
      inUse: (
        "another run is writing to the file", "wait for it, or name another file with --results"
      ))
    var finished = Finished()
    if file.byteCount > 0 {
      guard resumes || overwrites else {
        throw ReelError(
          .cannotCreateOutput, "the file has results of an earlier run", at: path,
          advice: (canResume ? "use --resume to continue it, " : "use ")
            + "--overwrite to start over, or --results to name another file")
      }
      do throws(ReelError) {
        if resumes { finished = try readAndRepair(file, path: path) } else { try file.truncate(to: 0) }
      } catch {
        throw advised(error)
      }
    }
    return (ResultsFile(file, canResume: canResume), finished)
  }

  private init(_ file: sending LockedFile, canResume: Bool) {
    self.file = Locked(file, rank: .transfer)
    self.canResume = canResume
  }

  /// Appends a line, which ends with a newline. Throws `ReelError.cannotWriteOutput`.
  func append(_ line: [UInt8]) throws(ReelError) {
    let result = file.withLock { file in
      Result { () throws(ReelError) in try file.append(line) }
    }
    do throws(ReelError) { try result.get() } catch { throw canResume ? Self.advised(error) : error }
  }

  /// Returns the error, with advice if it is an error of writing.
  static func advised(_ error: ReelError) -> ReelError {
    guard error.kind == .cannotWriteOutput else { return error }
    var error = error
    error.advice = error.advice ?? "use --resume to continue the run"
    return error
  }

  // MARK: - Private

  private static func readAndRepair(_ file: LockedFile, path: String) throws(ReelError) -> Finished {
    var finished = Finished()
    var kept: [Range<Int64>] = []
    var removed = 0
    var number = 0
    func foreign() -> ReelError {
      ReelError(
        .cannotCreateOutput, "not a result of reel", at: path, place: .line(number),
        advice: "name another file with --results")
    }
    let end = try file.forEachLine(limit: lineLimit) { line, range throws(ReelError) in
      number += 1
      // Editors leave blank lines and byte order marks.
      if ResultLine.isBlank(line) {
        removed += 1
        return
      }
      guard let result = ResultLine(line) else { throw foreign() }
      // A list line without a source has no URL, so each run reports it again.
      guard let url = result.url, result.status != .failed || !result.isTemporary else {
        removed += 1
        return
      }
      let hash = SourceHash(url)
      _ =
        result.status != .failed && !result.fails
        ? finished.written.insert(hash) : finished.failed.insert(hash)
      if let last = kept.last, last.upperBound == range.lowerBound {
        kept[kept.count - 1] = last.lowerBound..<range.upperBound
      } else {
        kept.append(range)
      }
    }
    guard let end else {
      throw ReelError(
        .cannotCreateOutput, "not a results file: a line is too long", at: path,
        advice: "name another file with --results")
    }
    number += 1
    let rest = try file.read(end..<min(file.byteCount, end + Int64(ResultLine.longestBeginning)))
    guard ResultLine.canBegin(with: rest) else { throw foreign() }
    if removed > 0 {
      try file.replace(with: kept)
    } else if end < file.byteCount {
      try file.truncate(to: end)
    }
    return finished
  }
}

/// The data of a results file's line that a later run or a report needs.
struct ResultLine: Sendable, Equatable {
  enum Status: String, Sendable {
    case written
    /// A checked source, whatever was found.
    case checked
    /// A view of `reel viewers`.
    case watched
    case failed
  }

  /// The source as in its list; nil for a line of the list without one.
  let url: String?
  let status: Status
  /// True for a failure that may succeed on a retry.
  let isTemporary: Bool
  /// True for a checked source that fails.
  let fails: Bool

  /// Nil for a line that is not a complete result.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard let members = Self.members(of: bytes) else { return nil }
    self.init(members)
  }

  /// Returns the members of a line's object. A byte order mark before it is ignored.
  static func members(of bytes: ArraySlice<UInt8>) -> [RawJSON.Member]? {
    RawJSON.members(of: bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes)
  }

  private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

  /// Returns true for white space.
  static func isBlank(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.allSatisfy { $0 == 0x20 || $0 == 0x0d || $0 == 0x09 }
  }

  /// Returns true if an incomplete line may be one that was being written: some file systems leave zeros
  /// after a loss of power.
  static func canBegin(with bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 == 0 } || isBlank(bytes[...])
      || beginnings.contains { $0.starts(with: bytes) || bytes.starts(with: $0) }
  }

  private static let beginnings = [Array(#"{"url":"#.utf8), Array(#"{"status":"#.utf8)]
  /// The number of bytes that `canBegin(with:)` needs.
  static let longestBeginning = 10

  init?(_ members: [RawJSON.Member]) {
    var (url, status, isTemporary, fails): (String?, Status?, Bool, Bool) = (nil, nil, false, false)
    for member in members {
      switch member.key {
      case "url": url = RawJSON.string(member.value)
      case "status": status = RawJSON.string(member.value).flatMap(Status.init)
      case "permanent": isTemporary = member.value.elementsEqual("false".utf8)
      case "fails": fails = member.value.elementsEqual("true".utf8)
      default: break
      }
    }
    guard let status else { return nil }
    self.url = url
    self.status = status
    self.isTemporary = isTemporary
    self.fails = fails
  }

  /// The names of the fields that every line may have. Fields of a list with one of these names go into `input`.
  static let keys: Set<String> = [
    "url", "status", "permanent", "index", "line", "host", "finished_at", "seconds", "attempts", "error",
    "input",
  ]

  /// The fields of any command's results that `reel report` reads. A field of a list with such a name must not be taken for
  /// one.
  static let reportedKeys: Set<String> = [
    "candidates", "chosen", "damaged", "file", "findings", "frames", "good", "missed_segments", "startup",
    "view", "why",
  ]

  /// Writes a line.
  ///
  /// - Parameters:
  ///   - success: The status without an error.
  ///   - body: The command's own fields.
  ///   - fields: Copied fields of the list.
  ///   - hiddenFields: The fields whose names the line uses itself.
  static func text(
    url: String?, index: Int, line: Int, host: String, finishedAt: WallTime, seconds: Double, attempts: Int,
    success: Status = .written, error: ReelError?, body: [RawJSON.Member], fields: [SourceListParser.Field],
    hiddenFields: [SourceListParser.Field] = []
  ) -> [UInt8] {
    var json = JSONText()
    json.object { json in
      json.field("url", url)
      json.field("status", (error == nil ? success : .failed).rawValue)
      if let error { json.field("permanent", !error.mayPass) }
      json.field("index", Int64(index))
      if url == nil { json.field("line", Int64(line)) }
      if !host.isEmpty { json.field("host", host) }
      json.field("finished_at", finishedAt.description)
      json.field("seconds", seconds.rounded(places: 3))
      if attempts > 1 { json.field("attempts", Int64(attempts)) }
      if let error, let text = try? JSONLine.string(ErrorRecord(error, hasStatus: true)) {
        json.key("error")
        json.append(text)
      }
      for member in body {
        json.key(member.key)
        json.append(bytes: member.value)
      }
      json.append(fields)
      if !hiddenFields.isEmpty {
        json.key("input")
        json.object { $0.append(hiddenFields) }
      }
    }
    return json.bytes + [0x0a]
  }
}

extension JSONText {
  fileprivate mutating func append(_ fields: [SourceListParser.Field]) {
    for field in fields {
      comma()
      append(RawJSON.quoted(field.key))
      append(":")
      append(String(decoding: field.value, as: UTF8.self).withoutUserInformation.printableJSON)
    }
  }
}

extension ReelError {
  /// True if the same source may succeed in a later run.
  var mayPass: Bool { isTemporary || kind == .cancelled }
}

/// Finds the members of a JSON object without changing their text, so that they can be copied as they are.
enum RawJSON {
  struct Member {
    let key: String
    /// The value's text, without white space around it.
    let value: ArraySlice<UInt8>
  }

  /// Returns the members of the object in `bytes`; nil if there is none, or if it is incomplete.
  ///
  /// Only the structure is checked: strings, brackets, commas and colons. Values may be malformed otherwise.
  static func members(of bytes: ArraySlice<UInt8>) -> [Member]? {
    var scanner = Scanner(bytes: bytes, index: bytes.startIndex)
    guard scanner.take(UInt8(ascii: "{")) else { return nil }
    var members: [Member] = []
    if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd ? members : nil }
    while true {
      scanner.skipBlanks()
      guard let key = scanner.value(), let name = string(key), scanner.take(UInt8(ascii: ":")) else {
        return nil
      }
      scanner.skipBlanks()
      guard let value = scanner.value() else { return nil }
      members.append(Member(key: name, value: value))
      if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd ? members : nil }
      guard scanner.take(UInt8(ascii: ",")) else { return nil }
    }
  }

  /// Returns the text of a JSON string; nil for another value.
  static func string(_ value: ArraySlice<UInt8>) -> String? {
    guard value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else {
      return nil
    }
    guard value.contains(UInt8(ascii: "\\")) else {
      return String(validating: value.dropFirst().dropLast(), as: UTF8.self)
    }
    return try? JSONDecoder().decode(String.self, from: Data(value))
  }

  /// Returns `text` as a JSON string.
  static func quoted(_ text: String) -> String {
    var json = JSONText()
    json.object { $0.field("", text) }
    // Without `{"":` and `}`.
    return String(decoding: json.bytes.dropFirst(4).dropLast(), as: UTF8.self)
  }

  /// Returns true if `bytes` are valid JSON.
  static func isValid(_ bytes: ArraySlice<UInt8>) -> Bool {
    (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil
  }

  // MARK: - Private

  private struct Scanner {
    let bytes: ArraySlice<UInt8>
    var index: Int

    var isAtEnd: Bool {
      mutating get {
        skipBlanks()
        return index == bytes.endIndex
      }
    }

    mutating func skipBlanks() {
      while index < bytes.endIndex, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[index]) { index += 1 }
    }

    /// Skips white space, and a byte if it is this one.
    mutating func take(_ byte: UInt8) -> Bool {
      skipBlanks()
      guard index < bytes.endIndex, bytes[index] == byte else { return false }
      index += 1
      return true
    }

    /// Skips a value; nil if it is empty or does not end.
    mutating func value() -> ArraySlice<UInt8>? {
      let start = index
      // The closing brackets that are still expected.
      var closing: [UInt8] = []
      while index < bytes.endIndex {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "\""):
          guard skipString() else { return nil }
          if closing.isEmpty, bytes[start] == UInt8(ascii: "\"") { return bytes[start..<index] }
          continue
        case UInt8(ascii: "{"): closing.append(UInt8(ascii: "}"))
        case UInt8(ascii: "["): closing.append(UInt8(ascii: "]"))
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          guard !closing.isEmpty else { return scalar(from: start) }
          guard closing.removeLast() == byte else { return nil }
          if closing.isEmpty {
            index += 1
            return bytes[start..<index]
          }
        case UInt8(ascii: ","), UInt8(ascii: ":"):
          if closing.isEmpty { return scalar(from: start) }
        default: break
        }
        index += 1
      }
      return nil
    }

    private func scalar(from start: Int) -> ArraySlice<UInt8>? {
      var value = bytes[start..<index]
      while let last = value.last, [0x20, 0x09, 0x0a, 0x0d].contains(last) { value.removeLast() }
      return value.isEmpty ? nil : value
    }

    private mutating func skipString() -> Bool {
      index += 1
      while index < bytes.endIndex {
        switch bytes[index] {
        case UInt8(ascii: "\\"): index += 2
        case UInt8(ascii: "\""):
          index += 1
          return true
        default: index += 1
        }
      }
      index = bytes.endIndex
      return false
    }
  }
}
