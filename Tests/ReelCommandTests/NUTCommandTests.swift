import Foundation
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite("Frames and audio as NUT, read by ffmpeg", .hangLimit)
struct NUTCommandTests {
  /// A frame, or some samples, of `-f framemd5`.
  private struct Packet {
    /// In seconds.
    var time: Double
    var byteCount: Int
    var md5: String
  }

  /// The packets of each stream.
  private func packets(_ lines: [String]) throws -> [[Packet]] {
    var (units, streams): ([Double], [[Packet]]) = ([], [])
    for line in lines {
      if line.hasPrefix("#tb ") {
        let ratio = try #require(line.split(separator: ":").last).split(separator: "/").compactMap {
          Double($0.filter { $0 != " " })
        }
        units.append(ratio[0] / ratio[1])
        streams.append([])
      }
      // Stream, dts, pts, duration, size, hash (libavformat's framehash).
      let fields = line.split(separator: ",").map { $0.filter { $0 != " " } }
      guard !line.hasPrefix("#"), fields.count == 6, let stream = Int(fields[0]),
        let ticks = Double(fields[2]),
        let count = Int(fields[4])
      else { continue }
      streams[stream].append(Packet(time: ticks * units[stream], byteCount: count, md5: fields[5]))
    }
    return streams
  }

  private static let decode =
    "ffmpeg -nostdin -v error -i \"$input\" -fps_mode passthrough -enc_time_base -1 -f framemd5"

  /// What ffmpeg reads from a pipe.
  ///
  /// - Parameter reader: A command that copies the stream to ffmpeg.
  private func piped(
    _ arguments: [String], through reader: String = "cat", sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [[Packet]] {
    let folder = try TemporaryFolder()
    let script = "input=-; \"$@\" --nut - 2>reel.log | { \(reader); } | \(Self.decode) -"
    let result = try await Command.run(
      ["play"] + arguments, directory: folder.path, shell: script, sourceLocation: sourceLocation)
    let log = String(decoding: (try? folder.bytes("reel.log")) ?? [], as: UTF8.self)
    #expect(
      result.status == 0 && result.errorText.isEmpty, "\(result.errorText)", sourceLocation: sourceLocation)
    #expect(
      log.contains("played to the end") || log.contains("stopped after"), "\(log)",
      sourceLocation: sourceLocation)
    return try packets(result.outputLines)
  }

  /// What ffmpeg decodes from a file.
  private func decoded(_ path: String, _ options: String) async throws -> [[Packet]] {
    let result = try await Command.run(
      [], shell: "input='\(path)'; \(Self.decode.replacing("-fps_mode", with: "\(options) -fps_mode")) -",
      status: 0)
    return try packets(result.outputLines)
  }

  @Test(
    "Frames and times are those that ffmpeg decodes",
    arguments: [
      "h264.ts", "h264-bframes.mp4", "rate-variable.mp4", "rate-24000-1001.mp4", "rate-60000-1001.mp4",
      "hevc-main10.mp4", "h264.mkv", "h264-gray.mp4", "odd-444-161x91.mp4",
    ])
  func frames(name: String) async throws {
    let path = Fixtures.path("media/\(name)")
    let expected = try #require(try await decoded(path, "-map 0:v:0").first)
    let found = try #require(try await piped([path, "--rate", "max"]).first)
    #expect(found.map(\.md5) == expected.map(\.md5))
    let start = try #require(expected.first?.time)
    let isInTime = zip(found, expected).allSatisfy { abs($0.time - ($1.time - start)) < 1e-6 }
    #expect(isInTime, "\(found.map(\.time)) \(expected.map(\.time))")
  }

  @Test(
    "Samples are those of a WAVE file, at the same times",
    arguments: [
      "media/audio-aac.mp4", "media/audio-aac.ts", "media/audio-aac.flv", "media/audio-pcm.mov",
      "hls-fmp4/master.m3u8", "media/editlist-empty.mp4",
    ])
  func audio(name: String) async throws {
    let folder = try TemporaryFolder()
    let arguments = ["play", Fixtures.path(name), "--rate", "max"]
    for output in [["--nut", "a.nut"], ["--wav", "a.wav"]] {
      try await Command.run(arguments + output, directory: folder.path, status: 0)
    }
    #expect(folder.names() == ["a.nut", "a.wav"])
    let streams = try await decoded(folder.path("a.nut"), "-c:a pcm_s16le")
    let samples = try await Command.run(
      [], shell: "ffmpeg -nostdin -v error -i '\(folder.path("a.nut"))' -map 0:a -f s16le -")
    let found = samples.output
    #expect(streams.count == 2 && streams[1].reduce(0) { $0 + $1.byteCount } == found.count)
    let wave = try WaveSamples(folder.bytes("a.wav"))
    let expected = wave.samples.flatMap { sample in
      [UInt8(truncatingIfNeeded: sample), UInt8(truncatingIfNeeded: sample >> 8)]
    }
    // The file begins with silence where audio begins later, and ends with silence where it ends earlier.
    let start = Int((try #require(streams[1].first?.time) * Double(wave.sampleRate)).rounded())
    let rest = expected.dropFirst(start * wave.channelCount * 2)
    #expect(!found.isEmpty && rest.starts(with: found))
    #expect(rest.dropFirst(found.count).allSatisfy { $0 == 0 })
    var end = start
    for packet in streams[1] {
      #expect(abs(packet.time * Double(wave.sampleRate) - Double(end)) < 0.5)
      end += packet.byteCount / (wave.channelCount * 2)
    }
  }

  @Test("A slow reader gets everything", arguments: ["media/audio-aac.mp4", "hls-fmp4/master.m3u8"])
  func slowReader(name: String) async throws {
    let arguments = [Fixtures.path(name), "--rate", "max", "--loop", "--duration", "8"]
    let reader = "sleep 1; dd bs=64k count=40 iflag=fullblock status=none; sleep 1; cat"
    let (slow, fast) = (try await piped(arguments, through: reader), try await piped(arguments))
    #expect(slow.count == 2 && fast.count == 2)
    for (slow, fast) in zip(slow, fast) {
      #expect(!slow.isEmpty && slow.map(\.md5) == fast.map(\.md5) && slow.map(\.time) == fast.map(\.time))
    }
  }

  @Test("Audio that begins late, and audio that is muted")
  func lateAudio() async throws {
    let late = try await withSource(
      "hls-fmp4/master.m3u8", faults: "*/audio/segment-0.m4s=status:404"
    ) { source in try await piped([source, "--rate", "max"]) }
    #expect(late.count == 2 && late[0].count == 90)
    let start = try #require(late[1].first?.time)
    #expect(start > 0.9 && start < 1.2, "\(start)")
    let muted = try await piped([Fixtures.path("media/audio-aac.mp4"), "--rate", "max", "--mute"])
    #expect(muted.count == 1 && !muted[0].isEmpty)
  }

  @Test("All frames have the size of the first, upright")
  func sizes() async throws {
    let changing = try #require(
      try await piped([Fixtures.path("media/h264-size-change.ts"), "--rate", "max"]).first)
    #expect(changing.count > 2 && Set(changing.map(\.byteCount)).count == 1)
    let path = Fixtures.path("media/rotate-90.mp4")
    let turned = try #require(try await piped([path, "--rate", "max"]).first)
    #expect(try await decoded(path, "-map 0:v:0").first?.map(\.md5) == turned.map(\.md5))
  }

  @Test("Ctrl-C leaves a whole file")
  func interrupt() async throws {
    let folder = try TemporaryFolder()
    let command = try Command([
      "play", Fixtures.path("media/audio-aac.mp4"), "--loop", "--nut", folder.path("a.nut"),
    ])
    try await until {
      let part = folder.names().first { $0.contains(".part-") }
      return (part.flatMap { try? folder.bytes($0).count } ?? 0) > 500_000 || !command.isRunning
    }
    command.interrupt()
    #expect(try await command.result().status == 130)
    #expect(folder.names() == ["a.nut"])
    let streams = try await decoded(folder.path("a.nut"), "-c:a pcm_s16le")
    #expect(streams.count == 2 && streams.allSatisfy { !$0.isEmpty })
  }

  @Test("Y4M and WAVE don't both go to pipes")
  func pipes() async throws {
    let folder = try TemporaryFolder()
    for name in ["s.wav", "v.y4m"] { try #require(mkfifo(folder.path(name), 0o600) == 0) }
    for y4m in ["-", folder.path("v.y4m")] {
      let result = try await Command.run("play", goodSource, "--y4m", y4m, "--wav", folder.path("s.wav"))
      #expect(result.status == 64 && result.output.isEmpty)
      #expect(result.errorText.contains("--nut"), "\(result.errorText)")
    }
  }
}
