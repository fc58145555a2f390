/// Changes inputs in ways that keep most of their structure: numbers become extreme, lines, elements and attributes are
/// doubled, dropped, swapped and made up, bytes are flipped.
struct Mutator {
  private var state: UInt64
  private let shape: FuzzTarget.Shape

  init(seed: UInt64, shape: FuzzTarget.Shape) {
    state = seed
    self.shape = shape
  }

  /// `input` after one to four changes, at most `limit` bytes long.
  mutating func mutated(_ input: [UInt8], limit: Int) -> [UInt8] {
    var bytes = input
    for _ in 0...below(4) { bytes = changed(bytes) }
    return Array(bytes.prefix(limit))
  }

  // MARK: - Private

  /// A number from 0 up to `bound` (SplitMix64).
  private mutating func below(_ bound: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return bound <= 0 ? 0 : Int((mixed ^ (mixed >> 31)) % UInt64(bound))
  }

  private mutating func any<Element>(_ elements: [Element]) -> Element? {
    elements.isEmpty ? nil : elements[below(elements.count)]
  }

  private mutating func changed(_ bytes: [UInt8]) -> [UInt8] {
    switch shape {
    case .binary: return below(2) == 0 ? withField(bytes) : withBytes(bytes)
    case .text: return below(3) == 0 ? withBytes(bytes) : withToken(below(2) == 0 ? withNumber(bytes) : bytes)
    case .playlist:
      switch below(8) {
      case 0, 1: return withNumber(bytes)
      case 2, 3, 4: return withPieces(bytes, lines(of: bytes))
      case 5: return withAttribute(bytes)
      case 6: return withToken(bytes)
      default: return withBytes(bytes)
      }
    case .xml:
      switch below(8) {
      case 0, 1: return withNumber(bytes)
      case 2, 3: return withPieces(bytes, elements(of: bytes))
      case 4, 5: return withAttribute(bytes)
      case 6: return withToken(bytes)
      default: return withBytes(bytes)
      }
    }
  }

  private mutating func withBytes(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    guard !bytes.isEmpty else { return [UInt8(truncatingIfNeeded: below(256))] }
    let place = below(bytes.count)
    let count = min(1 + below(16), bytes.count - place)
    switch below(5) {
    case 0: bytes[place] ^= 1 << UInt8(below(8))
    case 1: bytes[place] = UInt8(truncatingIfNeeded: below(256))
    case 2: bytes.removeSubrange(place..<place + count)
    case 3: bytes.insert(contentsOf: Array(bytes[place..<place + count]), at: below(bytes.count))
    default: bytes.removeSubrange(place...)
    }
    return bytes
  }

