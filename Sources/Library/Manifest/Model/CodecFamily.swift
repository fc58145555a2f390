/// The kind of media that an RFC 6381 codecs string names.
package enum CodecFamily: Sendable {
  case video
  case audio
  case text
  case unknown

  package init(_ codec: String) {
    switch codec.split(separator: ".").first?.lowercased() ?? "" {
    case "avc1", "avc2", "avc3", "avc4", "hvc1", "hev1", "hvc2", "hev2", "dvh1", "dvhe", "dva1", "dvav",
      "dav1",
      "vvc1", "vvi1", "av01", "vp8", "vp08", "vp9", "vp09", "vp10", "mp4v", "mp2v", "s263", "theora", "evc1",
      "lvc1", "apv1", "svc1", "mvc1", "mvc2", "lhv1", "lhe1", "mjpg":
      self = .video
    case "mp4a":
      self = .audio
    case "ac-3", "ec-3", "ac-4", "mp3", "opus", "flac", "fl", "alac", "vorbis", "dtsc", "dtse", "dtsh",
      "dtsl",
      "dtsx", "dtsy", "mha1", "mha2", "mhm1", "mhm2", "sawb", "sawp", "samr", "iamf", "ipcm", "fpcm", "lpcm",
      "pcm", "ulaw", "alaw", "mlpa":
      self = .audio
    case "wvtt", "stpp", "stxt", "tx3g", "ttml", "sbtt":
      self = .text
    default:
      self = .unknown
    }
  }
}
