import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import ReelCore

/// One response of an `Origin`, planned completely before its first byte is sent.
struct Answer {
  /// The action after the last byte.
  enum Ending {
    case keepAlive
    case close
    case reset
    /// Keep the connection open and silent until the client closes it.
    case stall
  }

  /// The damaged bytes of the resource.
  enum Corruption {
    case range(Range<Int64>)
    case share(Double)
  }

  var status: HTTPResponseStatus
  var headers = HTTPHeaders()
  var resource: Resource?
  /// The position in the resource of the body's first byte.
  var offset: Int64 = 0
  /// The number of bytes of the body.
  var byteCount: Int64 = 0
  var ending = Ending.keepAlive
  var corruption: Corruption?
  /// The delay before the head, in addition to the link's.
  var delay = Duration.zero
  /// True if not even a head is sent.
  var isSilent = false

  init(status: HTTPResponseStatus) {
    self.status = status
  }

  /// The head as sent.
  var headBytes: [UInt8] {
    var text = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  /// Appends `count` bytes of the body from `position`, with the planned damage.
  func body(_ count: Int, at position: Int64, into buffer: inout ByteBuffer) {
    guard let resource else { return }
    let (start, heldCount) = (offset + position, buffer.readableBytes)
    resource.read(count, at: start, into: &buffer)
    guard let corruption else { return }
    buffer.withUnsafeMutableReadableBytes { readable in
      let bytes = UnsafeMutableRawBufferPointer(rebasing: readable.dropFirst(heldCount))
      switch corruption {
      case .range(let damaged):
        let part = damaged.clamped(to: start..<start + Int64(bytes.count))
        for index in part { bytes[Int(index - start)] ^= 0x55 }
      case .share(let share):
        let limit = UInt64(share * Double(UInt32.max))
        for index in bytes.indices where Self.scatter(UInt64(start) + UInt64(index)) < limit {
          bytes[index] ^= 0x55
        }
      }
    }
  }

  /// Returns a 32-bit number that looks random but depends only on `value` (the finaliser of SplitMix64).
  private static func scatter(_ value: UInt64) -> UInt64 {
    var mixed = value &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return (mixed ^ (mixed >> 31)) >> 32
  }
}

/// Plans the response to a request: finds the resource, applies the range, and adds the fault.
struct AnswerPlanner {
  var supportsRanges: Bool
  var methods: String
  /// Finds the resource at a decoded path.
  var resource: (_ path: String) -> Resource?

  /// - Parameters:
  ///   - path: The decoded path of the request; nil if it can't be decoded.
  ///   - posted: The response to a POST request; nil if there is none.
  func answer(to head: HTTPRequestHead, path: String?, fault: Fault?, posted: Origin.Response?) -> Answer {
    var answer =
      posted.map { whole(Resource($0, at: path ?? "")) }
      ?? sound(head, path: path, fault: fault)
    if let fault { apply(fault, to: &answer, head: head) }
    if !head.isKeepAlive, answer.ending == .keepAlive { answer.ending = .close }
    if answer.ending == .close { answer.headers.replaceOrAdd(name: "Connection", value: "close") }
    if case .close = fault { answer.headers.remove(name: "Connection") }
    if head.method == .HEAD {
      answer.byteCount = 0
    }
    return answer
  }

  // MARK: - Private

