/// Limits how many decoders use the processor at once. A permit is held for one call into a decoder, or while
/// one is opened, never while waiting for bytes.
package protocol DecodingGate: Sendable {
  /// Waits for a permit.
  func acquire()
  /// Returns the permit.
  func release()
}
