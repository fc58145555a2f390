import Foundation
import Logging
import ReelCore
import ReelGateway
import ReelManifest
import ReelTesting
import ReelTestSupport
import Testing

/// The presentation of an MPD, with the segments of every file whose index it names.
func presentation(
  at url: URL, fetcher: any Fetching = makeFetcher(attempts: 1)
) async throws -> Presentation {
  let bytes = try await fetcher.fetch(FetchRequest(url: url, purpose: .manifest)).body.collect(upTo: 1 << 20)
  let reader = ManifestReader()
  var presentation = try reader.presentation(from: bytes, format: .dash, url: url)
  for period in presentation.periods.indices {
    for group in presentation.periods[period].trackGroups.indices {
      for rung in presentation.periods[period].trackGroups[group].rungs.indices {
        guard case .index(let reference) = presentation.periods[period].trackGroups[group].rungs[rung].media
        else { continue }
        let range = reference.indexRange ?? ByteRange(offset: 0, length: 1 << 16)
        let index = try await fetcher.fetch(
          FetchRequest(url: reference.url, range: range, purpose: .initialization)
        ).body.collect(upTo: 1 << 20)
        presentation.periods[period].trackGroups[group].rungs[rung].media = .segments(
          try reader.segments(fromIndex: index, at: range.offset, of: reference))
      }
    }
  }
  return presentation
}

/// Runs `body` with a gateway, which is stopped at the end.
func withGateway<Result>(
  _ presentation: Presentation, isProxy: Bool = false, fetcher: any Fetching = makeFetcher(attempts: 1),
  _ body: (Gateway) async throws -> Result
) async throws -> Result {
  let gateway = try await Gateway.start(
    VirtualHLS(presentation),
    configuration: Gateway.Configuration(delivery: isProxy ? .relayed : .redirected), fetcher: fetcher,
    logger: silentLogger)
  do {
    let result = try await body(gateway)
    await gateway.stop()
    return result
  } catch {
    await gateway.stop()
    throw error
  }
}

/// Runs `body` with a gateway for the MPD in this folder of the fixtures, and the origin that it is at.
func withFixture(
  _ name: String, isProxy: Bool = false, _ body: (Gateway, Origin) async throws -> Void
) async throws {
  try await Origin.use { origin in
    let presentation = try await presentation(at: origin.url("\(name)/manifest.mpd"))
    try await withGateway(presentation, isProxy: isProxy) { try await body($0, origin) }
  }
}

extension Gateway {
  /// The URL of a path with its query, as it is.
  func url(_ path: String) -> URL {
    URL(string: "http://127.0.0.1:\(port)\(path)") ?? url
  }

  /// The URL of the first resource of a kind (`init`, `file`, `key`) that the playlist of a track names.
  func url(of kind: String, in track: String) async throws -> URL {
    let text = try await http(url("/media/\(track)/index.m3u8")).text
    let start = try #require(text.firstRange(of: "\(kind)-")).lowerBound
    let name = text[start...].prefix { $0 != "\"" && $0 != "\n" }
    return url("/media/\(track)/\(name)")
  }
}

extension Presentation {
  /// The same with other segments.
  func mapSegments(_ body: @escaping @Sendable (SegmentReference) -> SegmentReference) -> Presentation {
    var copy = self
    for period in periods.indices {
      for group in periods[period].trackGroups.indices {
        for rung in periods[period].trackGroups[group].rungs.indices {
          guard case .segments(let list) = periods[period].trackGroups[group].rungs[rung].media else {
            continue
          }
          copy.periods[period].trackGroups[group].rungs[rung].media = .segments(
            SegmentList(count: list.count, end: list.end) { body(list[$0]) })
        }
      }
    }
    return copy
  }
}
