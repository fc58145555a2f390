import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

@Suite("Decoding buffered sound", .hangLimit)
struct AudioPipelineTests {
  /// A pipeline between a buffer and a queue, turned by hand.
  private final class Bench {
    let session = makeHandTurnedSession()
    let pipeline: AudioPipeline

    init() { pipeline = AudioPipeline(session: session, name: "test", logger: silentLogger) }

    convenience init(_ path: String) throws {
      self.init()
      // A frame for each moment: a seek goes by the key frames of the video.
      try append(path, kinds: [.video, .audio])
      session.end([.video, .audio])
    }

    func append(
      _ path: String, loop: LoopIteration = LoopIteration(), start: MediaTime = .zero,
      kinds: Set<TrackKind> = [.audio]
    ) throws {
      for packet in try readPackets(path, wantsAudio: true, loop: loop, start: start)
      where kinds.contains(packet.kind) {
        session.append(packet)
      }
    }

    func turn() throws { try pipeline.turn(session.look { $0.audioJob }) }

    func seek(to time: MediaTime) throws { try #require(session.seekInside(to: time)) }

    /// Turns until there is nothing more.
    func rest() throws -> [AudioQueue.Chunk] {
      var chunks: [AudioQueue.Chunk] = []
      while !session.isAudioDrained {
        try turn()
        let more = session.takeAudio()
        if more.isEmpty { break }
        chunks += more
      }
      return chunks
    }
  }

