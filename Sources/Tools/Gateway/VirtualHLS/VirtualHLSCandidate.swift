import Foundation
import ReelCore
import ReelManifest

/// A rung that HLS can express, with the properties of its group.
struct VirtualHLSCandidate: Sendable {
  let rung: Rung
  let list: SegmentList
  let container: SegmentContainer
  /// `rung` is one of its rungs.
  let group: TrackGroup
  let content: Content

  /// The properties that are the same in every quality.
  struct Content: Sendable, Hashable {
    /// In small letters, empty if it is not known.
    var language: String
    var roles: [String]
    var label: String?

    init(_ group: TrackGroup) {
      language = group.language?.lowercased() ?? ""
      roles = group.roles.sorted()
      label = group.label
    }
  }

  /// Codec and number of channels, which a player either supports or does not.
  struct Format: Hashable {
    var codecs: [String]
    var channels: String?
  }

  var format: Format { Format(codecs: rung.codecs.map(Self.fourCharacterCode), channels: rung.channels) }

  /// True if audio is muxed with the video.
  var isMuxed: Bool { rung.codecs.contains { CodecFamily($0) == .audio } && rung.audioGroup == nil }

  /// `avc1` of `avc1.64001f`, in small letters.
  static func fourCharacterCode(_ codec: String) -> String {
    codec.split(separator: ".").first?.lowercased() ?? ""
  }

  /// How unlike another one this is as its continuation in another period: the lower the better, item by item.
  func distance(to other: VirtualHLSCandidate) -> [Double] {
    let isSameContent = content.language == other.content.language
    let hasSameID = rung.id == other.rung.id && isSameContent
    return [
      hasSameID ? 0 : 1,
      isSameContent ? 0 : primaryLanguage == other.primaryLanguage ? 1 : 2,
      content.roles == other.content.roles ? 0 : 1,
      format.codecs == other.format.codecs ? 0 : 1,
      Self.ratio(rung.size.map { $0.width * $0.height }, other.rung.size.map { $0.width * $0.height }),
      rung.channels == other.rung.channels ? 0 : 1,
      Self.ratio(rung.bitsPerSecond, other.rung.bitsPerSecond),
    ]
  }

  // MARK: - Private

  private var primaryLanguage: Substring? { content.language.split(separator: "-").first }

  /// The ratio of two rates as a logarithm; 0 if either is unknown.
  private static func ratio(_ first: Int?, _ second: Int?) -> Double {
    guard let first, let second, first > 0, second > 0 else { return 0 }
    return abs(log(Double(first) / Double(second)))
  }
}
