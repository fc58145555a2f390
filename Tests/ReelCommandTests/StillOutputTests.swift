import Foundation
import ReelTestSupport
import Testing

@Suite("-o with the name of a file, and formats", .hangLimit)
struct StillOutputTests {
  /// The first bytes of the files of each format.
  private static let signatures: [(ending: String, bytes: [UInt8])] = [
    ("jpg", [0xff, 0xd8]), ("jpeg", [0xff, 0xd8]), ("png", [0x89, 0x50]), ("webp", Array("RIFF".utf8)),
    ("avif", [0, 0, 0]), ("ppm", Array("P6".utf8)), ("y4m", Array("YUV4MPEG2".utf8)), ("PNG", [0x89, 0x50]),
  ]

  @Test("A name with the ending of an image is a file", arguments: ["frames", "poster"])
  func files(command: String) async throws {
    for (ending, bytes) in Self.signatures {
      let folder = try TemporaryFolder()
      let result = try await Command.run(
        command, goodSource, "-o", "new/x.\(ending)", directory: folder.path)
      #expect(result.status == 0, "\(ending): \(result.errorText)")
      #expect(result.outputText.hasPrefix("new/x.\(ending)\t"), "\(result.outputText)")
      #expect(folder.names("new") == ["x.\(ending)"])
      #expect(try folder.bytes("new/x.\(ending)").starts(with: bytes), "\(ending)")
    }
  }

  @Test("All commands take the same formats", arguments: ["frames", "poster", "storyboard"])
  func formats(command: String) async throws {
    for (format, bytes) in Self.signatures.dropLast() {
      let folder = try TemporaryFolder()
      let result = try await Command.run(
        command, goodSource, "--format", format, "-o", folder.path, "--quiet")
      if command == "storyboard", format == "y4m" {
        #expect(result.status == 64)
        #expect(result.errorText.contains("y4m holds decoded samples"), "\(result.errorText)")
        continue
      }
      #expect(result.status == 0, "\(format): \(result.errorText)")
      let ending = format == "jpeg" ? "jpg" : format
      let name = try #require(folder.names().first { $0.hasSuffix(".\(ending)") }, "\(format)")
      #expect(try folder.bytes(name).starts(with: bytes), "\(format)")
    }
  }

  @Test(
    "One file for several frames or sources is refused",
    arguments: [
      ["frames", goodSource, "--count", "2"], ["frames", goodSource, "--at", "0", "--at", "0.5"],
      ["frames", goodSource, "--every", "0.5"], ["frames", goodSource, goodSource],
      ["poster", goodSource, goodSource],
      ["frames", goodSource, "--per-host", "2"], ["poster", goodSource, "--resume"],
      ["frames", goodSource, "--format", "jpg"], ["poster", goodSource, "--format", "ppm"],
      ["storyboard", goodSource],
    ])
  func refused(arguments: [String]) async throws {
    let folder = try TemporaryFolder()
    try await Command.run(arguments + ["-o", "x.png"], directory: folder.path, status: 64)
    #expect(folder.names().isEmpty)
  }

  @Test(
    "The name of a file in a format that is not written is refused with those that are",
    arguments: ["frames", "poster"], ["x.gif", "new/x.tiff", "x.BMP", "x.mp4", "x.heic"])
  func otherFormats(command: String, name: String) async throws {
    let folder = try TemporaryFolder()
    let result = try await Command.run(command, goodSource, "-o", name, directory: folder.path, status: 64)
    #expect(
      result.errorText.contains(
        "-o \(name): the name of a file ends in .jpg, .png, .webp, .avif, .ppm, .y4m;"),
      "\(result.errorText)")
    #expect(folder.names().isEmpty)
    // A folder may have any name, and names of folders may have dots.
    try await Command.run(command, goodSource, "-o", "\(name)/", directory: folder.path, status: 0)
    try await Command.run(command, goodSource, "-o", "v1.2/run.of.today", directory: folder.path, status: 0)
    #expect(folder.names("v1.2/run.of.today").count == 1)
  }

  @Test("A folder with such a name stays one, and a Y4M file holds several frames")
  func exceptions() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(atPath: folder.path("x.png"), withIntermediateDirectories: true)
    let inFolder = try await Command.run("frames", goodSource, "-o", "x.png", directory: folder.path)
    #expect(inFolder.outputText.hasPrefix("x.png/h264-faststart-000001.ppm\t"), "\(inFolder.outputText)")
    try await Command.run(
      "frames", goodSource, "--count", "2", "-o", "x.y4m", directory: folder.path, status: 0)
    #expect(folder.names().contains("x.y4m"))
  }
}
