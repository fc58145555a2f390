internal import ReelCore

/// What a `VideoDecoder` gives its packets to: libavcodec, or in a simulation what stands in for it.
protocol PacketDecoder: AnyObject {
  /// As `Decoder` has them.
  var reorderDepth: Int { get }
  var referenceCount: Int { get }
  var profileName: String? { get }
  var level: Int? { get }
  var frameRate: Rational? { get }
  var pixelCount: Int? { get }
  var rejectedPacketCount: Int { get }
  var hasReportedError: Bool { get }
  var sizeFault: ReelError? { get }

  func takeLastError() -> String?
  /// To be called when all frames were received.
  func send(_ box: SharedPacket) throws(ReelError)
  /// True to leave out the deblocking of the packets that are sent next.
  func setSkipsDeblocking(_ skips: Bool)
  func finish()
  func receive() throws(ReelError) -> Decoder.ReceiveResult
  func flush() throws(ReelError)
}

extension Decoder: PacketDecoder {
  func send(_ box: SharedPacket) throws(ReelError) {
    note(box.packet)
    _ = try send(box.packet)
  }
}
