/// The work that a call into a decoder did.
package enum DecodingWork: Sendable, Hashable {
  /// A packet went into the decoder, which is where decoding is done. `pixelCount` is that of a frame, as far as the
  /// decoder knows it after the call; 0 before it does.
  case packet(VideoCodec?, pixelCount: Int)
  /// The decoder was opened.
  case opening(VideoCodec?)
  /// Frames were asked for only.
  case receiving

  /// True if a packet went into the decoder.
  package var isPacket: Bool { if case .packet = self { true } else { false } }
}

/// Bounds how many decoders use the processor at once. A permit is held for one call into a decoder, never while
/// waiting for bytes.
package protocol DecodingGate: Sendable {
  /// Waits for a permit.
  func acquire()
  /// Gives it back.
  func release()
  /// Gives it back after a call of which it is known whether a packet went into the decoder, which is where decoding is
  /// done, or frames were asked for only. By default as `release()`.
  func release(afterPacket: Bool)
  /// Gives it back after a call that did this work. By default as `release(afterPacket:)`.
  func release(after work: DecodingWork)
}

extension DecodingGate {
  package func release(afterPacket: Bool) { release() }

  package func release(after work: DecodingWork) { release(afterPacket: work.isPacket) }
}
