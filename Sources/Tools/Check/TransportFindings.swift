internal import Foundation
internal import HTTPTypes
package import ReelCore
internal import ReelManifest

/// Judges how the servers of a stream answer: `unreachable`, `ttfb-slow`, `redirects`, `no-keep-alive`, `no-ranges`,
/// `response-headers`, and `segment-truncated` for answers that broke off and went on.
package enum TransportFindings {
  package static func findings(in facts: StreamFacts, _ thresholds: Thresholds) -> [Finding] {
    let requests = facts.requests.filter { $0.host != nil }
    return slowAnswers(requests, facts, thresholds) + redirects(requests) + closings(requests)
      + refusedRanges(requests, facts) + headers(requests, facts) + brokenAnswers(requests, facts)
  }

  /// The number of answers that a finding about a server's habit needs.
  static let answerCount = 3

  /// The kinds of answers whose waits are compared.
  enum AnswerKind: String, CaseIterable {
    case manifest
    case segment

    /// The purposes of the requests that have such answers, or that the same server answers.
    fileprivate func purposes(in facts: StreamFacts) -> Set<FetchPurpose> {
      switch self {
      case .manifest: [.source, .manifest]
      case .segment: facts.isManifest ? [.segment, .initialization, .key] : [.source, .segment]
      }
    }
  }

  // MARK: - First byte

  private static func slowAnswers(
    _ requests: [RequestFacts], _ facts: StreamFacts, _ thresholds: Thresholds
  ) -> [Finding] {
    let limit = thresholds.normalized(.ttfbSlow)
    let waits = ServerWaits(requests)
    var findings: [Finding] = []
    for kind in AnswerKind.allCases {
      let answers = alone(requests.filter { $0.isSuccess && Self.kind(of: $0, in: facts) == kind })
      let times = answers.compactMap { waits.wait(of: $0)?.inSeconds }
      guard times.count >= answerCount, let first = times.first, let median = times.median else { continue }
      let others = times.dropFirst()
      if median > limit, times.min() ?? 0 > limit / 2 {
        var finding = Finding(
          .ttfbSlow, kind.rawValue, .warning, url: answers.first?.url.reelText,
          "the server takes \(milliseconds(median)) to begin the answer to a \(kind.rawValue) (median of \(times.count), round trip of \(milliseconds(trip(answers, waits))) subtracted)",
          fix: kind == .manifest
            ? "cache playlists at the edge, or make them ahead of the request"
            : "keep segments in a cache near viewers, and look at what the origin does before the first byte")
        finding.evidence = [
          ("median_ms", .number(median * 1000)), ("maximum_ms", .number((times.max() ?? 0) * 1000)),
          ("answers", .integer(times.count)),
        ]
        finding.change = .dropWaits(kind.purposes(in: facts))
        findings.append(finding)
      } else if first > limit, others.allSatisfy({ $0 <= limit }) {
        var finding = Finding(
          .ttfbSlow, "cold", .note, url: answers.first?.url.reelText,
          "the first \(kind.rawValue) took \(milliseconds(first)) to begin, the next \(others.count) at most \(milliseconds(others.max() ?? 0)): its server had to wake up, or its cache to fill",
          fix: "request the stream once before viewers do, or keep it in the cache")
        finding.evidence = [
          ("first_ms", .number(first * 1000)), ("maximum_of_others_ms", .number((others.max() ?? 0) * 1000)),
          ("answers", .integer(times.count)),
        ]
        findings.append(finding)
      }
    }
    return findings
  }

  /// Returns the requests that no other one ran beside, whose wait is the server's alone; all of them if those are too
  /// few.
  private static func alone(_ requests: [RequestFacts]) -> [RequestFacts] {
    let gets = requests.filter { $0.method == .get }
    let answers = gets.count >= answerCount ? gets : requests
    let alone = answers.filter { request in
      let end = request.began + (request.metrics?.answerTime ?? .zero)
      return !requests.contains { other in
        other.began != request.began && other.began < end && request.began < (other.ended ?? other.began)
      }
    }
    return alone.count >= answerCount ? alone : answers
  }

  /// Returns the kind of a request; nil for one whose wait is not compared.
  static func kind(of request: RequestFacts, in facts: StreamFacts) -> AnswerKind? {
    switch request.purpose {
    case .source: facts.isManifest ? .manifest : .segment
    case .manifest: .manifest
    case .segment: .segment
    // An initialization is small, and often answered by another place than segments.
    case .initialization, .key, .clock, .resource: nil
    }
  }

  /// True if one of the answers came late, so that more of them are worth a look.
  static func isSlow(_ answers: [RequestFacts], among requests: [RequestFacts], _ thresholds: Thresholds)
    -> Bool
  {
    let (limit, waits) = (thresholds.normalized(.ttfbSlow), ServerWaits(requests))
    return answers.contains { waits.wait(of: $0)?.inSeconds ?? 0 > limit }
  }

  private static func trip(_ requests: [RequestFacts], _ waits: ServerWaits) -> Double {
    requests.first.flatMap { waits.roundTrip(of: $0)?.inSeconds } ?? 0
  }

  // MARK: - Redirects

  private static func redirects(_ requests: [RequestFacts]) -> [Finding] {
    let redirected = requests.filter { ($0.metrics?.redirectCount ?? 0) > 0 }
    func hops(_ purposes: Set<FetchPurpose>) -> (count: Int, example: RequestFacts?) {
      let some = redirected.filter { purposes.contains($0.purpose) }
      return (some.count, some.first)
    }
    let source =
      redirected.filter { $0.purpose == .source }.compactMap { $0.metrics?.redirectCount }.max() ?? 0
    let (playlists, playlist) = hops([.manifest])
    let (media, medium) = hops([.segment, .initialization])
    let (keys, key) = hops([.key])
    guard source + playlists + media + keys > 0 else { return [] }
    let isWarning = source >= 2 || playlists + media + keys > 0
    var parts: [String] = []
    if source > 0 { parts.append("the source (\(source.counted("hop")))") }
    if playlists > 0 { parts.append(playlists.counted("playlist")) }
    if media > 0 { parts.append(media.counted("segment")) }
    if keys > 0 { parts.append(keys.counted("key")) }
    let example = medium ?? playlist ?? key ?? redirected.first { $0.purpose == .source }
    var finding = Finding(
      .redirects, nil, isWarning ? .warning : .note, url: example?.url.reelText,
      "the server redirects \(parts.joined(separator: ", "))",
      fix: source > 0 && playlists + media + keys == 0
        ? "hand out the final URL" : "write the final URLs into the playlists")
    finding.evidence = [
      ("source_hops", .integer(source)), ("playlists", .integer(playlists)),
      ("segments", .integer(media)), ("keys", .integer(keys)),
    ]
    if let target = example?.answerURL { finding.evidence.append(("target", .text(target.reelText))) }
    finding.change = .dropRedirects
    return [finding]
  }

  // MARK: - Connections

  private static func closings(_ requests: [RequestFacts]) -> [Finding] {
    var findings: [Finding] = []
    for host in Set(requests.compactMap(\.host)).sorted() {
      // Refusals may end a connection (RFC 9112 §9.6), so only other answers are judged.
      let own = requests.filter { $0.host == host }
      let answers = own.filter { (200...399).contains($0.metrics?.status ?? 0) }
      let announced = answers.filter { $0.metrics?.closesConnection == true }
      let (dropped, chances) = unannouncedClosings(own)
      let isAnnounced = announced.count >= answerCount && 2 * announced.count >= answers.count
      guard isAnnounced || dropped >= answerCount && 2 * dropped >= chances else { continue }
      let what =
        isAnnounced
        ? "the server ends the connection after \(announced.count) of \(answers.count) answers\(reason(announced))"
        : "the server closed \(dropped) of \(chances) connections right after an answer"
      var finding = Finding(
        .noKeepAlive, nil, .warning, url: (announced.first ?? answers.first)?.url.reelText, what,
        fix: "turn on persistent connections in the server, or serve HTTP/1.1 or HTTP/2")
      finding.evidence = [
        ("host", .text(host)), ("answers", .integer(answers.count)),
        ("closed", .integer(isAnnounced ? announced.count : dropped)),
        ("announced", .flag(isAnnounced)),
      ]
      finding.change = .dropHandshakes
      findings.append(finding)
    }
    return findings
  }

  private static func reason(_ requests: [RequestFacts]) -> String {
    guard let value = requests.lazy.compactMap({ $0.field("Connection") }).first else { return "" }
    return value.lowercased().contains("close") ? " (Connection: close)" : ""
  }

  /// Returns how often a connection was opened although another one must have been idle for only a moment, and how often
  /// one was needed while another one must have been idle.
  ///
  /// A connection counts as idle from a little after a complete answer, because it takes a moment until the next
  /// request can have it, up to one second: servers may close those that are idle for longer. The connection of an error
  /// is not idle afterwards: servers may end that one.
  private static func unannouncedClosings(_ requests: [RequestFacts]) -> (dropped: Int, chances: Int) {
    let (delay, patience) = (Duration.milliseconds(5), Duration.seconds(1))
    var (dropped, chances) = (0, 0)
    func hasSucceeded(_ request: RequestFacts) -> Bool { (200...399).contains(request.metrics?.status ?? 0) }
    var ends = requests.filter {
      $0.isComplete && hasSucceeded($0) && $0.metrics?.closesConnection == false
    }.compactMap(\.ended).sorted()
    for request in requests.sorted(by: { $0.began < $1.began }) {
      guard let isReused = request.metrics?.reusedConnection else { continue }
      let (earliest, latest) = (request.began - patience, request.began - delay)
      if isReused, !hasSucceeded(request) {
        // The error took the connection of the answer before it along.
        if let taken = ends.lastIndex(where: { $0 <= request.began }) { ends.remove(at: taken) }
        continue
      }
      guard hasSucceeded(request), let idle = ends.lastIndex(where: { $0 < latest && $0 > earliest }) else {
        continue
      }
      ends.remove(at: idle)
      chances += 1
      // With redirects and repetitions, it was not the first request that needed a connection.
      if !isReused, request.metrics?.requestCount == 1 { dropped += 1 }
    }
    return (dropped, chances)
  }

  // MARK: - Broken answers

  /// Answers that broke off, whose rest came with another request.
  private static func brokenAnswers(_ requests: [RequestFacts], _ facts: StreamFacts) -> [Finding] {
    var seen: Set<StartBytes> = []
    let broken = requests.filter { request in
      guard !request.breaks.isEmpty, request.isComplete,
        seen.insert(
          StartBytes(
            url: request.url.absoluteString, range: request.range ?? ByteRange(offset: 0, length: nil))
        )
        .inserted
      else { return false }
      switch request.purpose {
      case .segment, .initialization, .source, .manifest: return true
      case .key, .clock, .resource: return false
      }
    }
    guard let first = broken.first, let position = first.breaks.first else { return [] }
    let place = segment(of: first, in: facts)
    let what =
      place.map { "segment \($0.index + 1)" }
      ?? (first.purpose == .initialization
        ? "the initialization" : facts.isFile ? "the file" : "the manifest")
    let size = first.size.map { " of \($0)" } ?? ""
    let count = broken.count > 1 ? "\(broken.count) answers broke off, the first" : "the answer broke off"
    var finding = Finding(
      .segmentTruncated, nil, .warning,
      rung: place.map { facts.rungs[$0.rung].name },
      segment: place.map { $0.index + 1 }, url: first.url.reelText,
      "\(what): \(count) after \(position)\(size) bytes, and the rest came with another request (Range); players that do not resume lose it",
      fix: "check why the server, or a proxy in front of it, ends connections early")
    if place != nil { finding.naming = .segmentFirst }
    finding.evidence = [
      ("count", .integer(broken.count)), ("bytes", .integer(position)),
      ("resumed", .flag(true)),
    ]
    if let size = first.size { finding.evidence.append(("promised_bytes", .integer(size))) }
    let lost = broken.reduce(0.0) { sum, request in
      guard let size = request.size, size > 0, let position = request.breaks.first else { return sum }
      let duration =
        segment(of: request, in: facts).map { place in
          let range = facts.rungs[place.rung].shownRange(of: facts.rungs[place.rung].segments[place.index])
          return range.upperBound - range.lowerBound
        } ?? (facts.isFile ? facts.duration ?? 0 : 0)
      return sum + duration * Double(max(0, size - position)) / Double(size)
    }
    if lost > 0 { finding.costs = [FindingCost(.lost, seconds: lost)] }
    return [finding]
  }

  private static func segment(
    of request: RequestFacts, in facts: StreamFacts
  ) -> (rung: Int, index: Int)? {
    guard request.purpose == .segment else { return nil }
    for (rung, facts) in facts.rungs.enumerated() {
      let index = facts.segments.firstIndex {
        $0.url == request.url && ($0.byteRange?.offset ?? 0) == (request.range?.offset ?? 0)
      }
      if let index { return (rung, index) }
    }
    return nil
  }

  // MARK: - Ranges

  private static func refusedRanges(_ requests: [RequestFacts], _ facts: StreamFacts) -> [Finding] {
    let refused = requests.filter(\.isRefusedRange)
    let honoured = requests.contains { $0.metrics?.status == 206 }
    if facts.isManifest {
      guard facts.hasRanges, let first = refused.first(where: { $0.purpose != .source }) else { return [] }
      var finding = Finding(
        .noRanges, nil, .error, url: first.url.reelText,
        "the manifest lists byte ranges, and the server sends the whole resource (200) for \(refused.count) of \(requests.count(where: { $0.range != nil })) range requests",
        fix: "serve ranges (Accept-Ranges: bytes, 206), also at the CDN, or list one file for each segment")
      finding.evidence = [("requests", .integer(refused.count))]
      finding.change = .serveRanges(url: first.url.reelText)
      return [finding]
    }
    guard facts.isFile else { return [] }
    let source = requests.first { $0.purpose == .source && $0.isSuccess }
    let isDenied = source?.field("Accept-Ranges")?.lowercased() == "none"
    guard let example = refused.first ?? (isDenied && !honoured ? source : nil) else { return [] }
    var finding = Finding(
      .noRanges, nil, .warning, url: (source ?? example).url.reelText,
      refused.isEmpty
        ? "the server says that it serves no ranges (Accept-Ranges: none): players can't seek, or fetch the index alone"
        : "the server sends the whole file (200) for a byte range: players can't seek, or fetch the index alone",
      fix: "serve ranges (Accept-Ranges: bytes, 206), also at the CDN")
    finding.evidence = [
      ("requests", .integer(refused.count)),
      ("accept_ranges", .text(source?.field("Accept-Ranges") ?? "")),
    ]
    finding.change = .serveRanges(url: (source ?? example).url.reelText)
    return [finding]
  }

  // MARK: - Header fields

  private static func headers(_ requests: [RequestFacts], _ facts: StreamFacts) -> [Finding] {
    let answers = requests.filter(\.isSuccess)
    let lists = facts.isManifest ? answers.filter { $0.purpose == .source || $0.purpose == .manifest } : []
    // Pages instead of segments are found as such.
    let broken = Set(
      facts.rungs.flatMap { rung in
        rung.samples.values.compactMap { sample in
          sample.failure != nil && rung.segments.indices.contains(sample.index)
            ? rung.segments[sample.index].url : nil
        }
      })
    let media = answers.filter { request in
      guard !broken.contains(request.url) else { return false }
      return request.purpose == .segment || request.purpose == .initialization
        || facts.isFile && request.purpose == .source
    }
    return wrongTypes(lists, media, facts) + encodings(media, facts) + lengths(answers, media, facts)
  }

  private static func wrongTypes(
    _ lists: [RequestFacts], _ media: [RequestFacts], _ facts: StreamFacts
  ) -> [Finding] {
    var findings: [Finding] = []
    func add(_ some: [RequestFacts], _ level: FindingLevel, _ what: String, _ type: String, _ fix: String) {
      let number = Set(some.map(\.url)).count
      var finding = Finding(
        .responseHeaders, "type", level, url: some.first?.url.reelText,
        "\(number.counted(what)) \(number == 1 ? "has" : "have") the Content-Type \(type)", fix: fix)
      finding.evidence = [("content_type", .text(type)), ("answers", .integer(some.count))]
      findings.append(finding)
    }
    let listType = facts.format == "dash" ? "application/dash+xml" : "application/vnd.apple.mpegurl"
    let listName = facts.format == "dash" ? "manifest" : "playlist"
    for (type, some) in grouped(lists) {
      if type.contains("html") {
        add(some, .warning, listName, type, "serve it as \(listType)")
      } else if facts.format == "hls",
        type.hasPrefix("text/") || type.hasSuffix("json") || type.hasSuffix("xml")
      {
        // Players look at the text, and Safari at the extension too.
        add(some, .note, listName, type, "serve it as \(listType) (Apple HLS authoring 10.4)")
      }
    }
    for (type, some) in grouped(media) where type != "text/vtt" {
      let isText =
        type.hasPrefix("text/") || type == "application/json" || type.contains("html")
        || type == "application/xml"
      guard isText else { continue }
      // Tables of media types know .ts as Qt's translations, and no player minds.
      let isMistaken = type.hasPrefix("text/vnd.")
      add(
        some, isMistaken ? .note : .warning, facts.isManifest ? "segment" : "file", type,
        "serve media as its type, such as video/mp4, video/mp2t or audio/mp4")
    }
    return findings
  }

  private static func encodings(_ media: [RequestFacts], _ facts: StreamFacts) -> [Finding] {
    let codings: Set = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress"]
    let encoded = media.filter { request in
      let value = request.field("Content-Encoding")?.lowercased() ?? ""
      return value.split(separator: ",").contains {
        codings.contains($0.trimmingCharacters(in: .whitespaces))
      }
    }
    guard let first = encoded.first else { return [] }
    let coding = first.field("Content-Encoding") ?? ""
    var finding = Finding(
      .responseHeaders, "encoding", .warning, url: first.url.reelText,
      "\(encoded.count.counted("answer")) with media \(encoded.count == 1 ? "is" : "are") compressed (Content-Encoding: \(coding)), which saves nothing, and forbids ranges",
      fix: "turn off compression for media; keep it for playlists")
    finding.evidence = [("content_encoding", .text(coding)), ("answers", .integer(encoded.count))]
    // A compressed file arrives as a whole; segments do in any case.
    if !facts.isManifest { finding.change = .serveRanges(url: first.url.reelText) }
    return [finding]
  }

  private static func lengths(
    _ answers: [RequestFacts], _ media: [RequestFacts], _ facts: StreamFacts
  ) -> [Finding] {
    var findings: [Finding] = []
    let whole = answers.filter { $0.isComplete && $0.method == .get && $0.range == nil && $0.isPlain }
    var sizes: [URL: Int64] = [:]
    for request in whole { sizes[request.url] = request.metrics?.byteCount }
    let wrong = answers.first { request in
      guard !facts.isLive, request.method == .head, request.isPlain, let stated = request.statedByteCount,
        let size = sizes[request.url]
      else { return false }
      return stated != size
    }
    if let wrong, let stated = wrong.statedByteCount, let size = sizes[wrong.url] {
      var finding = Finding(
        .responseHeaders, "length", .warning, url: wrong.url.reelText,
        "the Content-Length of HEAD is \(stated), and GET delivers \(size) bytes",
        fix: "state the same length for HEAD and GET")
      finding.evidence = [("head_bytes", .integer(stated)), ("get_bytes", .integer(size))]
      findings.append(finding)
    }
    // Live segments may be sent while they are made.
    let unstated = media.filter {
      $0.method == .get && $0.isComplete && $0.isPlain && $0.field("Content-Length") == nil
    }
    if !facts.isLive, let first = unstated.first {
      var finding = Finding(
        .responseHeaders, "length", .note, url: first.url.reelText,
        "\(unstated.count.counted("answer")) with media \(unstated.count == 1 ? "has" : "have") no Content-Length, so players can't tell whether one was cut off",
        fix: "state the Content-Length of files")
      finding.evidence = [("answers", .integer(unstated.count))]
      findings.append(finding)
    }
    return findings
  }

  // MARK: - Private

  /// The requests by media type in lower case without parameters, in order of the first of each; those without one are
  /// left out.
  private static func grouped(_ requests: [RequestFacts]) -> [(type: String, requests: [RequestFacts])] {
    var groups: [(type: String, requests: [RequestFacts])] = []
    for request in requests {
      let type = (request.contentType ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
        .lowercased()
      guard !type.isEmpty else { continue }
      if let index = groups.firstIndex(where: { $0.type == type }) {
        groups[index].requests.append(request)
      } else {
        groups.append((type, [request]))
      }
    }
    return groups
  }

  private static func milliseconds(_ seconds: Double) -> String { "\(Int((seconds * 1000).rounded())) ms" }
}

// MARK: - Unreachable

extension TransportFindings {
  /// Returns the finding for a source that can't be opened.
  ///
  /// - Parameters:
  ///   - error: The error of opening it.
  ///   - source: The name of the source.
  ///   - requests: The requests that were sent, and their answers.
  ///   - beginning: The first bytes of the source's body, if there were any.
  package static func unreachable(
    _ error: ReelError, source: String, requests: [RequestFacts] = [], beginning: [UInt8] = []
  ) -> Finding {
    var finding: Finding
    let status = error.status ?? requests.last?.metrics?.status
    switch kind(of: error) {
    case "status":
      finding = Finding(
        .unreachable, "status", .error, url: error.location ?? source, refusal(error), fix: fix(error))
    case "tls":
      finding = Finding(
        .unreachable, "tls", .error, url: error.location ?? source, error.reason,
        fix: error.advice ?? "install a certificate for this host that players trust")
    case "network":
      let began = requests.last?.metrics?.status
      finding = Finding(
        .unreachable, "network", .error, url: error.location ?? source, error.reason,
        fix: began.map {
          "check why the server does not send the rest of its answer, which began with status \($0)"
        }
          ?? error.advice ?? "check that the server runs and is reachable from here")
    default:
      let what = page(beginning).map { "the answer is \($0), not media" } ?? error.reason
      finding = Finding(
        .unreachable, "not-media", .error, url: error.location ?? source, what,
        fix: page(beginning) == nil
          ? "use the URL of a playlist, an MPD or a media file"
          : "use the URL of the media, and send its credentials (--header, --cookie-file)")
    }
    if let status { finding.evidence.append(("status", .integer(status))) }
    finding.evidence.append(("error", .text(error.kind.rawValue)))
    let attempts = requests.last.map { $0.failedAttempts.count + 1 } ?? 0
    if attempts > 1 { finding.evidence.append(("attempts", .integer(attempts))) }
    return finding
  }

  /// True if nothing is known of the stream, because no host answered any request, or next to nothing of an answer came
  /// in time.
  ///
  /// - Parameter now: The time since the check began.
  package static func isSilence(_ error: ReelError, requests: [RequestFacts], at now: Duration) -> Bool {
    guard isUnanswered(error) else { return false }
    guard error.kind == .timedOut else { return !requests.contains { $0.metrics?.status != nil } }
    return requests.allSatisfy { request in
      !request.isComplete && request.failedAttempts.allSatisfy(isUnanswered)
        && (200...299).contains(request.metrics?.status ?? 200)
        && isSilence(Int(clamping: request.receivedByteCount), within: (request.ended ?? now) - request.began)
    }
  }

  /// True if so few bytes are no answer.
  static func isSilence(_ byteCount: Int, within time: Duration) -> Bool {
    Double(byteCount) < 1000 * (time / .seconds(1))
  }

  /// True for an error of a request that no server answered in time.
  static func isUnanswered(_ error: ReelError) -> Bool {
    (error.kind == .network || error.kind == .timedOut) && !isTLS(error)
  }

  // MARK: - Private

  private static func kind(of error: ReelError) -> String {
    switch error.kind {
    case .server, .noSuchFile: "status"
    case .network, .timedOut: isTLS(error) ? "tls" : "network"
    default: "not-media"
    }
  }

  private static func isTLS(_ error: ReelError) -> Bool {
    guard error.kind == .network, !error.isTemporary || error.reason.contains("TLS") else { return false }
    return error.reason.contains("TLS") || error.reason.contains("certificate")
  }

  private static func refusal(_ error: ReelError) -> String {
    switch error.status {
    case 401: "\(error.reason): the server wants a login"
    case 403: "\(error.reason): the server refuses this client"
    case 451: "\(error.reason): the server refuses this location for legal reasons"
    default: error.reason
    }
  }

  private static func fix(_ error: ReelError) -> String {
    switch error.status {
    case 401, 403:
      "send credentials (--header, --header-host, --cookie-file), or use a URL that has not expired"
    case 451: "run the check where the stream may be watched"
    case 404, 410: "correct the URL, or publish the stream again"
    case let status? where status >= 500: "look at the server's log: the fault is there"
    default: error.advice ?? "correct the path or the URL"
    }
  }

  /// Returns what a page is: `an HTML page titled "Sign in"`; nil for something else.
  private static func page(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    let lower = text.lowercased()
    guard lower.contains("<html") || lower.contains("<!doctype html") else { return nil }
    guard let start = lower.firstRange(of: "<title")?.upperBound,
      let open = lower[start...].firstIndex(of: ">"),
      let end = lower[open...].firstRange(of: "</title")?.lowerBound
    else { return "an HTML page" }
    // Lower case may change the number of characters, so the title is taken from that text only if it did not.
    let range = lower.index(after: open)..<end
    let offset = lower.utf8.distance(from: lower.startIndex, to: range.lowerBound)
    let length = lower.utf8.distance(from: range.lowerBound, to: range.upperBound)
    let source = lower.utf8.count == text.utf8.count ? Array(text.utf8) : Array(lower.utf8)
    let title = String(decoding: source[offset..<offset + length], as: UTF8.self)
      .split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return title.isEmpty
      ? "an HTML page" : "an HTML page titled \"\(title.withoutUserInformation.prefix(80))\""
  }
}

extension StreamFacts {
  /// True for HLS and DASH.
  var isManifest: Bool { presentation != nil || format == "hls" || format == "dash" }

  /// True for a media file. False too if the source could not be opened, so that nothing is known of it.
  var isFile: Bool { !isManifest && !format.isEmpty }

  /// True if a manifest lists byte ranges of resources.
  fileprivate var hasRanges: Bool {
    rungs.contains { rung in
      rung.segments.contains { $0.byteRange != nil || $0.initialization?.byteRange != nil }
    }
  }
}

extension RequestFacts {
  /// The size of the body in bytes; nil if unknown.
  fileprivate var size: Int64? { statedByteCount ?? (isComplete ? metrics?.byteCount : nil) }

  /// True if a part was asked for, and the whole resource was sent, which is larger.
  fileprivate var isRefusedRange: Bool {
    guard let range, metrics?.status == 200, method == .get, isPlain else { return false }
    if range.offset > 0 { return true }
    guard let length = range.length else { return false }
    return max(statedByteCount ?? 0, metrics?.byteCount ?? 0) > length
  }

  /// True if the body was sent as it is.
  fileprivate var isPlain: Bool {
    let coding = field("Content-Encoding")?.lowercased()
    return coding == nil || coding == "identity"
  }
}

extension Duration {
  fileprivate var inSeconds: Double { self / .seconds(1) }
}

extension URL {
  /// The URL without user name and password, for reports.
  fileprivate var reelText: String { absoluteString.withoutUserInformation }
}
