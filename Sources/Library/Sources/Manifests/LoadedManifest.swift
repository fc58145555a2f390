package import Foundation
package import ReelCore
package import ReelManifest

/// A manifest and everything that it refers to, except media.
package struct LoadedManifest: Sendable {
  /// The text of one manifest.
  package struct Document: Sendable {
    package let bytes: [UInt8]
    package let format: ManifestFormat
    /// The URL of the manifest, after redirects.
    package let url: URL
  }

  /// A rung whose segments could not be found.
  package struct Failure: Sendable {
    package let periodIndex: Int
    package let groupIndex: Int
    package let rungIndex: Int
    package let error: ReelError
  }

  /// The presentation with the segments of each rung. Failed rungs stay as they are in the manifest.
  package var presentation: Presentation
  /// The URL of the manifest, after redirects.
  package var url: URL
  /// The manifest first, then its media playlists in the order of arrival.
  package var documents: [Document] = []
  package var failures: [Failure] = []
  /// The URL of each rung's own playlist, after redirects, by the indices of period, group and rung.
  package var playlistURLs: [[Int]: URL] = [:]
  /// True if the segments of any rung are known.
  package var hasSegments: Bool {
    presentation.periods.contains { period in
      period.trackGroups.contains { group in
        group.rungs.contains { rung in
          if case .segments = rung.media { true } else { false }
        }
      }
    }
  }

  /// The fetcher for resources in the manifest, within the limits of `ConfinedFetcher`.
  package var fetcher: any Fetching

  package init(presentation: Presentation, url: URL, fetcher: any Fetching) {
    self.presentation = presentation
    self.url = url
    self.fetcher = fetcher
  }
}

extension LoadedManifest {
  package mutating func take(_ found: RungSegments, at place: (Int, Int, Int)) {
    playlistURLs[[place.0, place.1, place.2]] = found.playlistURL
    presentation.periods[place.0].trackGroups[place.1].rungs[place.2].media = .segments(found.list)
    let group = presentation.periods[place.0].trackGroups[place.1]
    if group.kind == .image, let tiles = found.list.first?.tiles {
      presentation.periods[place.0].trackGroups[place.1].rungs[place.2].tiles = tiles
    }
    // Video states the duration, and whether the presentation is live.
    let hasOthers = presentation.periods[place.0].trackGroups.contains { $0.kind != .image }
    guard presentation.format == .hls, group.kind != .image || !hasOthers else { return }
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
