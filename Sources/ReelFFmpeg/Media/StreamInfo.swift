internal import CFFmpeg
internal import CFFmpegShims
public import ReelCore

/// What a demuxer knows of one stream: copied values, nothing that points into the demuxer.
public struct StreamInfo: Sendable {
  public enum Kind: String, Sendable {
    case video
    case audio
    case text
    case other
  }

  public let index: Int
  /// The container's own number of it: the PID in MPEG-TS, the track's in MP4.
  public let number: Int
  public let kind: Kind
  /// libavcodec's name of the codec, as `h264` or `mpeg4`.
  public let codecName: String
  /// The codec as Reel decodes it; nil for one that it does not.
  public let videoCodec: VideoCodec?
  /// The audio codec as Reel decodes it; nil for one that it does not.
  public let audioCodec: AudioCodec?
  /// The sample entry's four characters, where the container has them.
  public let codecTag: String?
  /// Seconds per tick of packets and frames.
  public let timeBase: Rational
  /// In ticks; nil where the container has none.
  public let durationTicks: Int64?
  /// Coded size after cropping, as the container or parser says; nil before it is known.
  public let size: PixelSize?
  public let averageFrameRate: Rational?
  /// Pixel width to pixel height; nil where the container does not tell.
  public let sampleAspectRatio: Rational?
  /// How far the frame has to be turned clockwise to stand upright: 0, 90, 180 or 270 degrees.
  public let rotation: Int
  /// True where the display matrix mirrors the frame (before it is turned).
  public let isMirrored: Bool
  public let isAttachedFrame: Bool
  public let isDefault: Bool
  /// ISO 639 or RFC 5646, as the container writes it.
  public let language: String?
  public let bitsPerSecond: Int64?
  public let channelCount: Int?
  public let sampleRate: Int?
  /// True if the sample entry (`encv`) or the MPEG-TS stream type (SAMPLE-AES) says that samples are encrypted.
  public let isEncrypted: Bool
  /// WebM: the id of the key that blocks are encrypted with, or nil if they are not.
  let contentEncryptionKeyID: [UInt8]?
  private(set) var parameters: CodecParameters

  init(_ stream: UnsafePointer<AVStream>) throws(ReelError) {
    let parameters = stream.pointee.codecpar.pointee
    index = Int(stream.pointee.index)
    number = Int(stream.pointee.id)
    kind =
      switch parameters.codec_type {
      case AVMEDIA_TYPE_VIDEO: .video
      case AVMEDIA_TYPE_AUDIO: .audio
      case AVMEDIA_TYPE_SUBTITLE: .text
      default: .other
      }
    codecName = String(cString: avcodec_get_name(parameters.codec_id))
    videoCodec = parameters.codec_type == AVMEDIA_TYPE_VIDEO ? VideoCodec(parameters.codec_id) : nil
    audioCodec = parameters.codec_type == AVMEDIA_TYPE_AUDIO ? AudioCodec(parameters.codec_id) : nil
    codecTag = Self.fourCharacters(parameters.codec_tag)
    timeBase = Rational(stream.pointee.time_base.num, stream.pointee.time_base.den)
    durationTicks = Self.known(stream.pointee.duration).flatMap { $0 > 0 ? $0 : nil }
    size =
      parameters.width > 0 && parameters.height > 0
      ? PixelSize(width: Int(parameters.width), height: Int(parameters.height)) : nil
    averageFrameRate = Self.positive(stream.pointee.avg_frame_rate)
    sampleAspectRatio =
      Self.positive(stream.pointee.sample_aspect_ratio) ?? Self.positive(parameters.sample_aspect_ratio)
    let orientation = Orientation(matrix: reel_stream_display_matrix(stream))
    rotation = orientation.rotation
    isMirrored = orientation.isMirrored
    isAttachedFrame = stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC != 0
    isDefault = stream.pointee.disposition & AV_DISPOSITION_DEFAULT != 0
    language = av_dict_get(stream.pointee.metadata, "language", nil, 0).flatMap {
      $0.pointee.value.map { String(cString: $0) }
    }
    bitsPerSecond = parameters.bit_rate > 0 ? parameters.bit_rate : nil
    let channels = parameters.ch_layout.nb_channels
    channelCount = channels > 0 ? Int(channels) : nil
    sampleRate = parameters.sample_rate > 0 ? Int(parameters.sample_rate) : nil
    let streamType = UInt8(exactly: parameters.codec_tag)
    let isSampleAES = streamType.map { SampleAESStreamType.clearTypes[$0] != nil } ?? false
    isEncrypted = codecTag == "encv" || codecTag == "enca" || isSampleAES
    contentEncryptionKeyID = av_dict_get(stream.pointee.metadata, "enc_key_id", nil, 0).flatMap {
      Self.base64($0.pointee.value)
    }
    self.parameters = try CodecParameters(copying: stream.pointee.codecpar)
  }

