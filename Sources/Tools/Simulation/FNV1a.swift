/// The 64-bit hash FNV-1a: the same on every machine, and no protection against forgers.
package struct FNV1a: Sendable, Hashable {
  /// The hash of the bytes combined so far.
  package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  package init() {}

  package mutating func combine(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { combine(word: UInt64(byte)) }
  }

  /// Combines the UTF-8 bytes of a text, and a byte that ends it.
  package mutating func combine(_ text: String) {
    combine(text.utf8)
    combine(word: 0)
  }

  /// Combines a number in one step, as if it were a byte.
  package mutating func combine(word: UInt64) { value = (value ^ word) &* 0x100_0000_01b3 }
}