  private func sound(_ head: HTTPRequestHead, path: String?, fault: Fault?) -> Answer {
    guard [.GET, .HEAD, .OPTIONS].contains(head.method) else {
      return text(.methodNotAllowed, extra: [("Allow", methods)])
    }
    if head.method == .OPTIONS {
      var answer = text(.noContent)
      answer.headers.add(name: "Access-Control-Allow-Methods", value: methods)
      answer.headers.add(name: "Access-Control-Allow-Headers", value: "*")
      return answer
    }
    guard let path else { return text(.badRequest) }
    guard var resource = resource(path) else { return text(.notFound) }
    guard resource.status == 200 else { return whole(resource) }
    let storesGzip = fault == .gzip
    if storesGzip {
      let stored = StoredGzip.encode(resource.readAll())
      resource = Resource(bytes: stored, contentType: resource.contentType)
    }

    var answer = Answer(status: .ok)
    answer.headers = Self.common
    answer.headers.add(name: "Content-Type", value: resource.contentType)
    answer.headers.add(name: "ETag", value: resource.entityTag)
    if let time = resource.modificationTime {
      answer.headers.add(name: "Last-Modified", value: time.httpDate)
    }
    answer.headers.replace(resource.headers)
    if case .fields(let fields) = fault { answer.headers.replace(fields) }
    guard !answer.headers.describeVersion(heldBy: head.headers) else {
      answer.status = .notModified
      answer.headers.remove(name: "Content-Type")
      return answer
    }
    answer.resource = resource
    answer.byteCount = resource.byteCount
    if storesGzip { answer.headers.add(name: "Content-Encoding", value: "gzip") }
    if supportsRanges, fault != .ignoreRange, !storesGzip {
      answer.headers.add(name: "Accept-Ranges", value: "bytes")
      let field = answer.headers.allowRange(of: head.headers) ? head.headers.first(name: "Range") : nil
      if let range = RangeField(field) {
        guard let part = range.bytes(of: resource.byteCount) else {
          return text(.rangeNotSatisfiable, extra: [("Content-Range", "bytes */\(resource.byteCount)")])
        }
        answer.status = .partialContent
        answer.offset = part.lowerBound
        answer.byteCount = Int64(part.count)
        answer.headers.add(
          name: "Content-Range",
          value: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(resource.byteCount)")
      }
    }
    answer.headers.add(name: "Content-Length", value: "\(answer.byteCount)")
    return answer
  }

  /// Returns the whole resource with its status.
  private func whole(_ resource: Resource) -> Answer {
    var answer = Answer(status: HTTPResponseStatus(statusCode: resource.status))
    answer.headers = Self.common
    for field in resource.headers { answer.headers.add(name: field.name.rawName, value: field.value) }
    guard answer.status.mayHaveResponseBody else { return answer }
    answer.resource = resource
    answer.byteCount = resource.byteCount
    answer.headers.add(name: "Content-Type", value: resource.contentType)
    answer.headers.add(name: "Content-Length", value: "\(resource.byteCount)")
    return answer
  }

  private func apply(_ fault: Fault, to answer: inout Answer, head: HTTPRequestHead) {
    func cut(after count: Int64, _ ending: Answer.Ending) {
      answer.byteCount = min(count, answer.byteCount)
      answer.ending = ending
    }
    switch fault {
    case .status(let code, let headers):
      answer = text(HTTPResponseStatus(statusCode: code), extra: headers.map { ($0.name.rawName, $0.value) })
    case .delay(let time): answer.delay = time
    case .silence: answer.isSilent = true
    case .stall(let count): cut(after: count, .stall)
    case .close(let count): cut(after: count, .close)
    case .reset(let count): cut(after: count, .reset)
    case .truncate(let count): truncate(to: count, &answer)
    case .contentLength(let error):
      let stated = max(0, answer.byteCount + error)
      answer.headers.replaceOrAdd(name: "Content-Length", value: "\(stated)")
      if stated > answer.byteCount { answer.ending = .close }
    case .redirect(let target): answer = text(.found, extra: [("Location", target)])
    case .redirectLoop: answer = text(.found, extra: [("Location", head.uri)])
    case .redirectChain(let count):
      let field = "hop="
      let (path, query) = Self.split(head.uri)
      let hop = query.hasPrefix(field) ? Int(query.dropFirst(field.count)) ?? 0 : 0
      if hop < count { answer = text(.found, extra: [("Location", "\(path)?\(field)\(hop + 1)")]) }
    case .corrupt(let offset, let length):
      let (end, overflow) = offset.addingReportingOverflow(length)
      answer.corruption = .range(offset..<(overflow ? .max : end))
    case .corruptShare(let share): answer.corruption = .share(share)
    case .fields, .ignoreRange, .gzip: break
    }
  }

  /// Shortens the resource to `count` bytes.
  private func truncate(to count: Int64, _ answer: inout Answer) {
    guard answer.status == .ok || answer.status == .partialContent else { return }
    guard answer.offset < count || answer.offset == 0 else {
      answer = text(.rangeNotSatisfiable, extra: [("Content-Range", "bytes */\(count)")])
      return
    }
    answer.byteCount = min(answer.byteCount, count - answer.offset)
    answer.headers.replaceOrAdd(name: "Content-Length", value: "\(answer.byteCount)")
    guard answer.status == .partialContent else { return }
    answer.headers.replaceOrAdd(
      name: "Content-Range",
      value: "bytes \(answer.offset)-\(answer.offset + answer.byteCount - 1)/\(count)")
  }

  private func text(_ status: HTTPResponseStatus, extra: [(String, String)] = []) -> Answer {
    var answer = Answer(status: status)
    answer.headers = Self.common
    for (name, value) in extra { answer.headers.add(name: name, value: value) }
    guard status.mayHaveResponseBody else { return answer }
    let bytes = Array("\(status.code) \(status.reasonPhrase)\n".utf8)
    answer.resource = Resource(bytes: bytes, contentType: "text/plain; charset=utf-8")
    answer.byteCount = Int64(bytes.count)
    answer.headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
    answer.headers.add(name: "Content-Length", value: "\(bytes.count)")
    return answer
  }

  private static let common: HTTPHeaders = [
    "Server": "reel",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Length, Content-Range, ETag",
  ]

  /// Returns the path and the query of a request's target.
  static func split(_ uri: String) -> (path: Substring, query: Substring) {
    let target = uri.prefix { $0 != "#" }
    guard let mark = target.firstIndex(of: "?") else { return (target, "") }
    return (target[..<mark], target[target.index(after: mark)...])
  }
}

/// The fields of a resource, and conditional requests for it (RFC 9110 §13).
extension HTTPHeaders {
  /// Replaces the fields of the same names. A field without a value only removes them.
  fileprivate mutating func replace(_ fields: HTTPFields) {
    for field in fields { remove(name: field.name.rawName) }
    for field in fields where !field.value.isEmpty { add(name: field.name.rawName, value: field.value) }
  }

