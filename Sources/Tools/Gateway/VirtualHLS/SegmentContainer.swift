import Foundation
import ReelManifest

/// The container of a track's segments, as far as a manifest shows: file extensions and media types.
enum SegmentContainer: Sendable, Hashable {
  case mp4
  case mpegTS
  /// Audio without a container, by its extension.
  case packedAudio(String)
  case webVTT
  case webM
  /// Text of another kind, as TTML.
  case otherText

  /// By what the manifest says, by whether there is an initialization, by the extension of the first segment's URL,
  /// by what the format has mostly.
  init(mimeType: String?, first segment: SegmentReference, format: ManifestFormat) {
    let pathExtension = segment.url.pathExtension.lowercased()
    let mimeType = mimeType?.split(separator: ";").first.map { String($0).trimmed.lowercased() }
    if let container = mimeType.flatMap({ Self.byMimeType[$0] }) {
      self = container
    } else if let container = Self.byExtension[pathExtension] {
      self = container
    } else {
      self = segment.initialization != nil || format == .dash ? .mp4 : .mpegTS
    }
  }

  /// Of a segment that is a resource of its own.
  var segmentExtension: String { self == .mp4 ? "m4s" : fileExtension }

  /// Of an initialization, or of a file with all segments.
  var fileExtension: String {
    switch self {
    case .mp4: "mp4"
    case .mpegTS: "ts"
    case .packedAudio(let name): name
    case .webVTT: "vtt"
    case .webM: "webm"
    case .otherText: "txt"
    }
  }

  func mediaType(for kind: VirtualHLS.Track.Kind) -> String {
    switch self {
    case .mp4: kind == .audio ? "audio/mp4" : "video/mp4"
    case .mpegTS: "video/mp2t"
    case .packedAudio("mp3"): "audio/mpeg"
    case .packedAudio("ec3"): "audio/eac3"
    case .packedAudio(let name): "audio/\(name)"
    case .webVTT: "text/vtt; charset=utf-8"
    case .webM: kind == .audio ? "audio/webm" : "video/webm"
    case .otherText: "text/plain; charset=utf-8"
    }
  }

  // MARK: - Private

  private static let byMimeType: [String: SegmentContainer] = [
    "video/mp4": .mp4, "audio/mp4": .mp4, "application/mp4": .mp4, "video/iso.segment": .mp4,
    "video/mp2t": .mpegTS, "audio/aac": .packedAudio("aac"), "audio/mpeg": .packedAudio("mp3"),
    "audio/ac3": .packedAudio("ac3"), "audio/eac3": .packedAudio("ec3"), "text/vtt": .webVTT,
    "video/webm": .webM, "audio/webm": .webM, "video/x-matroska": .webM, "audio/x-matroska": .webM,
    "application/ttml+xml": .otherText, "application/x-subrip": .otherText,
  ]

  private static let byExtension: [String: SegmentContainer] = [
    "mp4": .mp4, "m4s": .mp4, "m4v": .mp4, "m4a": .mp4, "m4f": .mp4, "cmfv": .mp4, "cmfa": .mp4, "cmft": .mp4,
    "ts": .mpegTS, "m2ts": .mpegTS, "aac": .packedAudio("aac"), "mp3": .packedAudio("mp3"),
    "ac3": .packedAudio("ac3"), "ec3": .packedAudio("ec3"), "vtt": .webVTT, "webvtt": .webVTT, "webm": .webM,
    "mkv": .webM, "weba": .webM, "ttml": .otherText, "dfxp": .otherText, "xml": .otherText, "srt": .otherText,
  ]
}
