import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading

/// Outputs that show whether frames and audio of a player are in step: their output times, and files.
struct StepWitness {
  /// The times of what a player hands out.
  struct Handed: Sendable {
    var time: MediaTime
    var outputTime: MediaTime
    var length: MediaTime

    /// The difference of both times in seconds, which is the same for what belongs together.
    var offset: Double { (time - outputTime).seconds }
  }

  final class Screen: FrameOutput {
    let isExternal = false
    let all = Locked<[Handed]>([])
    let end = Locked<MediaTime?>(nil)

    func show(_ frame: VideoFrame) {
      let handed = Handed(time: frame.time, outputTime: frame.outputTime, length: frame.displayTime)
      all.withLock { $0.append(handed) }
    }

    func ended(at outputTime: MediaTime) { end.withLock { $0 = outputTime } }

    func finish() {}
  }

  final class Speaker: AudioOutput {
    let all = Locked<[Handed]>([])

    func write(_ audio: TimedAudio) {
      let handed = Handed(time: audio.time, outputTime: audio.outputTime, length: audio.buffer.duration)
      all.withLock { $0.append(handed) }
    }

    func finish() {}
  }

  let screen = Screen()
  let speaker = Speaker()
  let folder: TemporaryFolder

  init(of stage: SimulatedStage) throws {
    folder = try TemporaryFolder()
    try stage.player.attach(screen)
    try stage.player.attach(Y4MOutput(path: folder.path("v.y4m")))
    stage.player.attach(speaker)
    stage.player.attach(try WAVOutput(path: folder.path("a.wav")))
  }

  /// Expects that each piece of audio belongs to the frame on show at its output time, and that the files, of 30
  /// frames a second and 48,000 samples, are as long as each other.
  func expectStep(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let (frames, audio) = (screen.all.withLock { $0 }, speaker.all.withLock { $0 })
    #expect(frames.first?.outputTime == .zero, sourceLocation: sourceLocation)
    let isRising = zip(frames, frames.dropFirst()).allSatisfy { $0.outputTime < $1.outputTime }
    #expect(isRising, sourceLocation: sourceLocation)
    #expect(audio.count > 10, sourceLocation: sourceLocation)
    // The audio of an item may begin before its first frame, beside the last one of the iteration before.
    for piece in audio where piece.outputTime >= .zero && piece.time >= .zero {
      let frame = frames.last { $0.outputTime <= piece.outputTime }
      #expect(
        frame.map { abs($0.offset - piece.offset) < 0.001 } ?? false,
        "\(piece) beside \(String(describing: frame))", sourceLocation: sourceLocation)
    }
    let video = try folder.bytes("v.y4m")
    let header = try #require(video.firstIndex(of: 10)) + 1
    let marker = Data("FRAME\n".utf8)
    var (count, rest) = (0, Data(video[header...]))
    while let range = rest.range(of: marker) {
      count += 1
      rest = rest[range.upperBound...]
    }
    let channels = Int(try folder.bytes("a.wav")[58])
    let length = Double((try folder.bytes("a.wav").count - 80) / 2 / max(1, channels)) / 48000
    #expect(
      abs(length - Double(count) / 30) < 0.101, "\(length) s beside \(count) frames",
      sourceLocation: sourceLocation)
  }
}