  /// What the decoder makes of a clip's sound by itself.
  private func decoded(_ path: String) throws -> [PCMBuffer] {
    let packets = try readPackets(path, wantsAudio: true).filter { $0.kind == .audio }
    let decoder = try AudioDecoder(
      stream: try #require(packets.first).span.stream, name: "test", logger: silentLogger)
    var buffers: [PCMBuffer] = []
    for packet in packets { buffers += try decoder.decode(packet.unit) }
    return try (buffers + decoder.drain()).filter { $0.frameCount > 0 }
  }

  private func samples(_ chunks: [AudioQueue.Chunk]) -> [Float] { chunks.flatMap(\.buffer.samples) }

  @Test(
    "All sound of a clip comes out as the decoder makes it, without a hole",
    arguments: [
      "audio-aac.mp4", "audio-aac.ts", "audio-ac3.ts", "audio-flac.mp4", "audio-opus.mkv", "audio-pcm.mov",
      "audio-mp3.mp4", "audio-vorbis.mkv",
    ])
  func all(name: String) throws {
    let path = "media/\(name)"
    let expected = try decoded(path)
    let chunks = try Bench(path).rest()
    #expect(samples(chunks) == expected.flatMap(\.samples))
    for (chunk, next) in zip(chunks, chunks.dropFirst()) {
      #expect(abs((next.time - chunk.end).seconds) < 0.002)
    }
  }

  @Test("No more is decoded ahead than there is room for")
  func room() throws {
    let bench = try Bench("media/audio-aac.mp4")
    try bench.turn()
    try bench.turn()
    let chunks = bench.session.takeAudio()
    let length = try #require(chunks.last).end - chunks[0].time
    #expect(length >= MediaTime(value: 1, timescale: 2))
    #expect(length < MediaTime(value: 6, timescale: 10))
    #expect(!bench.session.isAudioDrained)
    #expect(try samples(chunks + bench.rest()) == decoded("media/audio-aac.mp4").flatMap(\.samples))
  }

  @Test(
    "After a seek the sound begins at that very place, also while it is decoded",
    arguments: ["audio-flac.mp4", "audio-pcm.mov"])
  func seek(name: String) throws {
    let path = "media/\(name)"
    let all = try decoded(path)
    try #require(!all.isEmpty)
    let rate = all[0].sampleRate
    let channels = all[0].channelCount
    let whole = all.flatMap(\.samples)
    let bench = try Bench(path)
    for sample in [0, 1, 700, rate / 2, rate / 2 + 123, rate / 4, rate / 3] {
      try bench.turn()
      let place = MediaTime(value: Int64(sample), timescale: Int32(rate))
      try bench.seek(to: place)
      try bench.turn()
      let chunks = bench.session.takeAudio()
      #expect(try #require(chunks.first).time == place)
      let heard = samples(chunks)
      #expect(heard == Array(whole[(sample * channels)...].prefix(heard.count)), "from \(sample)")
    }
    try bench.seek(to: MediaTime(value: Int64(rate / 5), timescale: Int32(rate)))
    #expect(try samples(bench.rest()) == Array(whole[(rate / 5 * channels)...]))
  }

  @Test(
    "After a seek lossy sound begins in time", arguments: ["audio-aac.mp4", "audio-aac.ts", "audio-opus.mkv"])
  func seekInLossy(name: String) throws {
    let bench = try Bench("media/\(name)")
    for milliseconds in [500, 20, 700, 333] as [Int64] {
      let place = MediaTime(value: milliseconds, timescale: 1000)
      try bench.seek(to: place)
      try bench.turn()
      let chunks = bench.session.takeAudio()
      // Matroska counts in milliseconds.
      let late = try #require(chunks.first).time - place
      #expect(late >= .zero && late <= MediaTime(value: 1, timescale: 1000))
    }
  }

  @Test("Another span has a decoder of its own, and what was heard already is not heard again")
  func spans() throws {
    let bench = Bench()
    try bench.append("media/audio-flac.mp4")
    let first = try decoded("media/audio-flac.mp4").flatMap(\.samples)
    let second = try decoded("media/audio-pcm.mov")
    // Half a second of it stands before the end of the first.
    let end = bench.session.look { $0.packets.end(of: .audio) }
    let length = try #require(end)
    let start = length - MediaTime(value: 1, timescale: 2)
    try bench.append("media/audio-pcm.mov", start: start)
    bench.session.end([.audio])
    let chunks = try bench.rest()
    #expect(Array(samples(chunks).prefix(first.count)) == first)
    let added = chunks.last.map { $0.end - length } ?? .zero
    let expected = second.reduce(MediaTime.zero) { $0 + $1.duration } - MediaTime(value: 1, timescale: 2)
    #expect(abs((added - expected).seconds) < 0.05)
    for (chunk, next) in zip(chunks, chunks.dropFirst()) { #expect(next.time >= chunk.end) }
  }

  @Test("Another time through the item goes on with its shift")
  func iterations() throws {
    let bench = Bench()
    try bench.append("media/audio-pcm.mov")
    let end = bench.session.look { $0.packets.end(of: .audio) }
    let shift = try #require(end)
    try bench.append("media/audio-pcm.mov", loop: LoopIteration(iteration: 1, shift: shift))
    bench.session.end([.audio])
    let once = try decoded("media/audio-pcm.mov").flatMap(\.samples)
    let chunks = try bench.rest()
    #expect(samples(chunks) == once + once)
    #expect(Set(chunks.map(\.shift)) == [.zero, shift])
    for (chunk, next) in zip(chunks, chunks.dropFirst()) { #expect(chunk.end == next.time) }
  }

  @Test("Packets that come one by one give the same sound; it ends when the buffer does")
  func oneByOne() throws {
    let bench = Bench()
    var heard: [Float] = []
    for packet in try readPackets("media/audio-aac.ts", wantsAudio: true) where packet.kind == .audio {
      bench.session.append(packet)
      try bench.turn()
      heard += samples(bench.session.takeAudio())
    }
    #expect(!bench.session.isAudioDrained)
    bench.session.end([.audio])
    heard += samples(try bench.rest())
    #expect(bench.session.isAudioDrained)
    #expect(try heard == decoded("media/audio-aac.ts").flatMap(\.samples))
  }

  @Test("Another stream is decoded after the first")
  func anotherStream() throws {
    let bench = try Bench("media/audio-pcm.mov")
    _ = try bench.rest()
    bench.session.change { state, _ in
      state.packets.dropAudio(isSeparate: false)
      state.moveAudioDecoder(to: nil)
    }
    try bench.append("media/audio-flac.mp4")
    bench.session.end([.audio])
    #expect(try samples(bench.rest()) == decoded("media/audio-flac.mp4").flatMap(\.samples))
  }
}
