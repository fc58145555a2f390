internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// Chooses the audio to play if it has segments of its own.
struct AudioSelector: Sendable {
  /// In order of preference.
  var languages: [String]
  /// Used like `RungSelector.keyProvider`.
  var keyProvider: (any KeyProvider)?

  /// Returns the rungs of the one rendition or adaptation set that is played, in the manifest's order; never
  /// empty.
  ///
  /// The order among decodable ones: the most preferred language, then the default, then the main role, then
  /// the first.
  ///
  /// - Parameter group: The HLS group of the variant (EXT-X-MEDIA GROUP-ID, RFC 8216 §4.3.4.2.1); nil for
  ///   all.
  ///
  /// Throws `ReelError.unsupported` if there is none.
  func ladder(in period: Period, group: String?) throws(ReelError) -> [Rung] {
    var groups = period.trackGroups.filter { $0.kind == .audio }
    if let group, groups.contains(where: { $0.id == group }) { groups = groups.filter { $0.id == group } }
    let playable = groups.filter { group in
      group.unplayableReason == nil && group.rungs.contains(where: Self.isDecodable)
    }
    guard
      let best = playable.accessible(with: keyProvider, isUsable: Self.isDecodable).enumerated().min(by: {
        rank($0.element, $0.offset) < rank($1.element, $1.offset)
      })
    else {
      throw ReelError(
        .unsupported, groups.compactMap(\.unplayableReason).first ?? "no audio that can be played")
    }
    return best.element.rungs.filter(Self.isDecodable)
  }

  /// Returns false if the manifest names an audio codec that Reel does not decode. True if it names no
  /// codecs.
  static func isDecodable(_ rung: Rung) -> Bool {
    rung.codecs.isEmpty || rung.codecs.contains { AudioCodec(manifestName: $0) != nil }
  }

  // MARK: - Private

  private func rank(_ group: TrackGroup, _ order: Int) -> (Int, Int, Int, Int) {
    let language = group.language?.lowercased() ?? ""
    let place = languages.firstIndex { language.hasPrefix($0.lowercased()) } ?? languages.count
    return (place, group.isDefault ? 0 : 1, group.roles.contains("main") ? 0 : 1, order)
  }
}
