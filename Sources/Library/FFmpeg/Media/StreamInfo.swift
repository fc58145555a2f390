internal import CFFmpeg
internal import CFFmpegShims
public import ReelCore

/// The description of one stream of a container.
public struct StreamInfo: Sendable {
  /// The kind of a stream.
  public enum Kind: String, Sendable {
    /// Video, or an image such as cover art.
    case video
    /// Audio.
    case audio
    /// Subtitles or captions.
    case text
    /// Data, attachments and unknown streams.
    case other
  }

  /// The position of the stream in the container, counted from 0.
  package private(set) var index = 0
  /// The stream's number in the container: the PID in MPEG-TS, the track ID in MP4.
  package private(set) var number = 0
  /// The kind of the stream.
  public let kind: Kind
  /// libavcodec's name for the codec, such as `h264` or `mpeg4`.
  public let codecName: String
  /// The video codec; nil if Reel does not decode it, or if the stream is not video.
  package private(set) var videoCodec: VideoCodec?
  /// The audio codec; nil if Reel does not decode it, or if the stream is not audio.
  package private(set) var audioCodec: AudioCodec?
  /// The four-character code of the sample entry, such as `avc1`; nil if the container has none.
  package private(set) var codecTag: String?
  /// The length in seconds of one tick, the unit of packet and frame times.
  package let timeBase: Rational
  /// The duration in ticks; nil if the container does not state it.
  package private(set) var durationTicks: Int64?
  /// The size in stored pixels after cropping, before aspect ratio and rotation; nil if unknown.
  public let size: PixelSize?
  /// The average number of frames per second; nil if unknown.
  public private(set) var averageFrameRate: Rational?
  /// The ratio of pixel width to pixel height; nil if unknown.
  package let sampleAspectRatio: Rational?
  /// The clockwise rotation in degrees that makes the frame upright: 0, 90, 180 or 270.
  package private(set) var rotation = 0
  /// True if the display matrix mirrors the frame left to right before it is turned.
  package private(set) var isMirrored = false
  /// True for a single attached image, such as cover art.
  package private(set) var isAttachedFrame = false
  /// True if the container marks the stream as a default.
  package let isDefault: Bool
  /// True if the container marks the stream as one for the hearing or visually impaired.
  private(set) var isForImpaired = false
  /// The number of frames that the container states; nil if it does not.
  private(set) var frameCount: Int?
  /// The language as the container states it, an ISO 639 or RFC 5646 code; nil if it does not.
  public private(set) var language: String?
  /// The bit rate as the container or the codec headers state it; nil if they do not.
  package private(set) var bitsPerSecond: Int64?
  /// The number of audio channels; nil if unknown, and for other streams.
  public private(set) var channelCount: Int?
  /// The number of audio samples per second and channel; nil if unknown, and for other streams.
  public private(set) var sampleRate: Int?
  /// True if the sample entry (`encv`, `enca`) or the MPEG-TS stream type (SAMPLE-AES) marks samples as encrypted.
  package private(set) var isEncrypted = false
  /// The Dolby Vision profile as the container states it; nil if it does not.
  package private(set) var dolbyVisionProfile: Int?
  /// WebM: the id of the key that blocks are encrypted with, or nil if they are not.
  private(set) var contentEncryptionKeyID: [UInt8]?
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
    isForImpaired =
      stream.pointee.disposition & (AV_DISPOSITION_HEARING_IMPAIRED | AV_DISPOSITION_VISUAL_IMPAIRED) != 0
    frameCount = stream.pointee.nb_frames > 0 ? Int(stream.pointee.nb_frames) : nil
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
    let profile = reel_stream_dolby_vision_profile(stream)
    dolbyVisionProfile = profile < 0 ? nil : Int(profile)
    contentEncryptionKeyID = av_dict_get(stream.pointee.metadata, "enc_key_id", nil, 0).flatMap {
      Self.base64($0.pointee.value)
    }
    self.parameters = try CodecParameters(copying: stream.pointee.codecpar)
  }

  /// Describes the stream of a still image, from the decoder that has just decoded it.
  init(still context: UnsafePointer<AVCodecContext>) throws(ReelError) {
    self.init(
      still: String(cString: avcodec_get_name(context.pointee.codec_id)),
      size: PixelSize(width: Int(context.pointee.width), height: Int(context.pointee.height)),
      sampleAspectRatio: Self.positive(context.pointee.sample_aspect_ratio),
      parameters: try CodecParameters(of: context))
  }

  /// Describes the stream of a still image with square pixels that was not decoded.
  package init(still size: PixelSize) throws(ReelError) {
    self.init(still: "rawvideo", size: size, sampleAspectRatio: nil, parameters: try CodecParameters())
  }

  private init(
    still codecName: String, size: PixelSize, sampleAspectRatio: Rational?, parameters: CodecParameters
  ) {
    kind = .video
    self.codecName = codecName
    timeBase = Rational(1, 1)
    self.size = size
    self.sampleAspectRatio = sampleAspectRatio
    isDefault = true
    self.parameters = parameters
  }

  /// True if the container itself has the codec's headers; otherwise only the first packets do.
  var hasExtradata: Bool { parameters.pointer.pointee.extradata_size > 0 }

  /// Returns the same stream with the codec's headers.
  func with(extradata: [UInt8]) throws(ReelError) -> StreamInfo {
    var copy = self
    copy.parameters = try CodecParameters(copying: parameters.pointer, extradata: extradata)
    return copy
  }

  /// Returns the same stream with another frame rate.
  func with(averageFrameRate: Rational) -> StreamInfo {
    var copy = self
    copy.averageFrameRate = averageFrameRate
    return copy
  }

  /// Converts ticks of this stream to a time, exactly.
  package func time(ticks: Int64) -> MediaTime {
    let product = ticks.multipliedReportingOverflow(by: Int64(timeBase.numerator))
    return MediaTime(
      value: product.overflow ? (ticks < 0 ? .min : .max) : product.partialValue,
      timescale: timeBase.denominator)
  }

  /// Converts a time to ticks of this stream.
  package func ticks(of time: MediaTime) -> Int64 {
    time.ticks(timescale: timeBase.denominator) / Int64(max(1, timeBase.numerator))
  }

  /// Returns true for copies of the same stream of the same container.
  package func isIdentical(to other: StreamInfo) -> Bool { parameters === other.parameters }

  /// Returns true if a decoder of the other stream decodes this one too, and describes its frames in the same way.
  package func hasSameCoding(as other: StreamInfo) -> Bool {
    parameters.isEqual(to: other.parameters) && timeBase == other.timeBase && index == other.index
      && averageFrameRate == other.averageFrameRate && sampleAspectRatio == other.sampleAspectRatio
      && rotation == other.rotation && isMirrored == other.isMirrored && isEncrypted == other.isEncrypted
      && dolbyVisionProfile == other.dolbyVisionProfile
      && contentEncryptionKeyID == other.contentEncryptionKeyID
  }

  /// Hashes the parameters with which a decoder of the stream is opened.
  package func hashCoding(into hasher: inout Hasher) { parameters.hash(into: &hasher) }

  /// Returns the sequence parameter sets in a packet, one after the other, if decoding can start at it. Empty
  /// for most packets.
  package func sequenceParameterSets(openedBy packet: Packet) -> [UInt8] {
    var sets = packet.newExtradata ?? []
    guard let codec = videoCodec, codec == .h264 || codec == .hevc else { return sets }
    let slice = packet.firstSlice(codec: codec, framing: nalFraming) { header, unit in
      if header.type == (codec == .h264 ? 7 : 33) { sets += unit }
    }
    return slice?.isRandomAccess == true ? sets : []
  }

  /// The framing of NAL units in the stream's packets.
  var nalFraming: NALFraming {
    videoCodec.map { codec in
      configuration.withUnsafeBytes { NALFraming(codec: codec, extradata: $0) }
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

/// A copy of a stream's `AVCodecParameters`, freed with the last reference.
final class CodecParameters: @unchecked Sendable {
  // Sendable: written in init only.
  let pointer: UnsafeMutablePointer<AVCodecParameters>

  /// Parameters of no codec.
  init() throws(ReelError) {
    guard let pointer = avcodec_parameters_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
  }

  convenience init(copying source: UnsafePointer<AVCodecParameters>) throws(ReelError) {
    try self.init()
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

  /// Returns true if decoders are opened with equal parameters for both.
  func isEqual(to other: CodecParameters) -> Bool {
    let (own, others) = (pointer.pointee, other.pointer.pointee)
    guard own.codec_type == others.codec_type, own.codec_id == others.codec_id,
      own.codec_tag == others.codec_tag, own.width == others.width, own.height == others.height,
      own.format == others.format, own.profile == others.profile, own.level == others.level,
      own.color_range == others.color_range, own.color_primaries == others.color_primaries,
      own.color_trc == others.color_trc, own.color_space == others.color_space,
      own.extradata_size == others.extradata_size
    else { return false }
    return UnsafeBufferPointer(start: own.extradata, count: Int(own.extradata_size))
      .elementsEqual(UnsafeBufferPointer(start: others.extradata, count: Int(others.extradata_size)))
  }

  /// Hashes all parameters with which a decoder is opened.
  func hash(into hasher: inout Hasher) {
    let own = pointer.pointee
    for number in [
      Int64(own.codec_id.rawValue), Int64(own.codec_tag), Int64(own.format), Int64(own.profile),
      Int64(own.level), Int64(own.width), Int64(own.height), Int64(own.sample_aspect_ratio.num),
      Int64(own.sample_aspect_ratio.den), Int64(own.field_order.rawValue), Int64(own.color_range.rawValue),
      Int64(own.color_primaries.rawValue), Int64(own.color_trc.rawValue), Int64(own.color_space.rawValue),
      Int64(own.chroma_location.rawValue), Int64(own.video_delay),
    ] { hasher.combine(number) }
    hasher.combine(bytes: UnsafeRawBufferPointer(start: own.extradata, count: Int(own.extradata_size)))
  }

  convenience init(of context: UnsafePointer<AVCodecContext>) throws(ReelError) {
    try self.init()
    guard avcodec_parameters_from_context(pointer, context) >= 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
  }

  deinit {
    var pointer: UnsafeMutablePointer<AVCodecParameters>? = pointer
    avcodec_parameters_free(&pointer)
  }
}