  /// Returns true if a GET or HEAD request says that the client has the version with these fields.
  fileprivate func describeVersion(heldBy request: HTTPHeaders) -> Bool {
    let held = request[canonicalForm: "If-None-Match"]
    guard held.isEmpty else {
      func opaque(_ tag: Substring) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
      let tag = first(name: "ETag").map { opaque($0[...]) }
      return held.contains { $0 == "*" || opaque($0) == tag }
    }
    guard let known = request.first(name: "If-Modified-Since").flatMap({ WallTime(httpDate: $0) }),
      let modified = first(name: "Last-Modified").flatMap({ WallTime(httpDate: $0) })
    else { return false }
    return modified <= known
  }

  /// Returns false if `If-Range` names another version. A weak entity tag names none.
  fileprivate func allowRange(of request: HTTPHeaders) -> Bool {
    guard let version = request.first(name: "If-Range") else { return true }
    return !version.hasPrefix("W/") && [first(name: "ETag"), first(name: "Last-Modified")].contains(version)
  }
}

/// The media types of an `Origin`, by file extension.
enum MediaType {
  static func type(forPath path: String) -> String {
    let name = path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
    guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
    return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
  }

  private static let types: [String: String] = [
    "m3u8": "application/vnd.apple.mpegurl",
    "m3u": "audio/mpegurl",
    "mpd": "application/dash+xml",
    "ts": "video/mp2t",
    "m4s": "video/iso.segment",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "cmfv": "video/mp4",
    "m4a": "audio/mp4",
    "cmfa": "audio/mp4",
    "mov": "video/quicktime",
    "mkv": "video/x-matroska",
    "webm": "video/webm",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "ac3": "audio/ac3",
    "ec3": "audio/eac3",
    "wav": "audio/wav",
    "vtt": "text/vtt; charset=utf-8",
    "webvtt": "text/vtt; charset=utf-8",
    "srt": "application/x-subrip",
    "ttml": "application/ttml+xml",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "htm": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "json": "application/json",
    "xml": "application/xml",
    "txt": "text/plain; charset=utf-8",
    "key": "application/octet-stream",
  ]
}

/// Gzip (RFC 1952) without compression: the bytes are in stored blocks of deflate (RFC 1951 §3.2.4).
enum StoredGzip {
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    // The magic number, deflate, no flags, no time, no extra flags, an unknown file system.
    var result: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
    result.reserveCapacity(bytes.count + bytes.count / 65_535 * 5 + 32)
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      result.append(rest.isEmpty ? 1 : 0)
      let length = UInt16(block.count)
      result.append(littleEndian: length)
      result.append(littleEndian: ~length)
      result.append(contentsOf: block)
    } while !rest.isEmpty
    result.append(littleEndian: checksum(bytes))
    result.append(littleEndian: UInt32(truncatingIfNeeded: bytes.count))
    return result
  }

  /// CRC-32 (RFC 1952 §8).
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~0) { crc, byte in table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8) }
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }
}

extension [UInt8] {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}
