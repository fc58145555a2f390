internal import ReelCore

/// When libavcodec's decoders give which picture, computed from what precedes the picture data. A pure value.
///
/// Timestamps stand for picture order counts. `FirstFrameDecoder` compares it with the real decoder for as long as that
/// decodes.
struct OutputOrder {
  /// How the pictures of a codec are put into order.
  enum Rule {
    /// libavcodec/h264_picture.c, h264_select_output_picture: of the pictures that wait, up to the next IDR picture, the
    /// earliest is given as soon as more wait than the reorder depth.
    case h264
    /// libavcodec/hevc_refs.c, ff_hevc_output_frame: as H.264, but all that wait from before an IDR or BLA picture are due:
    /// one with each packet up to FFmpeg 7.0, at once from 7.1 on.
    case hevc
    /// Each packet gives its picture.
    case immediate

    /// Nil for codecs whose order is not modelled.
    init?(of codec: VideoCodec?) {
      switch codec {
      case .h264: self = .h264
      case .hevc: self = .hevc
      case .av1, .vp8, .mjpeg, .prores: self = .immediate
      default: return nil
      }
    }
  }

  /// A picture that is due.
  struct Output: Equatable {
    /// The packet that it began with.
    let number: Int
  }

  private struct Picture {
    let number: Int
    let ticks: Int64
    /// No later picture is given before it.
    let isBarrier: Bool
    /// Counts HEVC's coded video sequences.
    let sequence: Int
    /// Decoded, and not given.
    let isHidden: Bool
  }

  private let rule: Rule
  private let givesSequencesAtOnce: Bool
  private var waiting: [Picture] = []
  private var sequence = 0
  /// No picture was sent.
  private var isNew = true
  /// HEVC: leading pictures of the random access point can't be decoded, and give nothing.
  private var dropsLeading = false
  /// H.264: the time of the picture that decoding began with, if that is no IDR picture, until it is given. Pictures that
  /// come out before it are not given.
  private var recovery: Int64?
  /// The first of two fields.
  private var field: (picture: CodedPicture, number: Int, ticks: Int64)?

  init(_ rule: Rule, givesSequencesAtOnce: Bool) {
    self.rule = rule
    self.givesSequencesAtOnce = givesSequencesAtOnce
  }

  /// A packet goes into the decoder.
  ///
  /// - Parameters:
  ///   - picture: Nil for a packet without a picture.
  ///   - depth: The reorder depth after the packet.
  mutating func send(
    _ picture: CodedPicture?, number: Int, ticks: Int64, isDiscarded: Bool, depth: Int
  ) -> [Output] {
    guard let picture else { return [] }
    switch rule {
    case .immediate:
      return isDiscarded || picture.isHidden ? [] : [Output(number: number)]
    case .h264:
      var (number, ticks) = (number, ticks)
      if picture.field != nil {
        guard let first = field.take(), first.picture.isFirstField(of: picture) else {
          field = (picture, number, ticks)
          return []
        }
        // Both make the picture that the first has begun.
        (number, ticks) = (first.number, first.ticks)
      } else {
        field = nil
      }
      if isNew, !picture.isSequenceStart { recovery = ticks }
      isNew = false
      append(picture, number: number, ticks: ticks, isDiscarded: isDiscarded)
      guard waiting.count > depth else { return [] }
      return give(upToBarrier)
    case .hevc:
      if picture.isRandomAccess {
        dropsLeading = isNew || picture.isSequenceStart
        if picture.isSequenceStart { sequence += 1 }
      }
      isNew = false
      if picture.isSkippedLeading, dropsLeading { return [] }
      var outputs: [Output] = []
      if givesSequencesAtOnce {
        while let first = waiting.first, first.sequence != sequence {
          outputs += give(ofSequence(first.sequence))
        }
      }
      append(picture, number: number, ticks: ticks, isDiscarded: isDiscarded)
      guard let first = waiting.first else { return outputs }
      let isDue =
        first.sequence != sequence || waiting.reduce(0) { $0 + ($1.sequence == sequence ? 1 : 0) } > depth
      return isDue ? outputs + give(ofSequence(first.sequence)) : outputs
    }
  }

  /// The pictures that wait, in the order in which a drained decoder gives them.
  mutating func finish() -> [Output] {
    var outputs: [Output] = []
    while let first = waiting.first {
      outputs += give(rule == .h264 ? upToBarrier : ofSequence(first.sequence))
    }
    return outputs
  }

  // MARK: - Private

  private mutating func append(_ picture: CodedPicture, number: Int, ticks: Int64, isDiscarded: Bool) {
    waiting.append(
      Picture(
        number: number, ticks: ticks, isBarrier: picture.isSequenceStart, sequence: sequence,
        isHidden: isDiscarded))
  }

  /// The pictures before the next barrier, of which one may stand at the beginning.
  private var upToBarrier: Int {
    waiting.indices.dropFirst().first { waiting[$0].isBarrier } ?? waiting.count
  }

  private func ofSequence(_ sequence: Int) -> Int {
    waiting.firstIndex { $0.sequence != sequence } ?? waiting.count
  }

  /// Gives the earliest of the first `count` pictures.
  private mutating func give(_ count: Int) -> [Output] {
    var best = 0
    for index in 0..<count where waiting[index].ticks < waiting[best].ticks { best = index }
    let picture = waiting.remove(at: best)
    if let recovery {
      if picture.ticks < recovery { return [] }
      self.recovery = nil
    }
    return picture.isHidden ? [] : [Output(number: picture.number)]
  }
}
