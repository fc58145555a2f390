import Foundation
import ReelCore
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@testable import ReelFiles

@Suite("Files that exist already")
struct OutputFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ text: String, existing: ExistingFiles) throws {
    let file = try OutputFile(path: folder.path("a.ppm"), existing: existing)
    try file.write(Array(text.utf8))
    try file.commit()
  }

  private func text() throws -> String { try folder.text("a.ppm") }

  @Test("They are kept, unless they are to be replaced")
  func kept() throws {
    let (kept, replaced) = (ExistingFiles(areReplaced: false), ExistingFiles(areReplaced: true))
    try write("first", existing: kept)
    let refusal = #expect(throws: ReelError.self) { try write("second", existing: kept) }
    #expect(refusal?.kind == .cannotCreateOutput)
    #expect(refusal?.advice?.contains("--overwrite") == true)
    #expect(try text() == "first" && folder.names() == ["a.ppm"])
    try write("third", existing: replaced)
    #expect(try text() == "third" && folder.names() == ["a.ppm"])
  }

  @Test("The source itself is never replaced, by any path that leads to it")
  func source() throws {
    try folder.write("media", to: "a.ppm")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("a.ppm"))
    for path in ["a.ppm", "link"] {
      let existing = ExistingFiles(areReplaced: true, source: folder.path(path))
      let refusal = #expect(throws: ReelError.self) { try write("frame", existing: existing) }
      #expect(refusal?.kind == .cannotCreateOutput)
    }
    #expect(try text() == "media")
  }

  @Test("If several files of one name are written at once, one gets it")
  func race() throws {
    // Each is begun before any is finished, and its temporary name is that of the process.
    let files = try (0..<8).map { index in
      let file = try OutputFile(path: folder.path("a.ppm"), existing: ExistingFiles(areReplaced: false))
      try file.write(Array("\(index)".utf8))
      #expect(
        rename(folder.path(".a.ppm.part-\(getpid())"), folder.path("part-\(index)")) == 0)
      return file
    }
    var committedCount = 0
    for (index, file) in files.enumerated() {
      #expect(rename(folder.path("part-\(index)"), folder.path(".a.ppm.part-\(getpid())")) == 0)
      do {
        try file.commit()
        committedCount += 1
      } catch {
        #expect(error.kind == .cannotCreateOutput)
      }
    }
    #expect(committedCount == 1)
    #expect(try text() == "0" && folder.names() == ["a.ppm"])
  }
}
