internal import Foundation
package import ReelCore
internal import ReelModels

/// The first line of a recording that `reel serve --record` writes: what was served, over which link, and when.
///
/// All times of a recording are milliseconds since it began, except for those of a player's own clock.
package struct RecordedRun: Codable, Sendable, Hashable {
  /// The link that the server modelled.
  package struct Link: Codable, Sendable, Hashable {
    /// As it was given, such as `10Mbit/50ms`.
    package var text: String
    package var bitsPerSecond: Int64
    package var roundTripMs: Double

    package init(text: String, bitsPerSecond: Int64, roundTripMs: Double) {
      self.text = text
      self.bitsPerSecond = bitsPerSecond
      self.roundTripMs = roundTripMs
    }
  }

  package struct Item: Codable, Sendable, Hashable {
    /// Its path in the folder, or the end of its path in the feed.
    package var name: String
    /// The path at which it was served.
    package var path: String

    package init(name: String, path: String) {
      self.name = name
      self.path = path
    }
  }

  /// The version of the format that this program writes and reads.
  package static let currentVersion = 1

  package var kind = "run"
  package var version = Self.currentVersion
  package var startedAt: String
  /// The folder or the feed file, as it was given to the server.
  package var source: String?
  package var items: [Item]
  /// Nil if no link was modelled.
  package var link: Link?

  package init(startedAt: String, source: String? = nil, items: [Item], link: Link?) {
    self.startedAt = startedAt
    self.source = source
    self.items = items
    self.link = link
  }
}

package struct RecordedRequest: Codable, Sendable, Hashable {
  package var kind = "request"
  package var receivedMs: Double
  package var firstByteMs: Double?
  /// Nil if the answer was not sent completely.
  package var lastByteMs: Double?
  package var bytes: Int64
  package var method: String
  package var path: String
  package var query: [String]?
  package var range: String?
  package var status: Int?
  /// A hash of the client's address, which differs from recording to recording.
  package var client: String?
  package var connection: Int
  /// The playback of the page that made the request.
  package var playback: String?
  package var cmcd: CMCD?

  package init(receivedMs: Double, bytes: Int64, method: String, path: String, connection: Int) {
    self.receivedMs = receivedMs
    self.bytes = bytes
    self.method = method
    self.path = path
    self.connection = connection
  }
}

