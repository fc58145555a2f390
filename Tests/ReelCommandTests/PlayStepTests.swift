import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

/// `ffmpeg -i V -i A` puts both files on one timeline: so a frame and the audio beside it stand at the same time of both.
@Suite("Y4M and WAV files of reel play are in step", .hangLimit)
struct PlayStepTests {
  /// The two files of a run.
  private struct Files {
    let events: PlayEvents
    let video: Y4MFrames
    let audio: WaveSamples

    /// The length of the audio in seconds.
    var audioLength: Double {
      Double(audio.samples.count / audio.channelCount) / Double(audio.sampleRate)
    }

    /// The largest sample of a range in seconds.
    func loudness(_ range: Range<Double>) -> Int {
      let second = Double(audio.sampleRate * audio.channelCount)
      let indices = Int(range.lowerBound * second)..<Int(range.upperBound * second)
      return audio.samples[indices.clamped(to: audio.samples.indices)].map { abs(Int($0)) }.max() ?? 0
    }

    /// For each frame of the file, the number of the frame that was shown, if all frames of the clip differ.
    var shown: [Int] { video.numbers }

    /// Expects frames and audio of the same length, but for the padding of an audio encoder.
    func expectSameLength(_ seconds: Double, sourceLocation: SourceLocation = #_sourceLocation) {
      #expect(abs(video.length - seconds) < 0.001, sourceLocation: sourceLocation)
      #expect(
        audioLength > seconds - 0.001 && audioLength < seconds + 0.1, "\(audioLength) s",
        sourceLocation: sourceLocation)
    }
  }

  private func play(
    _ source: String, _ options: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Files {
    let folder = try TemporaryFolder()
    let rate = options.contains("--rate") ? [] : ["--rate", "max"]
    let result = try await Command.run(
      ["play", source, "--json", "--md5", "--y4m", folder.path + "/v.y4m", "--wav", folder.path + "/a.wav"]
        + rate + options, sourceLocation: sourceLocation)
    #expect(result.errorText.isEmpty, "\(result.errorText)", sourceLocation: sourceLocation)
    return Files(
      events: try PlayEvents(result), video: try Y4MFrames(folder.bytes("v.y4m")),
      audio: try WaveSamples(folder.bytes("a.wav")))
  }

  /// `hls-fmp4` has three segments of a second at 30 frames a second, and audio in segments of its own.
  private func play(
    faults: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Files {
    try await withSource("hls-fmp4/master.m3u8", faults: faults) { source in
      try await play(source, sourceLocation: sourceLocation)
    }
  }

  /// A segment of both rungs that is not there.
  private func videoFault(_ index: Int) -> String {
    ["high", "low"].map { "*/\($0)/segment-\(index).m4s=status:404" }.joined(separator: ",")
  }

  /// The frames around a second segment that is missing.
  private let hole = (0..<90).map { $0 < 30 ? $0 : max(29, $0 - 30) }

  // MARK: Holes

  @Test("A hole in the video is filled with its last frame, at any rate", arguments: ["max", "8"])
  func videoHole(rate: String) async throws {
    let files = try await withSource("hls-fmp4/master.m3u8", faults: videoFault(1)) {
      try await play($0, "--rate", rate)
    }
    files.expectSameLength(3)
    guard rate == "max" else { return }
    #expect(files.events.md5s.count == 60)
    #expect(files.shown == hole)
    #expect(files.loudness(1.2..<1.8) > 1000)
  }

  @Test("A hole in the audio is silence")
  func audioHole() async throws {
    let files = try await play(faults: "*/audio/segment-1.m4s=status:404")
    files.expectSameLength(3)
    #expect(files.shown == Array(0..<90))
    #expect(files.loudness(0.2..<0.8) > 1000)
    #expect(files.loudness(1.1..<1.9) == 0)
    #expect(files.loudness(2.2..<2.8) > 1000)
  }

  @Test("A hole in both")
  func hole() async throws {
    let files = try await play(faults: "*/segment-1.m4s=status:404")
    files.expectSameLength(3)
    #expect(files.shown == hole)
    #expect(files.loudness(1.1..<1.9) == 0)
    #expect(files.loudness(2.2..<2.8) > 1000)
  }

  @Test("The end of one is missing: the last frame stays, and silence follows")
  func end() async throws {
    let still = try await play(faults: videoFault(2))
    #expect(still.shown == (0..<still.video.frames.count).map { min($0, 59) })
    #expect(abs(still.video.length - 3) < 0.05, "\(still.video.length) s")
    #expect(abs(still.audioLength - 3) < 0.05, "\(still.audioLength) s")
    let silent = try await play(faults: "*/audio/segment-2.m4s=status:404,*/audio/segment-3.m4s=status:404")
    silent.expectSameLength(3)
    #expect(silent.loudness(2.1..<3) == 0)
  }

  // MARK: The beginning

  @Test("Audio before the first frame is left out")
  func earlyAudio() async throws {
    // The first frame is shown at 0.5 s.
    let files = try await play(Fixtures.path("media/editlist-empty.mp4"))
    #expect(files.shown == Array(0..<files.events.md5s.count))
    files.expectSameLength(0.5)
  }

  @Test("Audio that begins later follows silence")
  func lateAudio() async throws {
    let files = try await play(faults: "*/audio/segment-0.m4s=status:404")
    files.expectSameLength(3)
    #expect(files.loudness(0..<0.9) == 0)
    #expect(files.loudness(1.2..<1.8) > 1000)
  }

  @Test("Both begin at the place that was sought", arguments: ["0.5", "1.21"])
  func start(_ start: String) async throws {
    let path = Fixtures.path("media/audio-flac.mp4")
    let (whole, part) = (try await play(path), try await play(path, "--start", start))
    let time = try #require(part.events.times.first)
    let first = Int((time * whole.video.rate.value).rounded())
    let hasSameFrames = part.video.frames.elementsEqual(whole.video.frames.dropFirst(first))
    #expect(hasSameFrames)
    // From the frame's time to the one that was sought, there is silence, or the audio of a buffer that begins earlier.
    let (from, silence) = (sample(time, of: whole), sample(try #require(Double(start)) - time, of: whole))
    let (begins, rest) = (part.audio.samples.prefix(silence), part.audio.samples.dropFirst(silence))
    let belongs = zip(begins, whole.audio.samples.dropFirst(from)).allSatisfy { $0 == 0 || $0 == $1 }
    #expect(belongs)
    let isSame = rest.elementsEqual(whole.audio.samples.dropFirst(from + silence))
    #expect(isSame)
  }

  private func sample(_ time: Double, of files: Files) -> Int {
    Int((time * Double(files.audio.sampleRate)).rounded()) * files.audio.channelCount
  }

  // MARK: Rates and loops

  @Test("At a variable rate each frame stands at its time, to 20 ms")
  func variableRate() async throws {
    let path = Fixtures.path("media/rate-variable.mp4")
    let folder = try TemporaryFolder()
    let events = try await PlayEvents.play(path, "--rate", "max", "--md5", "--y4m", folder.path + "/v.y4m")
    let video = try Y4MFrames(folder.bytes("v.y4m"))
    #expect(video.rate.value >= 25)
    let (numbers, start) = (video.numbers, try #require(events.times.first))
    for (number, time) in events.times.enumerated() {
      let place = try #require(numbers.firstIndex(of: number))
      #expect(abs(Double(place) / video.rate.value - (time - start)) <= 0.02)
    }
    #expect(numbers.last == events.times.count - 1)
  }

  @Test("The rate of the header is exact, and frames do not drift")
  func exactRate() async throws {
    let folder = try TemporaryFolder()
    let path = Fixtures.path("media/rate-24000-1001.mp4")
    let events = try await PlayEvents.play(
      path, "--rate", "max", "--md5", "--loop", "--duration", "20", "--y4m", folder.path + "/v.y4m")
    let video = try Y4MFrames(folder.bytes("v.y4m"))
    #expect(video.rate == Rational(24000, 1001))
    #expect(video.numbers == Array(0..<events.md5s.count))
  }

  @Test("Each time through a loop begins at the same place of both files")
  func loop() async throws {
    let path = Fixtures.path("media/audio-flac.mp4")
    let once = try await play(path)
    let files = try await play(path, "--loop", "--duration", "7")
    let frames = files.video.frames
    let starts = frames.indices.dropFirst().filter { frames[$0] == frames[0] && frames[$0 - 1] != frames[0] }
    #expect(starts.count == 3)
    for start in starts {
      let place = sample(Double(start) / files.video.rate.value, of: files)
      let length = 1000
      let isSame = files.audio.samples.dropFirst(place).prefix(length)
        .elementsEqual(once.audio.samples.prefix(length))
      #expect(isSame, "at \(start)")
    }
  }

  @Test("Frames that are dropped in real time are repetitions of the ones before")
  func realTime() async throws {
    let files = try await withSource("hls-fmp4/master.m3u8") { try await play($0, "--rate", "8") }
    files.expectSameLength(3)
    let numbers = files.shown
    for (number, time) in files.events.times.enumerated() {
      #expect(numbers.firstIndex(of: number) == Int((time * 30).rounded()))
    }
  }

  @Test("A run that is limited ends both files with the last wanted frame")
  func duration() async throws {
    let files = try await play(Fixtures.path("media/audio-aac.mp4"), "--duration", "1.3")
    #expect(abs(files.video.length - 1.3) < 0.001)
    #expect(files.audioLength >= 1.3 && files.audioLength < 1.5)
  }
}
