import Foundation
import ReelTestSupport
import Testing

@Suite("Frames and audio through pipes into one ffmpeg", .hangLimit)
struct PipedOutputTests {
  /// What ffmpeg read from a run: the number of frames, and the bytes of 16-bit samples.
  private struct Content: Equatable {
    var frames = 0
    var soundBytes = 0
    /// The part of `soundBytes` that is silence at the end.
    var silentBytes = 0
  }

  /// The content that a run writes to files.
  private func files(_ arguments: [String], in folder: TemporaryFolder) async throws -> Content {
    let result = try await Command.run(
      ["play"] + arguments + ["--y4m", folder.path + "/a.y4m", "--wav", folder.path + "/a.wav", "--json"])
    #expect(result.status == 0, "\(result.errorText)")
    let samples = try WaveSamples(folder.bytes("a.wav")).samples
    return Content(
      frames: try Y4MFrames(folder.bytes("a.y4m")).frames.count, soundBytes: samples.count * 2,
      silentBytes: samples.reversed().prefix { $0 == 0 }.count * 2)
  }

  /// The content that a run writes to pipes. `inputs` are ffmpeg's input options, in order.
  private func pipes(
    _ arguments: [String], inputs: String, in folder: TemporaryFolder
  ) async throws -> Content {
    let script = """
      mkfifo s.wav
      "$@" --y4m - --wav s.wav 2>reel.log | ffmpeg -nostdin -v error -y \(inputs) -c:v libx264 -c:a pcm_s16le out.mkv \
        || exit 9
      exec ffmpeg -nostdin -v error -i out.mkv -c copy -f framemd5 -
      """
    let result = try await Command.run(["play"] + arguments, directory: folder.path, shell: script)
    let log = String(decoding: (try? folder.bytes("reel.log")) ?? [], as: UTF8.self)
    #expect(result.status == 0, "\(result.errorText)\(log)")
    #expect(log.contains("played to the end") || log.contains("stopped after"), "\(log)")
    var content = Content()
    // Stream, dts, pts, duration, size, hash (libavformat's framehash).
    for line in result.outputLines where !line.hasPrefix("#") {
      let fields = line.split(separator: ",").map { $0.filter { $0 != " " } }
      guard fields.count > 4, let size = Int(fields[4]) else { continue }
      // Without -map, ffmpeg puts the video first.
      if fields[0] == "0" {
        content.frames += 1
      } else {
        content.soundBytes += size
      }
    }
    return content
  }

  @Test(
    "All frames and samples arrive, whichever input is first",
    arguments: [
      ["media/audio-aac.mp4", "--rate", "max", "--loop", "--duration", "12"],
      ["media/audio-aac.ts", "--rate", "max"], ["hls-fmp4/master.m3u8", "--rate", "max"],
      ["media/audio-flac.mp4", "--rate", "1"],
    ], ["-i - -i s.wav", "-i s.wav -i - -map 0:a -map 1:v"])
  func both(arguments: [String], inputs: String) async throws {
    let folder = try TemporaryFolder()
    let arguments = [Fixtures.path(arguments[0])] + arguments.dropFirst()
    let expected = try await files(arguments, in: folder)
    #expect(expected.soundBytes > 0)
    let content = try await pipes(arguments, inputs: inputs, in: folder)
    // A file ends with the last frame, and a pipe with the audio.
    let least = expected.soundBytes - expected.silentBytes
    #expect((least...expected.soundBytes).contains(content.soundBytes))
    // At a rate of 1, late frames are dropped.
    if arguments.contains("max") { #expect(content.frames == expected.frames) }
    #expect(content.frames > 0)
  }
}
