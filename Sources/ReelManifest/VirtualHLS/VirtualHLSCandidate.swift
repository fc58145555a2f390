import Foundation
import ReelCore

/// A rung that can stand in HLS, with what its group says of it.
struct VirtualHLSCandidate: Sendable {
  let rung: Rung
  let list: SegmentList
  let container: SegmentContainer
  /// `rung` is one of its rungs.
  let group: TrackGroup
  let content: Content

  /// What is the same in every quality of it.
  struct Content: Sendable, Hashable {
    /// In small letters, empty where it is not known.
    var language: String
    var roles: [String]
    var label: String?

    init(_ group: TrackGroup) {
      language = group.language?.lowercased() ?? ""
      roles = group.roles.sorted()
      label = group.label
    }
  }

  /// Codec and number of channels: what a player either has or has not.
  struct Format: Hashable {
    var codecs: [String]
    var channels: String?
  }

  var format: Format { Format(codecs: rung.codecs.map(Self.fourCharacterCode), channels: rung.channels) }

  /// True where sound is muxed in with the frames.
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

  /// How many times one is the other, as a logarithm; 0 where either is not known.
  private static func ratio(_ first: Int?, _ second: Int?) -> Double {
    guard let first, let second, first > 0, second > 0 else { return 0 }
    return abs(log(Double(first) / Double(second)))
  }
}