/// What a player reports: the start of a playback, a swipe, or the end.
///
/// A player posts it as JSON with keys in snake_case; unknown keys are ignored. Waits are counted from the swipe. `sentMs`
/// and `swipeMs` are times of the player's clock, whatever its zero is.
package struct PlayerReport: Codable, Sendable, Hashable {
  package enum Kind: String, Codable, Sendable { case start, swipe, end }

  package struct Stall: Codable, Sendable, Hashable {
    package var atMs: Double
    package var durationMs: Double
  }

  package var kind: Kind
  package var playback: String
  /// The time at which the report was sent.
  package var sentMs: Double

  // MARK: Of a start

  /// The player, such as `hls.js 1.5.0`, and the program or device that it runs in.
  package var player: String?
  package var agent: String?
  /// The number of items that are loaded ahead.
  package var preload: Int?

  // MARK: Of a swipe

  /// The number of the swipe; 0 is the first item of a playback.
  package var number: Int?
  package var item: String?
  /// The end of the drag.
  package var swipeMs: Double?
  package var dragMs: Double?
  package var firstFrameMs: Double?
  package var secondFrameMs: Double?
  /// The time until the viewer left the item.
  package var leftMs: Double?
  package var stalls: [Stall]?
  /// True if the item had a decoded frame at the end of the drag.
  package var ready: Bool?
  /// Why the item could not be played.
  package var failure: String?

  // MARK: Added by the server

  package var receivedMs: Double?
  package var client: String?
  /// What has to be added to a time of the player's clock for the server's; too large by the time that the report took.
  package var clockOffsetMs: Double?

  /// Reads and checks a report.
  ///
  /// - Throws: `ReelError` of kind `usage`, which says what is wrong with it.
  package init(json: [UInt8]) throws(ReelError) {
    do {
      self = try RecordedLine.decoder.decode(PlayerReport.self, from: Data(json))
    } catch {
      throw ReelError(.usage, "the report can't be read: \(RecordedLine.reason(of: error))")
    }
    (receivedMs, client, clockOffsetMs) = (nil, nil, nil)
    try check()
    player = player.map(Self.recorded)
    agent = agent.map(Self.recorded)
    failure = failure.map(Self.recorded)
  }

  // MARK: - Private

  private static let textLimit = 300

  /// The beginning of a text, without the queries of URLs in it.
  private static func recorded(_ text: String) -> String {
    String(text.replacing(/\?[^\s"'<>]+/, with: "?").prefix(textLimit))
  }
  private static let preloadLimit = 100
  private static let stallLimit = 1_000
  /// A time of a clock that counts from 1970, with room.
  private static let timeLimit = 1e14

  /// Throws `ReelError` of kind `usage` for a value out of range.
  func check() throws(ReelError) {
    guard (1...64).contains(playback.utf8.count),
      playback.utf8.allSatisfy({ "-._".utf8.contains($0) || $0.isLetterOrDigit })
    else { throw ReelError(.usage, "playback takes 1 to 64 letters, digits, dots, hyphens and underscores") }
    let stalls = stalls ?? []
    guard stalls.count <= Self.stallLimit else {
      throw ReelError(.usage, "more than \(Self.stallLimit) stalls")
    }
    var times: [(name: String, time: Double?)] = [
      ("sent_ms", sentMs), ("swipe_ms", swipeMs), ("drag_ms", dragMs), ("first_frame_ms", firstFrameMs),
      ("second_frame_ms", secondFrameMs), ("left_ms", leftMs),
    ]
    for stall in stalls { times += [("stalls.at_ms", stall.atMs), ("stalls.duration_ms", stall.durationMs)] }
    for (name, time) in times where time.map({ !(0...Self.timeLimit).contains($0) }) ?? false {
      throw ReelError(.usage, "\(name) is not a time in milliseconds")
    }
    guard (0...Self.preloadLimit).contains(preload ?? 0) else {
      throw ReelError(.usage, "preload is from 0 to \(Self.preloadLimit)")
    }
    guard abs(clockOffsetMs ?? 0) <= Self.timeLimit else {
      throw ReelError(.usage, "clock_offset_ms is not a difference of times")
    }
    guard kind == .swipe else { return }
    guard item != nil else { throw ReelError(.usage, "a swipe has no item") }
    guard let swipeMs else { throw ReelError(.usage, "a swipe has no swipe_ms") }
    let ends = [firstFrameMs ?? 0, secondFrameMs ?? 0, leftMs ?? 0] + stalls.map { $0.atMs + $0.durationMs }
    // Browsers round their clocks.
    guard swipeMs + (ends.max() ?? 0) <= sentMs + 2 else {
      throw ReelError(.usage, "the report was sent before what it reports")
    }
    guard (firstFrameMs ?? 0) <= (secondFrameMs ?? .infinity) else {
      throw ReelError(.usage, "second_frame_ms is before first_frame_ms")
    }
  }
}

/// A line of a recording after the first one.
package enum RecordedLine: Sendable, Hashable {
  case request(RecordedRequest)
  /// A report; with the time of its swipe, if it is one, on the server's clock.
  case report(PlayerReport, swipeMs: Double?)

  static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
  }

  /// Returns what is wrong with JSON that could not be decoded.
  static func reason(of error: any Error) -> String {
    // The decoder does not say where a number has another form.
    if case .dataCorrupted(let context)? = error as? DecodingError, context.codingPath.isEmpty {
      return "not JSON, or with a number of another form"
    }
    return (error as? DecodingError).map { ReelError($0).reason } ?? (error as? ReelError)?.reason
      ?? "\(error)"
  }
}

extension UInt8 {
  fileprivate var isLetterOrDigit: Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
  }
}