  /// The stream of one still image, which an opened decoder has just given.
  init(still context: UnsafePointer<AVCodecContext>, orientation: Orientation) throws(ReelError) {
    index = 0
    number = 0
    kind = .video
    codecName = String(cString: avcodec_get_name(context.pointee.codec_id))
    videoCodec = nil
    audioCodec = nil
    codecTag = nil
    timeBase = Rational(1, 1)
    durationTicks = nil
    size = PixelSize(width: Int(context.pointee.width), height: Int(context.pointee.height))
    averageFrameRate = nil
    sampleAspectRatio = Self.positive(context.pointee.sample_aspect_ratio)
    rotation = orientation.rotation
    isMirrored = orientation.isMirrored
    isAttachedFrame = false
    isDefault = true
    language = nil
    bitsPerSecond = nil
    channelCount = nil
    sampleRate = nil
    isEncrypted = false
    contentEncryptionKeyID = nil
    parameters = try CodecParameters(of: context)
  }

  /// True if the container itself has the codec's headers; otherwise only the first packets do.
  var hasExtradata: Bool { parameters.pointer.pointee.extradata_size > 0 }

  /// The same stream with the codec's headers.
  func with(extradata: [UInt8]) throws(ReelError) -> StreamInfo {
    var copy = self
    copy.parameters = try CodecParameters(copying: parameters.pointer, extradata: extradata)
    return copy
  }

  /// `ticks` of this stream as a time.
  public func time(ticks: Int64) -> MediaTime {
    let product = ticks.multipliedReportingOverflow(by: Int64(timeBase.numerator))
    return MediaTime(
      value: product.overflow ? (ticks < 0 ? .min : .max) : product.partialValue,
      timescale: timeBase.denominator)
  }

  /// True of copies of the same stream of the same container.
  package func isIdentical(to other: StreamInfo) -> Bool { parameters === other.parameters }

  /// How NAL units stand in the stream's packets.
  var nalFraming: NALFraming {
    let parameters = parameters.pointer.pointee
    return videoCodec.map {
      NALFraming(
        codec: $0,
        extradata: UnsafeRawBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size)))
    } ?? .annexB
  }

  // MARK: - Private

  private static func known(_ ticks: Int64) -> Int64? { ticks == reel_nopts() ? nil : ticks }

  private static func positive(_ rational: AVRational) -> Rational? {
    let value = Rational(rational.num, rational.den)
    return value.isPositive ? value : nil
  }

  private static func base64(_ text: UnsafePointer<CChar>?) -> [UInt8]? {
    guard let text else { return nil }
    var bytes = [UInt8](repeating: 0, count: String(cString: text).utf8.count)
    let count = av_base64_decode(&bytes, text, Int32(clamping: bytes.count))
    return count < 0 ? [] : Array(bytes.prefix(Int(count)))
  }

  private static func fourCharacters(_ tag: UInt32) -> String? {
    let bytes = (0..<4).map { UInt8(truncatingIfNeeded: tag >> (8 * $0)) }
    guard bytes.allSatisfy({ (0x20...0x7e).contains($0) }) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A copy of a stream's `AVCodecParameters`.
///
/// Ownership: freed with the last reference.
final class CodecParameters: @unchecked Sendable {
  // Sendable: written in init only.
  let pointer: UnsafeMutablePointer<AVCodecParameters>

  init(copying source: UnsafePointer<AVCodecParameters>) throws(ReelError) {
    guard let pointer = avcodec_parameters_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
    guard avcodec_parameters_copy(pointer, source) >= 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
  }

  convenience init(copying source: UnsafePointer<AVCodecParameters>, extradata: [UInt8]) throws(ReelError) {
    try self.init(copying: source)
    guard let count = Int32(exactly: extradata.count),
      let memory = av_mallocz(extradata.count + Int(AV_INPUT_BUFFER_PADDING_SIZE))
    else { throw ReelError(.internalFault, "out of memory") }
    extradata.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(start: memory, count: $0.count).copyMemory(from: $0)
    }
    av_freep(&pointer.pointee.extradata)
    pointer.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
    pointer.pointee.extradata_size = count
  }

  init(of context: UnsafePointer<AVCodecContext>) throws(ReelError) {
    guard let pointer = avcodec_parameters_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
    guard avcodec_parameters_from_context(pointer, context) >= 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
  }

  deinit {
    var pointer: UnsafeMutablePointer<AVCodecParameters>? = pointer
    avcodec_parameters_free(&pointer)
  }
}
