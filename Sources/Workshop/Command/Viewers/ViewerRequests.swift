import Foundation
import HTTPTypes
import ReelCore
import ReelLab
import ReelPool

/// What differs from viewer to viewer in requests: the values of `{viewer}` and `{token}`.
struct ViewerValues: Sendable {
  /// From 1.
  let number: Int
  /// The viewer's line of the file of tokens; nil without one.
  let token: String?

  static let tokenMark = "{token}"
  static let numberMark = "{viewer}"

  func filled(_ text: String) -> String {
    let text = text.replacing(Self.numberMark, with: "\(number)")
    return token.map { text.replacing(Self.tokenMark, with: $0) } ?? text
  }

  func filled(_ fields: HTTPFields) -> HTTPFields {
    var filled = HTTPFields()
    for var field in fields {
      field.value = self.filled(field.value)
      filled.append(field)
    }
    return filled
  }

  /// Returns the error for a report: without queries of URLs, and without the token wherever it is.
  func redacted(_ error: ReelError) -> ReelError {
    func clean(_ text: String) -> String {
      let text = Redaction.clean(text)
      guard let token, !token.isEmpty else { return text }
      return text.replacing(token, with: "…").replacing(QueryParameter.encoded(token), with: "…")
    }
    var error = error
    error.reason = clean(error.reason)
    error.location = error.location.map(clean)
    error.advice = error.advice.map(clean)
    return error
  }

  /// Reads the file of `--tokens`: a token a line.
  ///
  /// - Throws: `ReelError` of kind `usage` if it has fewer than `count`.
  static func tokens(path: String, count: Int) throws(ReelError) -> [String] {
    var lines = LineSplitter(limit: 1 << 16)
    let bytes = try LocalText.bytes(path: path, limit: 256 << 20)
    let text = lines.add(bytes[...]) + lines.add([])
    var tokens: [String] = []
    for (index, line) in text.enumerated() {
      // Its text is not repeated: it is a secret.
      guard let line, let token = String(validating: line, as: UTF8.self)?.trimmed,
        HTTPField.isValidValue(token)
      else {
        throw ReelError(.usage, "not a token: it must be one line of text", at: path, place: .line(index + 1))
      }
      if !token.isEmpty { tokens.append(token) }
    }
    guard tokens.count >= count else {
      throw ReelError(
        .usage, "\(tokens.count.counted("token")) for \(count.counted("viewer"))", at: path,
        advice: "add lines, or take --viewers \(tokens.count)")
    }
    return tokens
  }
}

/// A parameter that `--query` adds to requests.
struct QueryParameter: Sendable {
  let name: String
  let value: String

  /// True if it is sent only where credentials are.
  var isCredential: Bool { value.contains(ViewerValues.tokenMark) }

  /// Parses `NAME=VALUE`. Throws `ReelError` of kind `usage`.
  init(parsing text: String) throws(ReelError) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else {
      // The text is not repeated: it may be a secret.
      throw ReelError(.usage, "--query takes NAME=VALUE")
    }
    (name, value) = (String(parts[0]), String(parts[1]))
  }

  /// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
  static func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
  }

  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
}

/// Adds parameters to the queries of requests over HTTP.
struct QueryFetcher: Fetching {
  private let base: any Fetching
  private let parameters: [(name: String, text: String, isCredential: Bool)]

  init(_ base: any Fetching, _ parameters: [QueryParameter], for values: ViewerValues) {
    self.base = base
    self.parameters = parameters.map { parameter in
      let name = QueryParameter.encoded(parameter.name)
      let value = QueryParameter.encoded(values.filled(parameter.value))
      return (name, "\(name)=\(value)", parameter.isCredential)
    }
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard ServerAddress(request.url) != nil else { return try await base.fetch(request) }
    let isTrusted = request.source?.admitsCredentials(to: request.url) ?? false
    return try await base.fetch(request) { known in
      // A parameter that the URL has already is not added again: a manifest may pass on its own query.
      let names = known.map { $0.prefix { $0 != "=" } }
      let added = parameters.filter { (isTrusted || !$0.isCredential) && !names.contains($0.name[...]) }
      return known + added.map { $0.text[...] }
    }
  }
}

/// Bounds the number of viewers on hosts that may not be the user's: those outside of this machine and its private
/// networks.
final class HostAdmission: Sendable {
  private struct State {
    var viewers: [String: Set<Int>] = [:]
    var refusal: ReelError?
  }

  /// The most viewers on a public host that the user has not named.
  static let limit = 50

  private let named: Set<String>
  private let limit: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - named: The hosts of `--i-may-load`.
  ///   - shard: Which of the processes that share the limit this is.
  init(named: [String], shard: (index: Int, count: Int) = (0, 1)) {
    self.named = Set(named.map { $0.lowercased() })
    let (each, rest) = Self.limit.quotientAndRemainder(dividingBy: shard.count)
    limit = each + (shard.index < rest ? 1 : 0)
  }

  /// The reason why the run must end; nil for none.
  var refusal: ReelError? { state.withLock { $0.refusal } }

  /// Throws `ReelError` of kind `usage` if a viewer is one too many for a host.
  ///
  /// - Parameter isPrivate: True for an address of this machine or a private network. False through a proxy, which
  ///   alone knows the address.
  func admit(_ viewer: Int, to host: String, isPrivate: Bool) throws(ReelError) {
    guard !isPrivate, !named.contains(host) else { return }
    let refusal = state.withLock { state -> ReelError? in
      state.viewers[host, default: []].insert(viewer)
      guard state.viewers[host]?.count ?? 0 > limit else { return nil }
      state.viewers[host]?.remove(viewer)
      let error = ReelError(
        .usage,
        "\(host) is neither this machine nor in a private network: it gets no more than \(limit) viewers",
        advice: "if you may load it, add --i-may-load \(host)", isTemporary: false)
      state.refusal = state.refusal ?? error
      return error
    }
    if let refusal { throw refusal }
  }
}
