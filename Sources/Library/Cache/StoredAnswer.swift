internal import Foundation
internal import HTTPTypes
internal import ReelCore
internal import ReelFFmpeg

/// What is kept of an answer besides its bytes: who may use it, and for how long (RFC 9111).
struct StoredAnswer: Codable, Sendable, Equatable {
  /// The fields that say so, by lower-case name. Those of a 304 replace them (§4.3.4).
  private var fields: [String: String]
  /// When the request was sent and when its answer came, in seconds since 1970 by this machine's clock.
  private var requestTime: Double
  private var responseTime: Double
  /// The hashes of the request fields that `Vary` names (§4.1): a value may be a secret.
  private let varying: [String: String]
  /// The URL after redirects, without a query; nil for that of the request.
  let finalURL: String?
  /// True if it was redirected: the redirect, which is not kept, is asked for again each time.
  private let wasRedirected: Bool
  /// True for the text of a manifest.
  let isManifest: Bool
  let supportsRanges: Bool
  /// The size of the whole resource; nil until it is known.
  var resourceByteCount: Int64?
  /// The version that the bytes are of.
  let version: EntryVersion
  /// What an answer of the same version has: a strong entity tag or a date that is as good; nil if bytes of other answers
  /// can't be known to be of the same version.
  let strongValidator: String?

  var contentType: String? { fields["content-type"] }

  /// The position after the last byte of a range of the resource; nil if its size is unknown and matters.
  func end(of range: ByteRange?) -> Int64? { [range?.end, resourceByteCount].compactMap { $0 }.min() }

  /// The place of the resource, which its references are relative to.
  func url(of request: FetchRequest) -> URL { finalURL.flatMap { URL(string: $0) } ?? request.url }

  /// Nil if a private cache must not store the answer (§3), or if it would be of no use.
  ///
  /// - Parameter isManifest: True for the text of a manifest.
  init?(
    _ response: FetchResponse, to request: FetchRequest, isManifest: Bool, sentAt: WallTime,
    receivedAt: WallTime
  ) {
    guard let head = response.head, head.status == 200 || head.status == 206, Self.mayKeep(head) else {
      return nil
    }
    let stored = Self.kept(head.fields)
    guard let names = Self.varyingNames(stored) else { return nil }
    wasRedirected = response.url != request.url
    let hidesPlace =
      response.url.query() != nil || response.url.user() != nil || response.url.password() != nil
    // A manifest's references are relative to its place, which may not be kept.
    if wasRedirected && hidesPlace && isManifest { return nil }
    finalURL = wasRedirected && !hidesPlace ? response.url.absoluteString : nil
    fields = stored
    requestTime = sentAt.seconds
    responseTime = receivedAt.seconds
    varying = Self.varying(names, in: request)
    self.isManifest = isManifest
    supportsRanges = response.supportsRanges
    resourceByteCount = response.resourceByteCount
    let isCoded = head.fields[.contentEncoding].map { $0.lowercased() != "identity" } ?? false
    strongValidator = isCoded ? nil : Self.strongValidator(stored)
    // A part that no other can be joined with would be shown beside parts of other versions.
    if head.status == 206, strongValidator == nil { return nil }
    version = strongValidator.map { Self.version(of: $0) } ?? .random(in: 0...(.max))
  }

  /// False for an answer to a request with credentials, and for one that must not be stored.
  static func mayKeep(_ head: AnswerHead) -> Bool {
    !head.isPersonal && !head.fields.contains(.setCookie)
      && !CacheControl(kept(head.fields)).isSet("no-store")
  }

  /// True if the answer may be used for the request, as far as their fields say (§4.1).
  func matches(_ request: FetchRequest) -> Bool {
    varying == Self.varying(Array(varying.keys), in: request)
  }

  /// True if the answer may be used without asking the server (§4.2).
  ///
  /// - Parameter assumed: The lifetime of media whose server says nothing about its age or version.
  func isFresh(at now: WallTime, assuming assumed: Duration) -> Bool {
    let control = CacheControl(fields)
    guard !wasRedirected, !control.isSet("no-cache"), let age = age(at: now) else { return false }
    if control.isEmpty, fields["pragma"]?.lowercased().contains("no-cache") ?? false { return false }
    return age < lifetime(control, assuming: assumed)
  }

