public import Foundation

/// A failure of a source or an output: its kind, its location, the reason, and advice to the user.
///
/// Work that is cancelled throws `CancellationError` instead.
public struct ReelError: Error, Sendable, Hashable, Codable {
  /// The kind of a failure. Base decisions on it, not on the texts, which may change.
  ///
  /// A later version may add kinds, so a `switch` needs a `default`.
  public struct Kind: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name of the kind, such as `badMedia`.
    public let rawValue: String

    /// Creates a kind by its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The name of the kind.
    public var description: String { rawValue }

    /// An invalid argument or request, such as an index outside a feed.
    public static let usage = Kind(rawValue: "usage")
    /// Media data is malformed or incomplete.
    public static let badMedia = Kind(rawValue: "badMedia")
    /// A playlist or MPD is malformed, or exceeds a limit.
    public static let badManifest = Kind(rawValue: "badManifest")
    /// Reel does not support the input, such as its codec, container, encryption or URL scheme.
    public static let unsupported = Kind(rawValue: "unsupported")
    /// A local file does not exist or can't be read.
    public static let noSuchFile = Kind(rawValue: "noSuchFile")
    /// A server answered with an error, or its answer is invalid.
    public static let server = Kind(rawValue: "server")
    /// The network failed: no address for the host, no connection, a lost connection, or a TLS failure.
    public static let network = Kind(rawValue: "network")
    /// A time limit expired.
    public static let timedOut = Kind(rawValue: "timedOut")
    /// An output file or folder can't be created.
    public static let cannotCreateOutput = Kind(rawValue: "cannotCreateOutput")
    /// Writing to an output failed.
    public static let cannotWriteOutput = Kind(rawValue: "cannotWriteOutput")
    /// Something else was asked for before the result came, such as another item of a pool.
    public static let superseded = Kind(rawValue: "superseded")
    /// The pool was closed.
    public static let closed = Kind(rawValue: "closed")
    /// An error in Reel itself, or a lack of memory.
    public static let internalFault = Kind(rawValue: "internalFault")
  }

  /// A position within the resource that failed.
  public enum Place: Sendable, Hashable, Codable {
    /// A line of a text, and a column in it, both counted from 1.
    case line(Int, column: Int? = nil)
    /// A byte offset, counted from 0.
    case byte(Int64)
    /// The path of an XML element, such as `MPD/Period[1]/AdaptationSet[2]`. Indices count from 1.
    case element(String)
  }

  /// The content that was found instead of playable media.
  package enum Found: String, Sendable, Hashable, Codable {
    /// No media, such as an HTML page.
    case notMedia
    /// Media in a container that Reel does not read.
    case unsupportedContainer
    /// No video, but streams of other kinds.
    case otherStreams
    /// No video and no audio, but streams of other kinds, such as subtitles.
    case neitherVideoNorAudio
    /// Media that is encrypted, and that can't be decrypted.
    case encrypted
    /// A reference to another document, which is not read.
    case reference
    /// Another version of a resource than the one that its other bytes, which were stored, are of.
    case otherVersion
  }

  /// The kind of the failure.
  public var kind: Kind
  /// The reason, as a clause without a full stop.
  public var reason: String
  /// The URL or path of the resource that failed. A URL may have a user name and a password.
  public var location: String?
  /// The position of the failure within the resource at `location`, if known.
  public var place: Place?
  /// The advice to the user, as a clause without a full stop.
  public var advice: String?
  /// The HTTP status of the answer that caused an error of kind `server` (RFC 9110 §15); otherwise nil.
  public var status: Int?
  /// The time for which the server asks to wait (`Retry-After`, RFC 9110 §10.2.3); nil if it does not.
  package var retryAfter: Duration?
  /// The negative code with which a call into FFmpeg failed (`libavutil/error.h`); nil if the failure has another cause.
  public var ffmpegCode: Int32?
  /// The content that was found instead of playable media, if that is the reason.
  package private(set) var found: Found?
  /// Overrides the rule by kind and status; nil if it holds.
  private var temporariness: Bool?

  /// Creates an error. `reason` and `advice` are clauses without a full stop. `isTemporary` says whether the
  /// failure may pass; if it is nil, kind and status decide.
  public init(
    _ kind: Kind, _ reason: String, at location: String? = nil, place: Place? = nil, advice: String? = nil,
    status: Int? = nil, isTemporary: Bool? = nil
  ) {
    self.kind = kind
    self.reason = reason
    self.location = location
    self.place = place
    self.advice = advice
    self.status = status
    if let isTemporary { self.isTemporary = isTemporary }
  }

  /// Creates the error for something that is there instead of playable media.
  package init(
    _ kind: Kind = .badMedia, found: Found?, _ reason: String, at location: String? = nil,
    place: Place? = nil, advice: String? = nil
  ) {
    self.init(kind, reason, at: location, place: place, advice: advice)
    self.found = found
  }

  /// True if the same operation may succeed later. A source that is being opened fails at once if not.
  ///
  /// These errors are temporary unless they say otherwise: `network`, `timedOut`, and `server` without a
  /// status or with the status 408, 425, 429, 500, 502, 503 or 504. Of kind `network`, a host that does not
  /// exist, a TLS failure and a proxy that requires a password are not.
  public var isTemporary: Bool {
    get { temporariness ?? isTemporaryByKind }
    set { temporariness = newValue == isTemporaryByKind ? nil : newValue }
  }

  private var isTemporaryByKind: Bool {
    switch kind {
    case .network, .timedOut: true
    case .server: status.map(Self.temporaryStatuses.contains) ?? true
    default: false
    }
  }

  /// The HTTP statuses after which the same request may succeed later (RFC 9110 §15; 425: RFC 8470 §5.2).
  package static let temporaryStatuses: Set = [408, 425, 429, 500, 502, 503, 504]

  /// True if the failure is final, but another resource of the same server may be there.
  package var concernsOneResource: Bool { !isTemporary && kind != .network }

  /// Returns the same error, with `location` filled in if it had none.
  package func located(at location: String) -> ReelError {
    var copy = self
    copy.location = self.location ?? location
    return copy
  }
}

extension ReelError {
  /// Returns the error for a local file that can't be read, by the system's number of the error.
  package static func unreadable(_ code: Int32, at location: String) -> ReelError {
    ReelError(
      .noSuchFile, code == ENOENT ? "no such file" : "can't be read: \(systemText(code))", at: location)
  }

  /// Returns the system's words for the number of an error, such as `Permission denied`.
  package static func systemText(_ code: Int32) -> String { String(cString: strerror(code)) }
}

extension ReelError: CustomStringConvertible {
  /// One line of the form `location: place: reason; advice`, without the parts that are nil. Control characters are
  /// escaped. User names and passwords in URLs are left out.
  public var description: String {
    Self.readable(failure + (advice.map { "; \($0)" } ?? ""))
  }

  /// Where and why: `location: place: reason`.
  private var failure: String {
    var text = ""
    if let location { text += "\(location): " }
    switch place {
    case .line(let line, let column?): text += "line \(line), column \(column): "
    case .line(let line, nil): text += "line \(line): "
    case .byte(let offset): text += "byte \(offset): "
    case .element(let path): text += "\(path): "
    case nil: break
    }
    return text + reason
  }

  private static func readable(_ text: String) -> String { text.printable.withoutUserInformation }
}

extension ReelError: LocalizedError {
  /// The description without the advice: `location: place: reason`.
  public var errorDescription: String? { Self.readable(failure) }

  /// The reason.
  public var failureReason: String? { Self.readable(reason) }

  /// The advice.
  public var recoverySuggestion: String? { advice.map(Self.readable) }
}
