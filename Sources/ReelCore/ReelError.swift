/// What went wrong with one source or one output: which group of failure, where, why, and what to do about it.
public struct ReelError: Error, Sendable, Hashable {
  /// The stable group of a failure. A caller decides by it; texts may change.
  public enum Kind: String, Sendable, Hashable {
    /// The caller asked for something that makes no sense.
    case usage
    /// Media bytes that are not what they should be.
    case badMedia
    /// A playlist or MPD that can't be read.
    case badManifest
    /// Sound input that Reel does not play: a codec, container, encryption.
    case unsupported
    /// A local file that is not there, or can't be read.
    case noSuchFile
    /// A server's answer that is no success.
    case server
    /// No answer: no address, no connection, a connection lost.
    case network
    /// A time limit was reached.
    case timedOut
    /// An output file or folder can't be made.
    case cannotCreateOutput
    /// An output can't be written to its end.
    case cannotWriteOutput
    /// The work was cancelled.
    case cancelled
    /// A fault of Reel's own.
    case internalFault
  }

  /// A place inside of what failed.
  public enum Place: Sendable, Hashable {
    /// A line of text, counted from 1.
    case line(Int, column: Int? = nil)
    /// A byte offset, counted from 0.
    case byte(Int64)
    /// The path of an XML element, `MPD/Period[1]/AdaptationSet[2]`.
    case element(String)
  }

  public var kind: Kind
  /// Why, in a clause without a full stop.
  public var reason: String
  /// The URL or path that it happened at.
  public var location: String?
  public var place: Place?
  /// What the user can do, in a clause without a full stop.
  public var advice: String?
  /// The status of the answer (RFC 9110 §15), for an error of kind `server` that comes from one.
  public var status: Int?

  public init(
    _ kind: Kind, _ reason: String, at location: String? = nil, place: Place? = nil, advice: String? = nil,
    status: Int? = nil
  ) {
    self.kind = kind
    self.reason = reason
    self.location = location
    self.place = place
    self.advice = advice
    self.status = status
  }

  /// True where the same work may succeed when it is done again later.
  ///
  /// Temporary are `network`, `timedOut`, and `server` with the status 408, 425, 429, 500, 502, 503 or 504 or with
  /// none. Everything else is final.
  public var isTemporary: Bool {
    switch kind {
    case .network, .timedOut: true
    case .server: status.map { [408, 425, 429, 500, 502, 503, 504].contains($0) } ?? true
    case .usage, .badMedia, .badManifest, .unsupported, .noSuchFile, .cannotCreateOutput, .cannotWriteOutput,
      .cancelled, .internalFault:
      false
    }
  }

  /// The same error with `location` filled in where it had none.
  public func located(at location: String) -> ReelError {
    var copy = self
    copy.location = self.location ?? location
    return copy
  }
}

extension ReelError: CustomStringConvertible {
  /// One line: `where: why; what to do`.
  public var description: String {
    var text = ""
    if let location { text += "\(location): " }
    switch place {
    case .line(let line, let column?): text += "line \(line), column \(column): "
    case .line(let line, nil): text += "line \(line): "
    case .byte(let offset): text += "byte \(offset): "
    case .element(let path): text += "\(path): "
    case nil: break
    }
    text += reason
    if let advice { text += "; \(advice)" }
    return text.printable
  }
}
