package import Logging
package import ReelCore

/// Opens the decoders that `VideoDecoder`s give their packets to.
package protocol DecoderMaking: Sendable {
  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  ///
  /// - Parameter threads: The number of frame threads.
  func makeDecoder(
    of stream: StreamInfo, threads: Int, name: String, logger: Logger
  ) throws(ReelError) -> any FrameDecoding
}

/// Opens decoders of libavcodec.
package struct LibavDecoders: DecoderMaking {
  package init() {}

  package func makeDecoder(
    of stream: StreamInfo, threads: Int, name: String, logger: Logger
  ) throws(ReelError) -> any FrameDecoding {
    try Decoder(stream: stream, threads: threads, name: name, logger: logger)
  }
}

/// Turns the packets of a stream into frames: libavcodec (`Decoder`), or a model of it.
///
/// Confined to one thread at a time.
package protocol FrameDecoding: AnyObject {
  var facts: DecoderFacts { get }
  /// Packets that were refused as invalid since the decoder was made.
  var rejectedPacketCount: Int { get }
  /// True if an error was reported since the decoder was opened.
  var hasReportedError: Bool { get }
  /// The error for frames of a size that is refused; nil where that is not what is wrong.
  var sizeFault: ReelError? { get }

  /// The last error line that the decoder logged.
  func takeLastError() -> String?
  /// True to leave out the deblocking of the packets that are sent next. Not for packets that others refer to, and not
  /// with frame threads.
  func setSkipsDeblocking(_ skips: Bool)
  /// Takes a packet. All frames must have been received before.
  func send(_ box: SharedPacket) throws(ReelError)
  /// Tells the decoder that no more packets come, until `flush()`.
  func finish()
  /// The next frame in presentation order, if one is ready.
  func receive() throws(ReelError) -> Decoder.ReceiveResult
  /// Discards all frames and references. The next packet decodes as in a new decoder.
  func flush() throws(ReelError)
}

/// What a decoder knows of its stream, which may change with each packet.
package struct DecoderFacts: Sendable, Hashable {
  /// How many frames may be held back to bring them into order (`has_b_frames`).
  package var reorderDepth = 0
  /// How many frames the stream keeps as references, as far as libavcodec tells: of codecs other than H.264 it says 1.
  package var referenceCount = 1
  /// libavcodec's name of the profile, as `High` or `Main 10`.
  package var profileName: String?
  /// As the bitstream writes it: 31 is H.264's 3.1, 93 HEVC's 3.1.
  package var level: Int?
  /// Frames per second as the bitstream's timing information says.
  package var frameRate: Rational?
  /// The pixels of a frame after cropping.
  package var pixelCount: Int?
  /// The bytes of the last frame; 0 before the first.
  package var frameByteCount = 0

  /// An estimate of the bytes of the frames that a decoder holds: the frame that is being decoded, and either those that are
  /// held back for their order or the references, whichever are more. What is really held includes spare frames, and
  /// depends on libavcodec's version.
  ///
  /// - Parameter outsideCount: The latest frames that the decoder has given and that are held elsewhere: references
  ///   among them are not the decoder's alone.
  package func heldByteCount(outsideCount: Int) -> Int {
    frameByteCount * (1 + max(reorderDepth, referenceCount - outsideCount))
  }
}