  /// Changes a big-endian number of 32 bits.
  private mutating func withField(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count > 5 else { return withBytes(bytes) }
    var bytes = bytes
    let place = 1 + below((bytes.count - 1) / 4) * 4
    guard place + 4 <= bytes.count else { return withBytes(bytes) }
    let values: [UInt32] = [0, 1, 2, 8, 16, 0x7FFF_FFFF, 0x8000_0000, .max, .max - 1, 0x0100_0000, 90_000]
    let value = any(values) ?? 0
    for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * index)) }
    return bytes
  }

  private mutating func withNumber(_ bytes: [UInt8]) -> [UInt8] {
    let numbers = ranges(of: bytes) { (0x30...0x39).contains($0) }
    guard let number = any(numbers) else { return withBytes(bytes) }
    var text = String(decoding: bytes[number], as: UTF8.self)
    if below(4) == 0, let value = Int64(text) {
      text = String(below(2) == 0 ? value &+ 1 : value &- 1)
    } else {
      text = any(Vocabulary.numbers) ?? ""
    }
    return replacing(number, of: bytes, by: Array(text.utf8))
  }

  private mutating func withToken(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    guard let token = any(Vocabulary.tokens(for: shape)) else { return bytes }
    // At the beginning of a line or an element, where there is one.
    var place = below(bytes.count + 1)
    if shape == .playlist { place = bytes[..<place].lastIndex(of: 10).map { $0 + 1 } ?? 0 }
    if shape == .xml { place = bytes[..<place].lastIndex(of: UInt8(ascii: "<")) ?? place }
    bytes.insert(contentsOf: Array(token.utf8) + (shape == .playlist ? [10] : []), at: place)
    return bytes
  }

  /// Doubles, drops, swaps or moves pieces.
  private mutating func withPieces(_ bytes: [UInt8], _ pieces: [Range<Int>]) -> [UInt8] {
    guard let first = any(pieces), let second = any(pieces) else { return withBytes(bytes) }
    var bytes = bytes
    switch below(5) {
    case 0: bytes.removeSubrange(first)
    case 1: bytes.insert(contentsOf: Array(bytes[first]), at: second.lowerBound)
    case 2:
      let copies = Array(repeating: Array(bytes[first].prefix(200)), count: 1 + below(64)).joined()
      bytes.insert(contentsOf: copies, at: first.lowerBound)
    default:
      guard first.upperBound <= second.lowerBound else { return bytes }
      let (early, late) = (Array(bytes[first]), Array(bytes[second]))
      bytes.replaceSubrange(second, with: early)
      bytes.replaceSubrange(first, with: late)
    }
    return bytes
  }

  /// Drops an attribute, gives it another value, or makes one up beside it.
  private mutating func withAttribute(_ bytes: [UInt8]) -> [UInt8] {
    let separator: UInt8 = shape == .xml ? UInt8(ascii: " ") : UInt8(ascii: ",")
    let signs = bytes.indices.filter { bytes[$0] == UInt8(ascii: "=") }
    guard let sign = any(signs) else { return withToken(bytes) }
    let isName = { (byte: UInt8) in byte > 0x20 && byte != separator && byte != UInt8(ascii: ":") }
    var start = sign
    while start > 0, isName(bytes[start - 1]) { start -= 1 }
    var end = sign + 1
    if end < bytes.count, bytes[end] == UInt8(ascii: "\"") {
      end = bytes[(end + 1)...].firstIndex(of: UInt8(ascii: "\"")).map { $0 + 1 } ?? bytes.count
    } else {
      while end < bytes.count, bytes[end] > 0x20, bytes[end] != separator { end += 1 }
    }
    switch below(4) {
    case 0: return replacing(start..<end, of: bytes, by: [])
    case 1:
      let value = any(Vocabulary.values(for: shape)) ?? ""
      return replacing(sign + 1..<end, of: bytes, by: Array("\"\(value)\"".utf8))
    case 2:
      let name = any(Vocabulary.attributes(for: shape)) ?? ""
      return replacing(start..<sign, of: bytes, by: Array(name.utf8))
    default:
      let name = any(Vocabulary.attributes(for: shape)) ?? ""
      let value = any(Vocabulary.values(for: shape)) ?? ""
      let text = Array("\(name)=\"\(value)\"".utf8)
      return replacing(start..<start, of: bytes, by: text + [separator])
    }
  }

  private func replacing(_ range: Range<Int>, of bytes: [UInt8], by other: [UInt8]) -> [UInt8] {
    var bytes = bytes
    bytes.replaceSubrange(range, with: other)
    return bytes
  }

  private func ranges(of bytes: [UInt8], _ belongs: (UInt8) -> Bool) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start: Int?
    for (index, byte) in bytes.enumerated() {
      if belongs(byte) {
        start = start ?? index
      } else if let begun = start {
        ranges.append(begun..<index)
        start = nil
      }
    }
    if let start { ranges.append(start..<bytes.count) }
    return ranges
  }

  private func lines(of bytes: [UInt8]) -> [Range<Int>] {
    var lines: [Range<Int>] = []
    var start = 0
    for (index, byte) in bytes.enumerated() where byte == 10 {
      lines.append(start..<index + 1)
      start = index + 1
    }
    if start < bytes.count { lines.append(start..<bytes.count) }
    return lines
  }

  /// Elements with all that is in them, as far as they are closed, else the tags alone.
  private func elements(of bytes: [UInt8]) -> [Range<Int>] {
    var open: [(name: ArraySlice<UInt8>, start: Int)] = []
    var elements: [Range<Int>] = []
    var position = 0
    while let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")),
      let end = bytes[start...].firstIndex(of: UInt8(ascii: ">"))
    {
      position = end + 1
      let isEnd = start + 1 < end && bytes[start + 1] == UInt8(ascii: "/")
      let name = bytes[(start + (isEnd ? 2 : 1))..<max(end, start + (isEnd ? 2 : 1))].prefix {
        $0 > 0x20 && $0 != UInt8(ascii: "/")
      }
      if isEnd {
        if let index = open.lastIndex(where: { $0.name.elementsEqual(name) }) {
          elements.append(open[index].start..<end + 1)
          open.removeSubrange(index...)
        }
      } else if bytes[end - 1] == UInt8(ascii: "/") {
        elements.append(start..<end + 1)
      } else {
        open.append((name, start))
      }
    }
    return elements + open.map { $0.start..<bytes.count }
  }
}