  /// True if the answer may be used although it is stale, because the server can't be reached (§4.2.4).
  var servesDisconnected: Bool {
    let control = CacheControl(fields)
    return !control.isSet("no-cache") && !control.isSet("must-revalidate")
  }

  /// True if the answer may be used in place of a server's error of the kinds 500 to 504 (RFC 5861 §4).
  func servesErrors(at now: WallTime, assuming assumed: Duration) -> Bool {
    let control = CacheControl(fields)
    guard servesDisconnected, let grace = control.seconds("stale-if-error"), let age = age(at: now) else {
      return false
    }
    return age < lifetime(control, assuming: assumed) + grace
  }

  /// The fields of a request that asks whether the answer still holds (RFC 9110 §13.1); empty if it has no validator.
  var conditions: HTTPFields {
    if let tag = fields["etag"], !tag.isEmpty, tag.opaqueTag != "\"\"" { return [.ifNoneMatch: tag] }
    if let date = fields["last-modified"] { return [.ifModifiedSince: date] }
    return [:]
  }

  /// What a server says of a stored answer.
  enum Verdict {
    /// It holds.
    case holds
    /// It holds for this request, and must not be kept any longer.
    case holdsOnce
    /// It does not hold.
    case isOther
  }

  /// Takes the fields of a 304 (§4.3.4), if the answer holds and may be kept.
  mutating func update(with head: AnswerHead, sentAt: WallTime, receivedAt: WallTime) -> Verdict {
    let news = Self.kept(head.fields)
    if let old = fields["etag"], let new = news["etag"], old.opaqueTag != new.opaqueTag { return .isOther }
    if fields["etag"] == nil, let old = fields["last-modified"], let new = news["last-modified"], old != new {
      return .isOther
    }
    // What is stored may be cut off. Many servers state a length of 0, that of the 304 itself.
    if let size = head.fields[.contentLength].flatMap({ Int64($0) }), size > 0, strongValidator != nil,
      !isManifest, let resourceByteCount, size != resourceByteCount
    {
      return .isOther
    }
    guard Self.mayKeep(head) else { return .holdsOnce }
    fields.merge(news) { $1 }
    // The age of the new answer is its own.
    for name in ["age", "date"] where news[name] == nil { fields[name] = nil }
    requestTime = sentAt.seconds
    responseTime = receivedAt.seconds
    return .holds
  }

  /// The strong validator of an answer (RFC 9110 §8.8.1). A date is one if it is a minute older than the answer (§8.8.2.2).
  static func strongValidator(_ response: FetchResponse) -> String? {
    response.head.flatMap { strongValidator(kept($0.fields)) }
  }

  // MARK: - Private

  private static func version(of validator: String) -> EntryVersion {
    SHA256Hash.digest(of: Array(validator.utf8)).prefix(8).reduce(0) { $0 << 8 | EntryVersion($1) }
  }

  private static let keptFields: Set = [
    "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "pragma", "vary",
  ]

  private static func kept(_ fields: HTTPFields) -> [String: String] {
    var kept: [String: String] = [:]
    for field in fields where keptFields.contains(field.name.canonicalName) {
      let name = field.name.canonicalName
      // Lists may be split into several fields (RFC 9110 §5.3); of the others, the first counts.
      let isList = name == "cache-control" || name == "vary" || name == "pragma"
      kept[name] = kept[name].map { isList ? "\($0), \(field.value)" : $0 } ?? field.value
    }
    return kept
  }

  /// The request fields that choose between answers; nil if the answer is for none but its own request. Credentials are
  /// among those: they never reach the cache.
  private static func varyingNames(_ fields: [String: String]) -> [String]? {
    let names = (fields["vary"] ?? "").split(separator: ",").map { $0.trimmed.lowercased() }.filter {
      !$0.isEmpty
    }
    guard !names.contains("*"), !names.contains("cookie"), !names.contains("authorization") else {
      return nil
    }
    // Bytes are kept decoded, whatever coding they came in.
    return names.filter { $0 != "accept-encoding" }
  }

