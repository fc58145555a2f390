package import Foundation
package import ReelCore
package import ReelManifest

/// A manifest with all that it refers to read, and nothing of its media.
package struct LoadedManifest: Sendable {
  /// The text of one manifest.
  package struct Document: Sendable {
    package let bytes: [UInt8]
    package let format: ManifestFormat
    /// Where it came from, after redirects.
    package let url: URL
  }

  /// A rung whose segments could not be found.
  package struct Failure: Sendable {
    package let periodIndex: Int
    package let groupIndex: Int
    package let rungIndex: Int
    package let error: ReelError
  }

  /// The media of each rung are segments, but for those that failed, which stay as the manifest has them.
  package internal(set) var presentation: Presentation
  /// Where the manifest came from, after redirects.
  package internal(set) var url: URL
  /// The manifest first, then the media playlists that it names, in the order in which they came.
  package internal(set) var documents: [Document] = []
  package internal(set) var failures: [Failure] = []
  /// True where the segments of any rung are known.
  package var hasSegments: Bool {
    presentation.periods.contains { period in
      period.trackGroups.contains { group in
        group.rungs.contains { rung in
          if case .segments = rung.media { true } else { false }
        }
      }
    }
  }

  /// Fetches what the manifest names and nothing else that a server must not reach.
  package internal(set) var fetcher: any Fetching
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
