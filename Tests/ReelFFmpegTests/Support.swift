import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

/// A single media file with its golden file.
struct Clip: Sendable, Hashable, CustomTestStringConvertible {
  /// Below Fixtures, as `media/h264.ts`.
  let path: String
  let goldenName: String

  var testDescription: String { path }
  var isSound: Bool { path.hasPrefix("media/") }
  /// Elementary streams have no timestamps of their own.
  var hasTimestamps: Bool { !path.hasSuffix(".h264") && !path.hasSuffix(".hevc") }

  var format: ContainerFormat { Fixtures.containerFormat(of: path) }

  init(_ path: String, golden: String? = nil) {
    self.path = path
    goldenName = golden ?? path.replacing("media/", with: "").replacing("bad/", with: "bad-")
  }

  func bytes() throws -> [UInt8] { try Fixtures.bytes(path) }

  func golden() throws -> Golden { try Golden(goldenName) }

  /// False if `moov` or the tracks of Matroska come last, because such a file can't be read forward only.
  func canBeReadForward() throws -> Bool {
    if path.hasSuffix("tracks-last.mkv") { return false }
    guard format == .mp4 else { return true }
    let bytes = try bytes()
    var offset = 0
    while offset + 8 <= bytes.count {
      let type = String(decoding: bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)
      if type == "moov" || type == "mdat" { return type == "moov" }
      offset += bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
    }
    return false
  }

  /// Every clip that has a golden file of its own.
  static let all: [Clip] = {
    let names =
      (try? FileManager.default.contentsOfDirectory(atPath: Fixtures.folder.appending(path: "golden").path))
      ?? []
    return names.sorted().compactMap { name in
      let stem = name.replacing(".framemd5", with: "")
      let path = stem.hasPrefix("bad-") ? "bad/\(stem.dropFirst(4))" : "media/\(stem)"
      guard FileManager.default.fileExists(atPath: Fixtures.folder.appending(path: path).path) else {
        return nil
      }
      return Clip(path, golden: stem)
    }
  }()

  static let sound = all.filter(\.isSound)

  /// Those that can be read to their end.
  static let whole = all.filter { !$0.path.contains("cut-") }
}

/// The access units of a clip's video, and their stream.
func videoUnits(_ clip: Clip) throws -> (stream: StreamInfo, packets: [Packet]) {
  try videoUnits(clip.bytes(), clip.format)
}

func videoUnits(
  _ bytes: [UInt8], _ format: ContainerFormat
) throws -> (stream: StreamInfo, packets: [Packet]) {
  let container = try ContainerReader(
    source: MemorySource(bytes), format: format, name: "test", logger: silentLogger)
  var packets: [Packet] = []
  while case .video(let packet) = try container.next() { packets.append(packet) }
  return (try #require(container.video), packets)
}

/// What a test compares of a frame.
struct Seen: Hashable {
  let ticks: Int64?
  let md5: String
  let isDamaged: Bool

  init(_ frame: Frame) throws {
    ticks = frame.presentationTicks
    md5 = try frame.md5()
    isDamaged = frame.isDamaged
  }
}

/// Log lines, with what they are about.
final class LogCollector: Sendable {
  struct Line: Sendable, Hashable {
    let level: Logger.Level
    let text: String
    let source: String?
  }

  private let collected = Locked<[Line]>([])

  var lines: [Line] { collected.withLock { $0 } }

  func makeLogger() -> Logger { Logger(label: "test") { _ in Handler(collector: self) } }

  private struct Handler: LogHandler {
    let collector: LogCollector
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let source = metadata["source"].map { "\($0)" }
      let line = Line(level: event.level, text: "\(event.message)", source: source)
      collector.collected.withLock { $0.append(line) }
    }
  }
}

extension [UInt8] {
  /// The offsets of the boxes of a type, wherever its name stands.
  func places(of type: String) -> [Int] {
    indices.dropLast(4).filter { self[$0..<$0 + 4].elementsEqual(type.utf8) }.map { $0 - 4 }
  }

  /// Gives a box another type.
  mutating func rename(_ place: Int, _ type: String) {
    replaceSubrange(place + 4..<place + 8, with: type.utf8)
  }
}
