package import HTTPTypes
public import ReelCore

/// A fault, the paths that it applies to, and how often it applies.
///
/// The text form, which `parse(_:)` reads, is a list of rules separated by commas. Each rule has the form
///
///     PATTERN=KIND[:ARGUMENT][xCOUNT]
///
/// - `PATTERN` is matched against the path without its leading slash, or, if it contains no slash, against the last
///   component of the path. `*` matches any characters, `?` exactly one. Matching is case-sensitive.
/// - `xCOUNT` limits the fault to the first `COUNT` matching requests; without it the fault is permanent.
/// - `KIND`, with its argument, is one of those that `reel serve --help` lists, such as `delay:500ms` or `silence`.
///
/// For example: `seg*.ts=status:503x2,*.m4s=stall:20000`. The first rule that matches a request and is not used up
/// applies.
public struct FaultRule: Sendable, Hashable {
  /// The pattern of paths, in the syntax above.
  package var pattern: String
  package var fault: Fault
  /// The number of requests to apply the fault to; nil for all.
  package var count: Int?

  /// The kinds of faults in the text form, each with its argument and its meaning, in the order of the help text.
  package static let forms: [(form: String, meaning: String)] = [
    (
      "status:503",
      "respond with this status; header fields follow after semicolons, as in status:429;Retry-After: 2"
    ),
    ("delay:500ms", "delay the response"),
    ("silence", "do not respond"),
    ("stall:20000", "send nothing more after this many bytes of the body"),
    ("close:20000", "close the connection after this many bytes"),
    ("reset:20000", "reset the connection after this many bytes"),
    ("truncate:20000", "end the resource after this many bytes"),
    ("length:+100", "state a Content-Length that is off by this much; also length:-100"),
    ("redirect:/other", "redirect to a path or URL"),
    ("redirects:3", "redirect this many times, then send the resource"),
    ("loop", "redirect to the same path"),
    ("corrupt:1000+50", "corrupt 50 bytes from byte 1000 on; corrupt:0.1% corrupts a share of all bytes"),
    (
      "fields:Age: 60",
      "send these header fields, separated by semicolons, instead of others of these names; one without a value only removes them"
    ),
    ("norange", "ignore ranges"),
    ("gzip", "compress the body (Content-Encoding: gzip)"),
  ]

  package init(_ pattern: String, _ fault: Fault, count: Int? = nil) {
    self.pattern = pattern
    self.fault = fault
    self.count = count
  }

  /// Parses a list of rules in the syntax above. Empty rules are ignored.
  ///
  /// - Throws: `ReelError` of kind `usage` for the first malformed rule.
  public static func parse(_ text: String) throws(ReelError) -> [FaultRule] {
    var rules: [FaultRule] = []
    for rule in text.split(separator: ",") {
      let rule = rule.trimmed
      if !rule.isEmpty { rules.append(try FaultRule(parsing: String(rule))) }
    }
    return rules
  }

  /// Returns true if the rule applies to a path, which begins with a slash.
  func matches(path: String) -> Bool {
    let target =
      pattern.contains("/")
      ? path.drop { $0 == "/" }
      : path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
    return Glob.matches(pattern.drop { $0 == "/" }, target)
  }

  // MARK: - Private

  private init(parsing text: String) throws(ReelError) {
    func malformed(_ reason: String) -> ReelError {
      ReelError(.usage, "the fault \"\(text)\": \(reason)", advice: "write it as seg*.ts=status:503x2")
    }
    guard let equals = text.firstIndex(of: "=") else { throw malformed("no = between pattern and kind") }
    let pattern = text[..<equals].trimmed
    guard !pattern.isEmpty else { throw malformed("no pattern") }
    var rest = text[text.index(after: equals)...].trimmed
    var count: Int?
    if let cross = rest.lastIndex(of: "x"), let number = Int(rest[rest.index(after: cross)...]), number > 0 {
      count = number
      rest = rest[..<cross].trimmed
    }
    let kind = rest.prefix { $0 != ":" }
    let argument = rest.dropFirst(kind.count + 1).trimmed
    guard let fault = Self.fault(kind.trimmed, argument) else {
      throw malformed("\"\(rest)\" is not a kind of fault with its argument")
    }
    self.init(String(pattern), fault, count: count)
  }

  private static func fault(_ kind: Substring, _ argument: Substring) -> Fault? {
    switch kind {
    case "status": return status(argument)
    case "delay": return Duration(parsing: argument).map { .delay($0) }
    case "stall": return byteCount(argument).map { .stall(after: $0) }
    case "close": return byteCount(argument).map { .close(after: $0) }
    case "reset": return byteCount(argument).map { .reset(after: $0) }
    case "truncate": return byteCount(argument).map { .truncate(to: $0) }
    case "length": return Int64(argument).flatMap { $0 == 0 ? nil : .contentLength(by: $0) }
    case "redirect": return argument.isEmpty ? nil : .redirect(to: String(argument))
    case "redirects": return Int(argument).flatMap { $0 > 0 ? .redirectChain($0) : nil }
    case "corrupt": return corruption(argument)
    case "fields":
      return headerFields(argument.split(separator: ";")).flatMap { $0.isEmpty ? nil : .fields($0) }
    case "silence" where argument.isEmpty: return .silence
    case "loop" where argument.isEmpty: return .redirectLoop
    case "norange" where argument.isEmpty: return .ignoreRange
    case "gzip" where argument.isEmpty: return .gzip
    default: return nil
    }
  }

