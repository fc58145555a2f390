import Foundation
import HTTPTypes
import ReelCore
import ReelLab
import ReelPool
import ReelSources

/// What the viewers of a run may watch.
struct ViewerSources: Sendable {
  /// A source, and its text on the command line or in the list.
  struct Entry: Sendable {
    let text: String
    let source: MediaSource
    /// How often it is chosen in proportion to others; nil if the list does not say.
    var weight: Double?
  }

  let entries: [Entry]
  let choice: ViewerPlan.Choice

  /// The sources of the command line, in order.
  init(_ arguments: [String]) throws(ReelError) {
    entries = try arguments.map { text throws(ReelError) in
      Entry(text: text, source: try MediaSource(argument: text))
    }
    choice = .inOrder(count: entries.count)
  }

  /// The sources of a list: in its order, or drawn by weights if it has any.
  ///
  /// - Parameter path: `-` for standard input.
  /// - Throws: `ReelError` of kind `usage` for a line that is not a source, and the errors of reading.
  init(listAt path: String) throws(ReelError) {
    let reader = try SourceListReader(path: path)
    let name = path == "-" ? "standard input" : path
    let location: MediaSource = path == "-" ? .standardInput : .url(URL(fileURLWithPath: path))
    let reference = FeedReference(feed: location, limit: FeedLimits().referenceByteCount)
    var entries: [Entry] = []
    while let read = try reader.next() {
      for entry in read {
        do throws(ReelError) {
          entries.append(try Self.entry(entry.content, reference))
        } catch {
          throw ReelError(.usage, error.reason, at: name, place: .line(entry.line), advice: error.advice)
        }
      }
    }
    guard !entries.isEmpty else { throw ReelError(.badManifest, "the list has no sources", at: name) }
    self.entries = entries
    choice =
      entries.contains { $0.weight != nil }
      ? .weighted(entries.map { $0.weight ?? 1 }) : .inOrder(count: entries.count)
  }

  /// The items of a feed, which viewers swipe through.
  init(_ feed: Feed, swipes: SwipeSpec) {
    entries = feed.items.map { Entry(text: $0.source.name, source: $0.source) }
    choice = .feed(feed, swipes)
  }

  // MARK: - Private

  private static func entry(
    _ content: SourceListParser.Content, _ reference: FeedReference
  ) throws(ReelError) -> Entry {
    switch content {
    case .failure(let error): throw error
    case .source(let text, let fields):
      var entry = Entry(text: text, source: try reference.source(text))
      if let field = fields.first(where: { $0.key == "weight" }) {
        guard let weight = Double(String(decoding: field.value, as: UTF8.self)), weight >= 0, weight.isFinite
        else { throw ReelError(.usage, "the weight is not a number of 0 or more") }
        entry.weight = weight
      }
      return entry
    }
  }
}

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
    var sent = request
    sent.url = url(of: request)
    var response = try await base.fetch(sent)
    // What a manifest refers to must not be relative to this query.
    if response.url == sent.url { response.url = request.url }
    return response
  }

  // MARK: - Private

  /// A parameter that the URL has already is not added again: a manifest may pass on its own query.
  private func url(of request: FetchRequest) -> URL {
    let url = request.url
    guard ["http", "https"].contains(url.scheme?.lowercased()) else { return url }
    let known = (url.query(percentEncoded: true) ?? "").split(separator: "&").map { $0.prefix { $0 != "=" } }
    let isTrusted = request.source?.admitsCredentials(to: url) ?? false
    let added = parameters.filter { (isTrusted || !$0.isCredential) && !known.contains($0.name[...]) }
    guard !added.isEmpty else { return url }
    let text = url.absoluteString.prefix { $0 != "#" }
    let separator = !text.contains("?") ? "?" : text.hasSuffix("?") || text.hasSuffix("&") ? "" : "&"
    return URL(string: text + separator + added.map(\.text).joined(separator: "&")) ?? url
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
  ///   - shardCount: The number of processes that share the limit.
  init(named: [String], shardCount: Int) {
    self.named = Set(named.map { $0.lowercased() })
    limit = max(1, Self.limit / shardCount)
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
