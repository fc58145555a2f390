package import Foundation
package import ReelCore
package import ReelManifest
package import Testing

/// Where the manifests of tests come from.
package let manifestURL =
  URL(string: "https://origin.example/a/b/manifest?token=1") ?? URL(fileURLWithPath: "/")

/// The presentation of a playlist given as lines.
package func hlsPresentation(
  _ text: String, url: URL = manifestURL, limits: ManifestLimits = ManifestLimits()
) throws(ReelError) -> Presentation {
  try ManifestReader(limits: limits).presentation(from: Array(text.utf8), format: .hls, url: url)
}

/// The segments of a media playlist given as text.
package func mediaPlaylist(
  _ text: String, url: URL = manifestURL, limits: ManifestLimits = ManifestLimits(),
  variables: [String: String] = [:]
) throws(ReelError) -> MediaPlaylistSegments {
  try ManifestReader(limits: limits).mediaPlaylist(from: Array(text.utf8), url: url, variables: variables)
}

/// The presentation of an MPD given as text, at the time `now`.
package func dashPresentation(
  _ text: String, url: URL = manifestURL, limits: ManifestLimits = ManifestLimits(), now: WallTime = .now
) throws(ReelError) -> Presentation {
  try ManifestReader(limits: limits).presentation(from: Array(text.utf8), format: .dash, url: url, now: now)
}

/// An MPD of one period; `attributes` replace those of the MPD element.
package func mpd(
  _ content: String, attributes: String = #"type="static" mediaPresentationDuration="PT20S""#,
  period: String = ""
) -> String {
  """
  <?xml version="1.0" encoding="UTF-8"?>
  <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(attributes)>
    <Period \(period)>\(content)</Period>
  </MPD>
  """
}

/// A video adaptation set with one representation, `v1` at 1 Mbit/s, around `segments`.
package func videoSet(_ segments: String, attributes: String = "", representation: String = "") -> String {
  """
  <AdaptationSet mimeType="video/mp4" \(attributes)>\(segments)
  <Representation id="v1" bandwidth="1000000" codecs="avc1.64001f" width="720" height="1280">\(representation)
  </Representation></AdaptationSet>
  """
}

extension Presentation {
  /// The segments of a rung of the first period, in the group and at the place asked for.
  package func segments(period: Int = 0, group: Int = 0, rung: Int = 0) throws -> SegmentList {
    let groups = try #require(periods.dropFirst(period).first).trackGroups
    let rungs = try #require(groups.dropFirst(group).first).rungs
    return try #require(rungs.dropFirst(rung).first?.media.segments)
  }
}

extension Rung.Media {
  package var segments: SegmentList? {
    guard case .segments(let list) = self else { return nil }
    return list
  }

  package var playlist: String? {
    guard case .playlist(let url) = self else { return nil }
    return url.absoluteString
  }

  package var index: SegmentIndexReference? {
    guard case .index(let reference) = self else { return nil }
    return reference
  }
}

extension SegmentList {
  package var urls: [String] { map(\.url.absoluteString) }
  package var starts: [MediaTime] { map(\.start) }
  package var durations: [MediaTime] { map(\.duration) }
}

/// The error that `body` throws; an issue where it throws none, or one of another kind.
package func manifestError(
  _ kind: ReelError.Kind = .badManifest, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> Void
) -> ReelError? {
  do {
    try body()
    Issue.record("no error was thrown", sourceLocation: sourceLocation)
  } catch let error as ReelError {
    #expect(error.kind == kind, sourceLocation: sourceLocation)
    return error
  } catch {
    Issue.record("another error: \(error)", sourceLocation: sourceLocation)
  }
  return nil
}