  private static func status(_ argument: Substring) -> Fault? {
    let parts = argument.split(separator: ";")
    guard let code = parts.first.flatMap({ Int($0.trimmed) }), (200...599).contains(code) else { return nil }
    return headerFields(parts.dropFirst()).map { .status(code, headers: $0) }
  }

  private static func headerFields(_ parts: some Sequence<Substring>) -> HTTPFields? {
    var headers: HTTPFields = [:]
    for part in parts {
      guard let colon = part.firstIndex(of: ":") else { return nil }
      guard let name = HTTPField.Name(String(part[..<colon].trimmed)) else { return nil }
      headers.append(HTTPField(name: name, value: String(part[part.index(after: colon)...].trimmed)))
    }
    return headers
  }

  private static func corruption(_ argument: Substring) -> Fault? {
    if argument.last == "%" {
      guard let share = Double(argument.dropLast()), share > 0, share <= 100 else { return nil }
      return .corruptShare(share / 100)
    }
    let parts = argument.split(separator: "+", omittingEmptySubsequences: false)
    guard parts.count == 2, let offset = byteCount(parts[0]), let length = byteCount(parts[1]) else {
      return nil
    }
    return .corrupt(offset: offset, length: length)
  }

  private static func byteCount(_ text: Substring) -> Int64? {
    Int64(text).flatMap { $0 >= 0 ? $0 : nil }
  }
}

extension Substring {
  /// The text without leading and trailing spaces.
  var trimmed: Substring {
    var text = self
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
  }
}

extension Duration {
  /// Parses a duration with a unit, such as `500ms` or `1.5 s`, up to an hour. Returns nil for any other text.
  init?(parsing text: Substring) {
    guard let seconds = TimeText.seconds(text, needsUnit: true), (0...3600).contains(seconds) else {
      return nil
    }
    self = .microseconds(Int64((seconds * 1e6).rounded()))
  }
}

/// A deliberate error of an `Origin` in answering a request.
///
/// Byte counts refer to the body of the answer, except for `truncate`, `corrupt` and `corruptShare`, which refer to the
/// resource.
package enum Fault: Sendable, Hashable {
  /// Answers with this status and header fields, and a line of text instead of the resource.
  case status(Int, headers: HTTPFields = [:])
  /// Waits before sending the head, in addition to the time on the link.
  case delay(Duration)
  /// Never answers. The connection stays open.
  case silence
  /// Stops sending after this number of bytes. The connection stays open.
  case stall(after: Int64)
  /// Closes the connection after this number of bytes, although the head states the full length.
  case close(after: Int64)
  /// Like `close`, but resets the connection (RST). The client may lose bytes that it has not read yet.
  case reset(after: Int64)
  /// Shortens the resource to this number of bytes. The head states the new size.
  case truncate(to: Int64)
  /// States a `Content-Length` that is wrong by this number of bytes. If it is too large, the connection is closed
  /// after the body. If it is too small, the whole body is sent nevertheless.
  case contentLength(by: Int64)
  /// Redirects (302) to a URL or a path.
  case redirect(to: String)
  /// Redirects (302) to the same path and query, without end.
  case redirectLoop
  /// Redirects (302) this number of times, each time to another query, before serving the resource.
  case redirectChain(Int)
  /// Inverts bits in `length` bytes of the resource from `offset`.
  case corrupt(offset: Int64, length: Int64)
  /// Inverts bits in a share of the bytes of the resource, from 0 to 1. The choice of bytes is deterministic.
  case corruptShare(Double)
  /// Sends these header fields with the resource, in place of its own of the same names. A field without a value only
  /// removes them. Conditional requests apply to the `ETag` and `Last-Modified` that are sent.
  case fields(HTTPFields)
  /// Ignores ranges and sends the whole resource.
  case ignoreRange
  /// Sends the body with `Content-Encoding: gzip`, even if the client does not accept it. The data is stored without
  /// compression and does not get smaller.
  case gzip
}

/// Patterns with `*` for any characters, including slashes, and `?` for one.
enum Glob {
  /// Takes time at most proportional to the product of the lengths.
  static func matches(_ pattern: some StringProtocol, _ text: some StringProtocol) -> Bool {
    let pattern = Array(pattern)
    let text = Array(text)
    var (p, t) = (0, 0)
    /// The position of the last star, and how much of the text it has matched so far.
    var retry: (p: Int, t: Int)?
    while t < text.count {
      if p < pattern.count, pattern[p] == "*" {
        retry = (p, t)
        p += 1
      } else if p < pattern.count, pattern[p] == "?" || pattern[p] == text[t] {
        p += 1
        t += 1
      } else if let last = retry {
        retry = (last.p, last.t + 1)
        p = last.p + 1
        t = last.t + 1
      } else {
        return false
      }
    }
    return pattern[p...].allSatisfy { $0 == "*" }
  }
}
