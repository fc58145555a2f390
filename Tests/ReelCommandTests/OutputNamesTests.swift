import Foundation
import ReelTesting
import ReelTestSupport
import Testing

@Suite("Files that are named after their sources", .hangLimit)
struct OutputNamesTests {
  /// Two presentations with the same name and different frames.
  private let first = Fixtures.path("hls-ts/high/index.m3u8")
  private let second = Fixtures.path("stills/high/playlist.m3u8")

  @Test(
    "An existing file is kept, unless --overwrite is given",
    arguments: [
      ("frames", "ppm"), ("frames", "png"), ("frames", "y4m"), ("play", "ppm"), ("play", "png"),
      ("poster", "jpg"),
    ])
  func acrossRuns(command: String, format: String) async throws {
    let folder = try TemporaryFolder()
    let options = ["-o", folder.path, "--format", format]
    let name = ["y4m", "jpg"].contains(format) ? "high.\(format)" : "high-000001.\(format)"
    func run(_ source: String, _ more: String...) async throws -> CommandResult {
      try await Command.run(
        [command, source] + (command == "play" ? ["--rate", "max", "--duration", "0.05"] : []) + options
          + more)
    }
    #expect(try await run(first).status == 0)
    let bytes = try folder.bytes(name)
    for source in [first, second] {
      let refused = try await run(source)
      #expect(refused.status == 73)
      expectErrorLine(refused, names: name, words: "--overwrite")
      #expect(try folder.bytes(name) == bytes)
    }
    let forced = try await run(second, "--overwrite")
    #expect(forced.status == 0, "\(forced.errorText)")
    #expect(try folder.bytes(name) != bytes)
    #expect(folder.names().allSatisfy { !$0.contains(".part-") })
  }

  @Test(
    "Names that are made different don't meet those of other sources, in whatever letter case",
    arguments: [["a.ts", "a.mkv", "a_2.ts"], ["Clip.ts", "clip.mkv", "CLIP_2.ts"]])
  func collisions(names: [String]) async throws {
    let folder = try TemporaryFolder()
    let sources = try names.map { name in
      try folder.write(Fixtures.bytes(name.hasSuffix("mkv") ? "media/h264.mkv" : "media/h264.ts"), to: name)
    }
    try await Command.run(["frames"] + sources + ["-o", folder.path("out")], status: 0)
    #expect(Set(folder.names("out").map { $0.lowercased() }).count == 3)
  }
}
