import Foundation
import Logging
import Reel
import ReelTesting
import ReelFiles
import ReelTestSupport
import Testing

// The long example of Docs/Library.md, word for word.

/// Plays `source` from `start` to its end and writes its sound to a WAVE file. Returns a summary of the playback.
func play(
  _ source: String, from start: MediaTime, sound path: String,
  onFrame: @escaping @Sendable (MediaTime, PixelSize) -> Void
) async throws -> PlayerStatistics {
  let logger = Logger(label: "example")
  let player = Player(fetcher: TransportFetcher(logger: logger), logger: logger)
  let sound = try WAVOutput(path: path)
  player.attach(sound)
  // Called with each frame when it is due.
  try player.attach(CallbackOutput { frame in onFrame(frame.time, frame.presentationSize) })

  let item = PlayerItem(try MediaSource(argument: source))
  item.preferredForwardBufferDuration = .seconds(5)
  player.replaceCurrentItem(with: item)  // It begins to load.
  let events = player.events  // Begins with what has happened to the item so far.

  opening: for await status in item.status.values {
    switch status {
    case .unknown: continue
    case .readyToPlay: break opening
    case .failed(let error): throw error
    }
  }
  try await player.seek(to: start)
  player.play()
  playing: for await event in events {
    switch event {
    case .playedToEnd: break playing
    case .failed(let error): throw error
    case .stalled(let time): logger.warning("nothing left to show at \(time.seconds) s")
    default: continue
    }
  }
  let statistics = player.statistics
  try player.detach(sound)  // Finishes the file.
  await player.stopAndWait()
  return statistics
}

struct LibraryExampleTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test(
    "The Swift example plays what is behind a seek",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8"])
  func plays(path: String) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reel-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let source = Self.root.appending(path: "Fixtures").appending(path: path).path
    let file = folder.appending(path: "sound.wav")
    let shown = Locked<[(time: MediaTime, size: PixelSize)]>([])
    let start = MediaTime(value: 5, timescale: 2)
    let statistics = try await play(source, from: start, sound: file.path) { time, size in
      shown.withLock { $0.append((time, size)) }
    }
    // From 2.5 s to the end at 3 s, less the late ones; before them the first frame, unless the seek was earlier.
    let frames = shown.withLock { $0 }
    #expect(frames.count == statistics.shownFrameCount)
    #expect(frames.allSatisfy { $0.size == PixelSize(width: 256, height: 144) })
    #expect(frames.allSatisfy { $0.time >= start || $0.time == .zero })
    let played = frames.filter { $0.time >= start }
    #expect(played.first?.time == start)
    #expect(played.count + statistics.droppedFrameCount == 15)
    // Half a second of one channel in 16 bits at 48 kHz, less what the sound begins before the frame. If a frame was shown
    // before the seek, the file begins with silence for as long.
    let byteCount = try Data(contentsOf: file).count - 44
    #expect((20_000...27_600).contains(byteCount / 2))
  }
}