  private static func varying(_ names: [String], in request: FetchRequest) -> [String: String] {
    var values: [String: String] = [:]
    for name in names {
      let value = request.headers.filter { $0.name.canonicalName == name }.map(\.value).joined(
        separator: ", ")
      values[name] = SHA256Hash.digest(of: Array(value.utf8)).hexadecimal
    }
    return values
  }

  private static func strongValidator(_ fields: [String: String]) -> String? {
    // An empty tag is that of a server that has none, and the same for all versions.
    if let tag = fields["etag"] { return tag.hasPrefix("\"") && tag != "\"\"" ? tag : nil }
    guard let modified = fields["last-modified"], let changed = WallTime.secondsSince1970(httpDate: modified),
      let sent = fields["date"].flatMap({ WallTime.secondsSince1970(httpDate: $0) }), sent - changed >= 60
    else { return nil }
    return modified
  }

  /// The time since the server made or confirmed the answer, in seconds (§4.2.3); nil if a clock went back.
  private func age(at now: WallTime) -> Double? {
    guard now.seconds >= responseTime else { return nil }
    let stated = fields["age"].flatMap { CacheControl.seconds($0) } ?? 0
    let sent = fields["date"].flatMap { WallTime.secondsSince1970(httpDate: $0) }
    let apparent = max(0, responseTime - (sent.map(Double.init) ?? responseTime))
    let corrected = stated + max(0, responseTime - requestTime)
    return max(apparent, corrected) + now.seconds - responseTime
  }

  /// In seconds (§4.2.1).
  private func lifetime(_ control: CacheControl, assuming assumed: Duration) -> Double {
    if control.isSet("max-age") { return control.seconds("max-age") ?? 0 }
    if let text = fields["expires"] {
      guard let expires = WallTime.secondsSince1970(httpDate: text) else { return 0 }
      let sent = fields["date"].flatMap { WallTime.secondsSince1970(httpDate: $0) }.map(Double.init)
      return Double(expires) - (sent ?? responseTime)
    }
    // Where there is a validator, asking costs one round trip.
    let saysNothing = !isManifest && fields["etag"] == nil && fields["last-modified"] == nil
    return saysNothing ? assumed.milliseconds / 1e3 : 0
  }
}

/// The directives of a `Cache-Control` field (RFC 9111 §5.2).
private struct CacheControl {
  private var values: [String: [String?]] = [:]

  init(_ fields: [String: String]) {
    for part in Self.parts(of: fields["cache-control"] ?? "") {
      let halves = part.split(separator: "=", maxSplits: 1)
      guard let name = halves.first?.trimmed.lowercased(), !name.isEmpty else { continue }
      let value = halves.count > 1 ? halves[1].trimmed.filter { $0 != "\"" } : nil
      values[name, default: []].append(value)
    }
  }

  var isEmpty: Bool { values.isEmpty }

  func isSet(_ name: String) -> Bool { values[name] != nil }

  /// The value in seconds; nil if it is none. Of several, the smallest.
  func seconds(_ name: String) -> Double? {
    let numbers = (values[name] ?? []).map { $0.flatMap { Self.seconds($0) } }
    return numbers.contains(nil) ? nil : numbers.compactMap { $0 }.min()
  }

  /// A number of seconds (§1.2.2); nil for any other text.
  static func seconds(_ text: String) -> Double? {
    let digits = text.trimmed
    guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDigit) else { return nil }
    return min(Double(digits) ?? 0, 2_147_483_648)
  }

  /// Splits at commas outside of quotation marks.
  private static func parts(of text: String) -> [Substring] {
    var isQuoted = false
    return text.split { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
  }
}

extension WallTime {
  fileprivate var seconds: Double { Double(nanosecondsSince1970) / 1e9 }
}

extension String {
  /// An entity tag without its mark of weakness, for the weak comparison (RFC 9110 §8.8.3.2).
  fileprivate var opaqueTag: Substring { hasPrefix("W/") ? dropFirst(2) : self[...] }
}
