/// The lines of a text, numbered from 1. Lines end with LF, CRLF or CR.
package struct TextLines: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>
  private var number = 0

  package init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// The next line, trimmed of white space.
  package mutating func next() -> (number: Int, bytes: ArraySlice<UInt8>)? {
    guard !rest.isEmpty else { return nil }
    number += 1
    let end = rest.firstIndex { $0 == 0x0a || $0 == 0x0d } ?? rest.endIndex
    var line = rest[..<end].drop(while: \.isBlank)
    while line.last?.isBlank == true { line.removeLast() }
    rest = rest[end...]
    if rest.starts(with: [0x0d, 0x0a]) { rest = rest.dropFirst(2) } else { rest = rest.dropFirst() }
    return (number, line)
  }
}

extension UInt8 {
  /// Space, tab, carriage return or line feed.
  package var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0d || self == 0x0a }
}
