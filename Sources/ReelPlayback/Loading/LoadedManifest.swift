public import Foundation
public import ReelCore
public import ReelManifest

/// A manifest with all that it refers to read, and nothing of its media.
public struct LoadedManifest: Sendable {
  /// The text of one manifest.
  public struct Document: Sendable {
    public let bytes: [UInt8]
    public let format: ManifestFormat
    /// Where it came from, after redirects.
    public let url: URL
  }

  /// A rung whose segments could not be found.
  public struct Failure: Sendable {
    public let periodIndex: Int
    public let groupIndex: Int
    public let rungIndex: Int
    public let error: ReelError
  }

  /// The media of each rung are segments, but for those that failed, which stay as the manifest has them.
  public internal(set) var presentation: Presentation
  /// Where the manifest came from, after redirects.
  public internal(set) var url: URL
  /// The manifest first, then the media playlists that it names, in the order in which they came.
  public internal(set) var documents: [Document] = []
  public internal(set) var failures: [Failure] = []
  /// True where the segments of any rung are known.
  public var hasSegments: Bool {
    presentation.periods.contains { period in
      period.trackGroups.contains { group in
        group.rungs.contains { rung in
          if case .segments = rung.media { true } else { false }
        }
      }
    }
  }

  /// Fetches what the manifest names and nothing else that a server must not reach.
  public internal(set) var fetcher: any Fetching
}

extension LoadedManifest {
  mutating func take(_ found: RungSegments, at place: (Int, Int, Int)) {
    presentation.periods[place.0].trackGroups[place.1].rungs[place.2].media = .segments(found.list)
    guard presentation.format == .hls else { return }
    if found.hasIndependentSegments {
      presentation.periods[place.0].trackGroups[place.1].rungs[place.2].hasIndependentSegments = true
    }
    if let live = found.live {
      presentation.live = presentation.live ?? live
      presentation.duration = nil
      presentation.periods[place.0].duration = nil
    } else if !presentation.isLive {
      let end = max(found.list.end, presentation.duration ?? .zero)
      presentation.duration = end
      presentation.periods[place.0].duration = end
    }
    presentation.startOffset = presentation.startOffset ?? found.startOffset
  }
}
