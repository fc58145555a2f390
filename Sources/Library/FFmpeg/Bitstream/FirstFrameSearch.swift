internal import ReelCore

/// The search for the first frame of a stream in presentation order, among units in decoding order.
///
/// A picture that can be decoded alone (`OpeningPicture.canBeDecodedAlone`) is the first frame, and nothing is
/// searched. Otherwise, units are sent until `isKnown(before:framing:)` is true.
struct FirstFrameSearch {
  /// The units that were sent, in order.
  private(set) var fed: [Packet] = []
  private let opening: OpeningPicture
  private let codec: VideoCodec?
  /// The earliest presentation time of the frames in `fed`.
  private var earliest: Int64?

  /// The number of units that are kept. A stream that has shown nothing by then is decoded in plain order.
  private static let maximumCount = 64

  init(_ opening: OpeningPicture, codec: VideoCodec?) {
    self.opening = opening
    self.codec = codec
  }

  /// True if no more units are sent for the search.
  var isExhausted: Bool { fed.count >= Self.maximumCount }

  mutating func record(_ unit: Packet) {
    fed.append(unit)
    if !unit.isDiscarded, let ticks = unit.presentationTicks {
      earliest = min(earliest ?? ticks, ticks)
    }
  }

  /// Returns true if the first frame is among the units that were sent. `next` is the unit after them.
  func isKnown(before next: Packet, framing: NALFraming) -> Bool {
    // A unit that an edit list leaves out shows nothing.
    guard let earliest, !next.isDiscarded else { return false }
    let isLeading = codec.flatMap { next.firstSlice(codec: $0, framing: framing) }?.isLeading ?? false
    return Self.isKnown(
      opening, codec: codec, earliest: earliest, nextTicks: next.decodingTicks, nextIsLeading: isLeading)
  }

  /// Returns true if no later unit contains a frame that is shown before `earliest`.
  ///
  /// - HEVC, from a random access picture that is shown: only its leading pictures are shown before it, and they
  ///   all precede its trailing pictures in decoding order (ISO/IEC 23008-2 §8.3.1). So the first unit that is not
  ///   leading ends the search.
  /// - H.264, and HEVC from any other picture: a picture is never shown before it is decoded (ISO/IEC 13818-1
  ///   §2.4.3.7, ISO/IEC 14496-12 §8.6.1.3), and decoding times rise from unit to unit. So a unit that is decoded at
  ///   or after `earliest` ends it.
  /// - Other codecs: never. AV1, VP8, VP9, H.263, MJPEG and ProRes return a frame with its own unit, and MPEG video
  ///   with the next I or P frame, so their decoders are never drained.
  ///
  /// - Parameters:
  ///   - earliest: The earliest presentation time of the units that were sent.
  ///   - nextTicks: The decoding time of the next unit; nil if the container has none.
  ///   - nextIsLeading: True if the next unit is a leading picture.
  static func isKnown(
    _ opening: OpeningPicture, codec: VideoCodec?, earliest: Int64, nextTicks: Int64?, nextIsLeading: Bool
  ) -> Bool {
    switch codec {
    case .hevc where opening.isRandomAccess && opening.isShown: !nextIsLeading
    case .h264, .hevc: nextTicks.map { $0 >= earliest } ?? false
    default: false
    }
  }
}
