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
}

extension DecodingGate {
  package func release(afterPacket: Bool) { release() }
}
