import Foundation
import ReelCore

/// A line of a results file, as far as a later run or a report needs it.
struct ResultLine: Sendable, Equatable {
  enum Status: String, Sendable {
    case written
    case failed
  }

  /// The source as its list has it; nil for a line of the list that held none.
  let url: String?
  let status: Status
  /// Of a failure: whether it may succeed on a retry.
  let isTemporary: Bool

  /// Nil for what is no complete result line.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard let members = Self.members(of: bytes) else { return nil }
    self.init(members)
  }

  /// The members of a line's object. A byte order mark before it is ignored.
  static func members(of bytes: ArraySlice<UInt8>) -> [RawJSON.Member]? {
    RawJSON.members(of: bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes)
  }

  private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

  /// True for white space.
  static func isBlank(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.allSatisfy { $0 == 0x20 || $0 == 0x0d || $0 == 0x09 }
  }

  /// Whether a cut line may be one that was being written: some file systems leave zeros after a loss of power.
  static func canBegin(with bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 == 0 } || isBlank(bytes[...])
      || beginnings.contains { $0.starts(with: bytes) || bytes.starts(with: $0) }
  }

  private static let beginnings = [Array(#"{"url":"#.utf8), Array(#"{"status":"#.utf8)]
  /// The bytes by which `canBegin(with:)` tells.
  static let longestBeginning = 10

  init?(_ members: [RawJSON.Member]) {
    var (url, status, isTemporary): (String?, Status?, Bool) = (nil, nil, false)
    for member in members {
      switch member.key {
      case "url": url = RawJSON.string(member.value)
      case "status": status = RawJSON.string(member.value).flatMap(Status.init)
      case "permanent": isTemporary = member.value.elementsEqual("false".utf8)
      default: break
      }
    }
    guard let status else { return nil }
    self.url = url
    self.status = status
    self.isTemporary = isTemporary
  }

  /// The names of the fields that every line may have. Fields of a list with one of these names go into `input`.
  static let keys: Set<String> = [
    "url", "status", "permanent", "index", "line", "host", "finished_at", "seconds", "attempts", "error",
    "input",
  ]

  /// Writes a line.
  ///
  /// - Parameters:
  ///   - body: The command's own fields, as a JSON object.
  ///   - fields: Copied fields of the list.
  ///   - hiddenFields: Those whose names the line has itself.
  static func text(
    url: String?, index: Int, line: Int, host: String, finishedAt: WallTime, seconds: Double, attempts: Int,
    error: ReelError?, body: String, fields: [SourceListParser.Field],
    hiddenFields: [SourceListParser.Field] = []
  ) -> [UInt8] {
    var json = JSONText()
    json.object { json in
      json.field("url", url)
      json.field("status", (error == nil ? Status.written : .failed).rawValue)
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
      if body.utf8.count > 2 {
        json.comma()
        json.append(body.dropFirst().dropLast())
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
      append(bytes: field.value)
    }
  }
}

extension ReelError {
  /// True if the same source may succeed in a later run.
  var mayPass: Bool { isTemporary || kind == .cancelled }
}
