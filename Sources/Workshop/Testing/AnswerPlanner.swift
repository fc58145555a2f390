import Foundation
import NIOHTTP1
import ReelCore

/// Plans the response to a request: finds the resource, applies the range, and adds the fault.
struct AnswerPlanner {
  var supportsRanges: Bool
  /// Finds the resource at a decoded path.
  var resource: (_ path: String) -> Resource?

  /// - Parameter path: The decoded path of the request; nil if it can't be decoded.
  func answer(to head: HTTPRequestHead, path: String?, fault: Fault?) -> Answer {
    var answer = sound(head, path: path, ignoresRange: fault == .ignoreRange, storesGzip: fault == .gzip)
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

  private func sound(
    _ head: HTTPRequestHead, path: String?, ignoresRange: Bool, storesGzip: Bool
  ) -> Answer {
    guard [.GET, .HEAD, .OPTIONS].contains(head.method) else {
      return text(.methodNotAllowed, extra: [("Allow", "GET, HEAD, OPTIONS")])
    }
    if head.method == .OPTIONS {
      var answer = text(.noContent)
      answer.headers.add(name: "Access-Control-Allow-Methods", value: "GET, HEAD, OPTIONS")
      answer.headers.add(name: "Access-Control-Allow-Headers", value: "*")
      return answer
    }
    guard let path else { return text(.badRequest) }
    guard var resource = resource(path) else { return text(.notFound) }
    guard resource.status == 200 else { return refusal(resource) }
    if storesGzip {
      let stored = StoredGzip.encode(resource.readAll())
      resource = Resource(bytes: stored, contentType: resource.contentType)
    }

    var answer = Answer(status: .ok)
    answer.resource = resource
    answer.byteCount = resource.byteCount
    answer.headers = Self.common
    answer.headers.add(name: "Content-Type", value: resource.contentType)
    answer.headers.add(name: "ETag", value: resource.entityTag)
    if storesGzip { answer.headers.add(name: "Content-Encoding", value: "gzip") }
    for field in resource.headers { answer.headers.add(name: field.name, value: field.value) }
    let offersRanges = supportsRanges && !ignoresRange && !storesGzip
    if offersRanges {
      answer.headers.add(name: "Accept-Ranges", value: "bytes")
      let isCurrent = head.headers.first(name: "If-Range").map { $0 == resource.entityTag } ?? true
      let field = isCurrent ? head.headers.first(name: "Range") : nil
      switch RangeField.outcome(of: field, byteCount: resource.byteCount) {
      case .whole: break
      case .unsatisfiable:
        return text(.rangeNotSatisfiable, extra: [("Content-Range", "bytes */\(resource.byteCount)")])
      case .part(let part):
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

  /// The whole resource with a status other than 200.
  private func refusal(_ resource: Resource) -> Answer {
    var answer = Answer(status: HTTPResponseStatus(statusCode: resource.status))
    answer.headers = Self.common
    for field in resource.headers { answer.headers.add(name: field.name, value: field.value) }
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
      answer = text(HTTPResponseStatus(statusCode: code), extra: headers.map { ($0.name, $0.value) })
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
    case .ignoreRange, .gzip: break
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

  /// A text response with the status.
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

  /// The path and the query of a request's target.
  static func split(_ uri: String) -> (path: Substring, query: Substring) {
    let target = uri.prefix { $0 != "#" }
    guard let mark = target.firstIndex(of: "?") else { return (target, "") }
    return (target[..<mark], target[target.index(after: mark)...])
  }
}
