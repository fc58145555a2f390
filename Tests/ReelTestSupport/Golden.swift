public import ReelCore
import Testing

/// A golden file: what ffmpeg decodes from a clip.
public struct Golden: Sendable {
  public struct Frame: Hashable, Sendable {
    public let ticks: Int64
    public let md5: String
  }

  public let timeBase: Rational
  public let frames: [Frame]

  /// Reads `golden/NAME.framemd5`.
  public init(_ name: String) throws {
    let text = String(decoding: try Fixtures.bytes("golden/\(name).framemd5"), as: UTF8.self)
    var timeBase = Rational(0, 1)
    var frames: [Frame] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("#tb 0:") {
        let numbers = line.dropFirst(6).split(separator: "/").compactMap { Int32($0.filter { $0 != " " }) }
        try #require(numbers.count == 2)
        timeBase = Rational(numbers[0], numbers[1])
      }
      guard !line.hasPrefix("#") else { continue }
      let fields = line.split(separator: ",").map { $0.filter { $0 != " " } }
      try #require(fields.count == 6)
      frames.append(Frame(ticks: try #require(Int64(fields[2])), md5: fields[5]))
    }
    self.timeBase = timeBase
    self.frames = frames
  }

  public func time(_ ticks: Int64) -> MediaTime {
    MediaTime(value: ticks * Int64(timeBase.numerator), timescale: timeBase.denominator)
  }
}
