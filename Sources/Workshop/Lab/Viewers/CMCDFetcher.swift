internal import Foundation
internal import HTTPTypes
package import ReelCore

/// Adds CMCD of version 1 (CTA-5004) to requests over HTTP: what they are for, and what the player knows at the time.
package final class CMCDFetcher: Fetching {
  /// What a player knows when it sends a request.
  package struct Conditions: Sendable, Hashable {
    /// The media that is loaded ahead of the position, of the tracks that the request is for; nil if unknown.
    package var buffered: Duration?
    /// True until playback begins, and while it waits for media.
    package var isWaiting = false
    /// The number of stalls so far.
    package var stallCount = 0
    /// The throughput by which rungs are chosen, in bits per second; nil if unknown.
    package var throughput: Double?
    /// 1 for the speed of recording.
    package var rate = 1.0

    package init(isWaiting: Bool = false) { self.isWaiting = isWaiting }
  }

  private let base: any Fetching
  private let transmission: CMCD.Transmission
  private let session: String
  private let content: String?
  private let conditions: @Sendable (RequestedMedia.Tracks?) -> Conditions

  private struct State {
    /// The last media that was requested. Manifests and keys are of the same kind.
    var media: RequestedMedia?
    var stallCount = 0
  }

  private let state = Locked(State())

  /// - Parameters:
  ///   - session: The id of the session (`sid`), at most 64 characters.
  ///   - content: The id of what is watched (`cid`), at most 64 characters; nil for none.
  ///   - conditions: Called with the tracks of each request; nil for a manifest, a key and the like. Must not block.
  package init(
    _ base: any Fetching, _ transmission: CMCD.Transmission, session: String, content: String?,
    conditions: @escaping @Sendable (RequestedMedia.Tracks?) -> Conditions
  ) {
    (self.base, self.transmission) = (base, transmission)
    (self.session, self.content, self.conditions) = (session, content, conditions)
  }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard ServerAddress(request.url) != nil else { return try await base.fetch(request) }
    let cmcd = CMCD(values(of: request))
    switch transmission {
    case .header:
      var sent = request
      for field in cmcd.headerFields {
        if let name = HTTPField.Name(field.name) { sent.headers[name] = field.value }
      }
      return try await base.fetch(sent)
    case .query:
      guard let parameter = cmcd.queryParameter else { return try await base.fetch(request) }
      return try await base.fetch(request) { others in
        others.filter { !$0.hasPrefix("CMCD=") } + [parameter[...]]
      }
    }
  }

  // MARK: - Private

  private func values(of request: FetchRequest) -> [String: CMCD.Value] {
    let isSegment = request.purpose == .segment
    let media = request.media
    let conditions = conditions(isSegment ? media?.tracks : nil)
    let (known, hasStalled) = state.withLock { state in
      state.media = media ?? state.media
      defer { state.stallCount = max(state.stallCount, conditions.stallCount) }
      return (state.media, conditions.stallCount > state.stallCount)
    }
    var values: [String: CMCD.Value] = [
      "sid": .text(session), "su": .flag(conditions.isWaiting), "bs": .flag(hasStalled),
      "pr": .number(conditions.rate),
    ]
    values["cid"] = content.map { .text($0) }
    values["mtp"] = conditions.throughput.map { .number($0 / 1000) }
    values["sf"] = known.map { .text($0.isDASH ? "d" : "h") }
    values["st"] = known.map { .text($0.isLive ? "l" : "v") }
    values["ot"] = request.objectType.map { .text($0) }
    guard isSegment, let media else { return values }
    values["br"] = media.bitRate.map { .number(Double($0) / 1000) }
    values["tb"] = media.topBitRate.map { .number(Double($0) / 1000) }
    values["d"] = media.duration.map { .number($0.seconds * 1000) }
    if let buffered = conditions.buffered {
      let milliseconds = buffered / .milliseconds(1)
      values["bl"] = .number(milliseconds)
      if !conditions.isWaiting, conditions.rate > 0 { values["dl"] = .number(milliseconds / conditions.rate) }
    }
    if let next = media.next {
      // Without `nor`, a range is one of the same resource.
      let path = next.url == request.url ? nil : CMCD.path(of: next.url, from: request.url)
      values["nor"] = path.map { .text($0) }
      if path != nil || next.url == request.url {
        values["nrr"] = next.range.map { .text($0.cmcdText) }
      }
    }
    return values
  }
}

extension FetchRequest {
  /// The type of the object (`ot`); nil if it is not known.
  fileprivate var objectType: String? {
    switch purpose {
    case .source, .manifest: "m"
    case .key: "k"
    case .initialization: "i"
    case .clock, .resource: "o"
    case .segment:
      switch media?.tracks {
      case .video: "v"
      case .audio: "a"
      case .videoAndAudio: "av"
      case nil: nil
      }
    }
  }
}

extension ByteRange {
  /// As in `Range`, without the unit.
  fileprivate var cmcdText: String { "\(offset)-" + (end.map { String($0 - 1) } ?? "") }
}

extension Fetching {
  /// Sends a request with other parameters in the query of its URL, which must be one of HTTP.
  ///
  /// The response has the URL of the request: what a manifest refers to must not be relative to these parameters.
  ///
  /// - Parameter change: Returns all parameters, from those that the URL has. Both are percent-encoded.
  package func fetch(
    _ request: FetchRequest, parameters change: ([Substring]) -> [Substring]
  ) async throws -> FetchResponse {
    let parts = request.url.absoluteString.prefix { $0 != "#" }
      .split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let known = parts.count < 2 ? [] : parts[1].split(separator: "&")
    let changed = change(known)
    guard changed != known, let url = URL(string: "\(parts[0])?\(changed.joined(separator: "&"))") else {
      return try await fetch(request)
    }
    var sent = request
    sent.url = url
    var response = try await fetch(sent)
    if response.url == url { response.url = request.url }
    return response
  }
}
