import Foundation
import Logging
import ReelFFmpeg
import ReelPlayback
import ReelTesting
import ReelTransport
import Testing

// The example of README.md, word for word.

/// Writes the first picture of `source` (a path or URL of a media file, an HLS playlist or an MPD) as PPM.
func writeFirstPicture(of source: String, to file: URL) async throws {
  let logger = Logger(label: "example")
  let extractor = FrameExtractor(
    fetcher: TransportFetcher(logger: logger), gate: CoreGate(), logger: logger)
  try await extractor.extract(.first, from: try MediaSource(argument: source)) { picture in
    let image = try FrameConverter().convert(
      picture.frame, geometry: picture.geometry(), orientation: picture.orientation)
    try Data(image.ppmHeader + image.pixels).write(to: file)
  }
}

struct ReadmeExampleTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  @Test("The Swift example in README.md is the code in this file")
  func readmeHoldsThisCode() throws {
    let readme = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
    let code = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let blocks = readme.components(separatedBy: "```swift\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    let example = try #require(blocks.first { $0.contains("func writeFirstPicture") })
    let lines = example.split(separator: "\n", omittingEmptySubsequences: false)
    let imports = lines.prefix { !$0.isEmpty }
    #expect(imports.count > 1 && imports.allSatisfy { $0.hasPrefix("import ") })
    #expect(imports.allSatisfy { "\n\(code)".contains("\n\($0)\n") })
    // The file imports what the test needs too, so that the rest is compared apart from the imports.
    let body = lines.dropFirst(imports.count + 1).joined(separator: "\n")
    #expect(body.contains("FrameExtractor"))
    #expect(code.contains(body))
  }

  @Test(
    "The Swift example writes a whole PPM", arguments: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd"])
  func writesPicture(path: String) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reel-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let origin = try await Origin.start(
      Origin.Configuration(directory: Self.root.appending(path: "Fixtures")))
    let file = folder.appending(path: "first.ppm")
    let result: Result<Void, any Error>
    do {
      result = .success(try await writeFirstPicture(of: origin.url(path).absoluteString, to: file))
    } catch {
      result = .failure(error)
    }
    await origin.stop()
    try result.get()
    let bytes = try Data(contentsOf: file)
    let header = Data("P6\n256 144\n255\n".utf8)
    #expect(bytes.starts(with: header))
    #expect(bytes.count == header.count + 256 * 144 * 3)
    #expect(Set(bytes.dropFirst(header.count)).count > 100)
  }
}
