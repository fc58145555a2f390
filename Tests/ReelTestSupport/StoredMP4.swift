import Testing

/// An MP4 file without fragments whose samples can be stored in another order.
public struct StoredMP4 {
  public struct Sample: Sendable {
    public let isVideo: Bool
    /// The decoding time in seconds.
    public let time: Double
    let track: Int
    let bytes: Range<Int>
  }

  /// How far video is stored before the audio of the same time, in seconds; negative if it is stored after it.
  public enum Arrangement: Sendable {
    case videoAhead(Double)
    /// Video, then audio, or the other way around, of so many seconds at a time.
    case pieces(seconds: Double, videoFirst: Bool)

    func place(_ sample: Sample) -> (Double, Int) {
      switch self {
      case .videoAhead(let seconds): (sample.time - (sample.isVideo ? seconds : 0), sample.isVideo ? 0 : 1)
      case .pieces(let seconds, let videoFirst):
        ((sample.time / seconds).rounded(.down), sample.isVideo == videoFirst ? 0 : 1)
      }
    }
  }

  private typealias Box = (type: String, body: ArraySlice<UInt8>)

  private let bytes: [UInt8]
  private let samples: [Sample]
  private static let containers: Set<String> = ["trak", "mdia", "minf", "stbl"]

  public init(_ bytes: [UInt8]) throws {
    self.bytes = bytes
    let movie = try #require(Self.boxes(bytes[...]).first { $0.type == "moov" })
    var samples: [Sample] = []
    for (track, box) in Self.boxes(movie.body).filter({ $0.type == "trak" }).enumerated() {
      samples += try Self.samples(of: box.body, track: track)
    }
    self.samples = samples
  }

  /// The file with its samples in this order, and `moov` before or after them.
  public func stored(_ arrangement: Arrangement, indexFirst: Bool) throws -> [UInt8] {
    let sorted = samples.enumerated().sorted {
      let (left, right) = (arrangement.place($0.element), arrangement.place($1.element))
      return left == right ? $0.offset < $1.offset : left < right
    }.map(\.element)
    let boxes = Self.boxes(bytes[...])
    let type = mp4Box("ftyp", Array(try #require(boxes.first { $0.type == "ftyp" }).body))
    let movie = try #require(boxes.first { $0.type == "moov" }).body
    let media = mp4Box("mdat", sorted.flatMap { bytes[$0.bytes] })
    // Its size does not depend on the positions in it.
    let size = Self.movie(movie, of: sorted, from: 0).count
    let index = Self.movie(movie, of: sorted, from: type.count + (indexFirst ? size : 0) + 8)
    return type + (indexFirst ? index + media : media + index)
  }

  // MARK: - Private

  private static func movie(_ body: ArraySlice<UInt8>, of samples: [Sample], from start: Int) -> [UInt8] {
    var offsets: [Int: [Int]] = [:]
    var offset = start
    for sample in samples {
      offsets[sample.track, default: []].append(offset)
      offset += sample.bytes.count
    }
    func rebuilt(_ body: ArraySlice<UInt8>, _ track: Int) -> [UInt8] {
      boxes(body).flatMap { box -> [UInt8] in
        switch box.type {
        case _ where containers.contains(box.type): mp4Box(box.type, rebuilt(box.body, track))
        // A chunk for each sample.
        case "stsc": mp4Box("stsc", numbers([0, 1, 1, 1, 1]))
        case "stco":
          mp4Box("stco", numbers([0, offsets[track, default: []].count] + offsets[track, default: []]))
        default: mp4Box(box.type, Array(box.body))
        }
      }
    }
    var track = -1
    return mp4Box(
      "moov",
      boxes(body).flatMap { box -> [UInt8] in
        guard box.type == "trak" else { return mp4Box(box.type, Array(box.body)) }
        track += 1
        return mp4Box("trak", rebuilt(box.body, track))
      })
  }

  private static func samples(of track: ArraySlice<UInt8>, track index: Int) throws -> [Sample] {
    func find(_ path: String...) throws -> [Int] {
      var body = track
      for type in path { body = try #require(boxes(body).first { $0.type == type }).body }
      return stride(from: 0, to: body.count - 3, by: 4).map { number(body.dropFirst($0)) }
    }
    let media = ["mdia", "minf", "stbl"]
    let scale = Double(try find("mdia", "mdhd")[3])
    let isVideo = try find("mdia", "hdlr")[2] == number(Array("vide".utf8)[...])
    let sizes = try find(media[0], media[1], media[2], "stsz").dropFirst(3)
    let chunks = try find(media[0], media[1], media[2], "stco").dropFirst(2)
    let entries = try find(media[0], media[1], media[2], "stsc").dropFirst(2)
    let times = try find(media[0], media[1], media[2], "stts").dropFirst(2)
    let durations = stride(from: times.startIndex, to: times.endIndex, by: 2).flatMap {
      repeatElement(times[$0 + 1], count: times[$0])
    }
    var samples: [Sample] = []
    var time = 0
    for (number, chunk) in chunks.enumerated() {
      let indexes = Array(stride(from: entries.startIndex, to: entries.endIndex, by: 3))
      let entry = try #require(indexes.last { entries[$0] <= number + 1 })
      var offset = chunk
      for _ in 0..<entries[entry + 1] {
        let size = sizes[sizes.startIndex + samples.count]
        samples.append(
          Sample(
            isVideo: isVideo, time: Double(time) / scale, track: index, bytes: offset..<offset + size))
        time += durations[samples.count - 1]
        offset += size
      }
    }
    return samples
  }

  private static func boxes(_ bytes: ArraySlice<UInt8>) -> [Box] {
    var boxes: [Box] = []
    var rest = bytes
    while rest.count >= 8 {
      let size = max(8, number(rest))
      boxes.append(
        (String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self), rest.prefix(size).dropFirst(8)))
      rest = rest.dropFirst(size)
    }
    return boxes
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
  }

  private static func numbers(_ values: [Int]) -> [UInt8] {
    values.flatMap { bigEndian(UInt64($0), bytes: 4) }
  }
}
