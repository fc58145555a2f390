import Foundation
import ReelCore
import Testing

/// The frames of a Y4M file of 8-bit 4:2:0.
struct Y4MFrames {
  /// Frames per second.
  let rate: Rational
  let frames: [Data]

  /// Fails if the last frame is incomplete.
  init(_ bytes: [UInt8]) throws {
    let end = try #require(bytes.firstIndex(of: 10))
    let fields = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    func field(_ name: Character) throws -> Substring {
      try #require(fields.first { $0.first == name }).dropFirst()
    }
    #expect(try field("C").hasPrefix("420"))
    let (width, height) = (try #require(Int(field("W"))), try #require(Int(field("H"))))
    let parts = try field("F").split(separator: ":").compactMap { Int32($0) }
    try #require(parts.count == 2)
    rate = Rational(parts[0], parts[1])
    let size = width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
    var frames: [Data] = []
    var rest = bytes[(end + 1)...]
    while !rest.isEmpty {
      try #require(rest.starts(with: "FRAME\n".utf8) && rest.count >= 6 + size)
      frames.append(Data(rest.dropFirst(6).prefix(size)))
      rest = rest.dropFirst(6 + size)
    }
    self.frames = frames
  }

  /// For each frame, the number of frames before it that differ from the ones before them: repetitions have the same.
  var numbers: [Int] {
    var number = 0
    return frames.indices.map { index in
      if index > 0, frames[index] != frames[index - 1] { number += 1 }
      return number
    }
  }

  /// The length in seconds.
  var length: Double { Double(frames.count) / rate.value }
}
