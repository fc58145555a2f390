/// Bounds how many decoders use the processor at once. A permit is held for one call into a decoder, never while
/// waiting for bytes.
public protocol DecodingGate: Sendable {
  /// Waits for a permit.
  func acquire()
  /// Gives it back.
  func release()
}
