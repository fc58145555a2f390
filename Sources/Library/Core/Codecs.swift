/// A video codec that Reel decodes.
package enum VideoCodec: String, Sendable, Hashable, CaseIterable {
  /// H.264 (ITU-T H.264, ISO/IEC 14496-10).
  case h264
  /// HEVC (ITU-T H.265, ISO/IEC 23008-2).
  case hevc
  /// AV1.
  case av1
  /// VP9.
  case vp9
  /// VP8 (RFC 6386).
  case vp8
  /// MPEG-1 video (ISO/IEC 11172-2).
  case mpeg1 = "mpeg1video"
  /// MPEG-2 video (ITU-T H.262, ISO/IEC 13818-2).
  case mpeg2 = "mpeg2video"
  /// MPEG-4 Part 2, including DivX and Xvid.
  case mpeg4
  /// ITU-T H.263, including the extensions of its second version (H.263+).
  case h263
  /// Sorenson Spark, the variant of H.263 in FLV.
  case flv1
  /// Motion JPEG.
  case mjpeg
  /// Apple ProRes.
  case prores
}

extension VideoCodec {
  /// The codec with a name from a manifest (RFC 6381): a sample entry of ISO/IEC 14496-15, of the AV1 and VP
  /// bindings or of MPEG-4, or a codec of WebM (`vp8`). Nil if Reel does not decode it. Of Dolby Vision, the
  /// base layer is decoded.
  package init?(manifestName name: String) {
    let parts = name.lowercased().split(separator: ".")
    switch parts.first {
    case "avc1", "avc3", "dva1", "dvav": self = .h264
    case "hvc1", "hev1", "dvh1", "dvhe": self = .hevc
    case "av01", "dav1": self = .av1
    case "vp09", "vp9": self = .vp9
    case "vp08", "vp8": self = .vp8
    case "s263": self = .h263
    case "mp4v":
      // Object types of ISO/IEC 14496-1 §7.2.6.6.
      switch parts.dropFirst().first ?? "20" {
      case "20": self = .mpeg4
      case "60", "61", "62", "63", "64", "65": self = .mpeg2
      case "6a": self = .mpeg1
      case "6c": self = .mjpeg
      default: return nil
      }
    default: return nil
    }
  }
}

/// An audio codec that Reel decodes.
package enum AudioCodec: String, Sendable, Hashable, CaseIterable {
  /// AAC, including HE-AAC (ISO/IEC 14496-3).
  case aac
  /// MPEG-1 and MPEG-2 Audio Layer III.
  case mp3
  /// MPEG-1 and MPEG-2 Audio Layer II.
  case mp2
  /// AC-3 (ATSC A/52).
  case ac3
  /// E-AC-3 (ATSC A/52, Annex E).
  case eac3
  /// Opus (RFC 6716).
  case opus
  case vorbis
  /// FLAC (RFC 9639).
  case flac
  /// Apple Lossless.
  case alac
  /// Uncompressed or companded samples: integer, floating-point, mu-law, A-law and DVD PCM.
  case pcm
}

extension AudioCodec {
  /// The codec with a name from a manifest (RFC 6381): a sample entry, or a codec of WebM. Nil if Reel does
  /// not decode it.
  package init?(manifestName name: String) {
    let parts = name.lowercased().split(separator: ".")
    switch parts.first {
    case "mp4a":
      // Object types of ISO/IEC 14496-1 §7.2.6.6, and 34, MPEG-1 Layer III, of ISO/IEC 14496-3 §1.5.1.1.
      switch parts.dropFirst().first {
      case "69", "6b": self = .mp3
      case "a5": self = .ac3
      case "a6": self = .eac3
      case "40" where parts.last == "34": self = .mp3
      default: self = .aac
      }
    case "mp3": self = .mp3
    case "ac-3": self = .ac3
    case "ec-3": self = .eac3
    case "opus": self = .opus
    case "vorbis": self = .vorbis
    case "flac": self = .flac
    case "alac": self = .alac
    case "ipcm", "fpcm": self = .pcm
    default: return nil
    }
  }
}
