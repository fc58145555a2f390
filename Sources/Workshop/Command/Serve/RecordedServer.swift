import Foundation
import HTTPTypes
import ReelCore
import ReelLab
import ReelSimulation
import ReelTesting

/// What `reel serve` adds to an origin: the page `/-/feed`, reports of players, and a recording.
struct RecordedServer: Sendable {
  private let feed: ServedFeed
  /// Nil if nothing is recorded.
  let recording: RecordingWriter?

  /// - Parameters:
  ///   - source: The folder or the feed file, as the user wrote it.
  ///   - path: The recording to write; nil for none.
  ///   - link: The link and its text.
  init(
    _ feed: ServedFeed, of source: String, recordingTo path: String?, link: (text: String, spec: LinkSpec)?
  ) throws(ReelError) {
    self.feed = feed
    guard let path else {
      recording = nil
      return
    }
    let link = link.map {
      RecordedRun.Link(
        text: $0.text, bitsPerSecond: $0.spec.bitsPerSecond, roundTripMs: $0.spec.roundTripTime.milliseconds)
    }
    let run = RecordedRun(
      startedAt: Date.now.ISO8601Format(), source: source, items: feed.items, link: link)
    recording = try RecordingWriter(path: path, run: run)
  }

  /// Adds the page, reports and the recording to the settings of an origin.
  ///
  /// - Parameter scripts: The content of the player's scripts.
  func prepare(_ configuration: inout Origin.Configuration, scripts: [[UInt8]]) throws(ReelError) {
    var paths: [String] = []
    for (index, script) in scripts.enumerated() {
      paths.append("/-/script/\(index).js")
      configuration.routes[paths[index]] = Origin.Response(script)
    }
    let page = try FeedPage.html(feed.items, scripts: paths, reports: recording != nil)
    configuration.routes["/-/feed"] = Origin.Response(
      page, contentType: "text/html; charset=utf-8", headers: [.cacheControl: "no-store"])
    configuration.resourcePath = { Self.split($0).path }
    configuration.file = { [feed] in feed.file(at: $0) }
    guard let recording else { return }
    configuration.observer = { request in
      if let line = Self.line(of: request, client: recording.client(request.client)) { recording.add(line) }
    }
    configuration.receiver = { request, body in
      guard request.path == "/-/report" else { return nil }
      do throws(RecordingWriter.Refusal) {
        try recording.add(reportOf: body, from: request.client, at: request.arrival)
        return Origin.Response("", status: 204)
      } catch {
        return Origin.Response(
          error.reason + "\n", contentType: "text/plain; charset=utf-8", status: error.status)
      }
    }
  }

  /// Returns the playback that a path belongs to, if it is one of the page, and the path of the file.
  static func split(_ path: String) -> (playback: String?, path: String) {
    guard path.hasPrefix(FeedPage.playbackPrefix) else { return (nil, path) }
    let rest = path.dropFirst(FeedPage.playbackPrefix.count)
    let name = rest.prefix { $0 != "/" }
    // Behind a ~ is how often the feed has begun anew.
    return (String(name.prefix { $0 != "~" }), String(rest.dropFirst(name.count)))
  }

  /// Returns the line of a request; nil for those of the page itself.
  ///
  /// It has no values of the query, and of the header fields only the range and CMCD.
  static func line(of request: RequestRecord, client: String?) -> RecordedRequest? {
    guard !request.path.hasPrefix("/-/") else { return nil }
    let (target, query) = request.target.splitAtQuery
    var line = RecordedRequest(
      receivedMs: request.arrival.milliseconds, bytes: request.bodyBytesSent,
      method: String(request.method.prefix(20)),
      path: String(request.path.prefix { $0 != "?" }.prefix(2_000)), connection: request.connection)
    line.firstByteMs = request.firstByteSent?.milliseconds
    line.lastByteMs = request.lastByteSent?.milliseconds
    let names = QueryNames.all(in: query)
    line.query = names.isEmpty ? nil : names
    line.range = request.range.map { String($0.prefix(100)) }
    line.status = request.status
    line.client = client
    line.playback = split(target.removingPercentEncoding ?? "").playback.map { String($0.prefix(64)) }
    line.cmcd = CMCD(headers: request.headers.map { ($0.name.canonicalName, $0.value) }, query: query)
    return line
  }
}

extension String {
  /// The parts of a request's target before and after the question mark.
  fileprivate var splitAtQuery: (path: String, query: Substring) {
    let target = prefix { $0 != "#" }
    guard let mark = target.firstIndex(of: "?") else { return (String(target), "") }
    return (String(target[..<mark]), target[target.index(after: mark)...])
  }
}
