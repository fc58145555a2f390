import Foundation
import ReelCore
import ReelTestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@testable import ReelPlayback

@Suite("Only the source that wrote a file replaces it")
struct OutputRecordTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(
    _ text: String, to name: String = "a.ppm", by source: String, overwrites: Bool = false,
    attributes: Bool = true
  ) throws {
    let record = OutputRecord(
      directory: folder.url.path, overwrites: overwrites, usesAttributes: attributes)
    let owner = OutputFile.Owner(record: record, source: OutputRecord.Source(source))
    let file = try OutputFile(path: folder.path(name), owner: owner)
    try file.write(Array(text.utf8))
    try file.commit()
  }

  private func text(_ name: String = "a.ppm") throws -> String {
    String(decoding: try folder.bytes(name), as: UTF8.self)
  }

  @Test("With extended attributes, and with a hidden file instead", arguments: [true, false])
  func owners(attributes: Bool) throws {
    try write("first", by: "a", attributes: attributes)
    try write("second, longer", by: "a", attributes: attributes)
    #expect(try text() == "second, longer")
    let refusal = #expect(throws: ReelError.self) {
      try write("third", by: "b", attributes: attributes)
    }
    #expect(refusal?.kind == .cannotCreateOutput)
    #expect(refusal?.advice?.contains("--overwrite") == true)
    #expect(try text() == "second, longer")
    try write("third", by: "b", overwrites: true, attributes: attributes)
    #expect(try text() == "third")
    #expect(throws: ReelError.self) { try write("second, longer", by: "a", attributes: attributes) }
    #expect(try text() == "third")
    // No partial files, and the hidden file only if it is needed.
    #expect(Set(folder.names()).isSubset(of: ["a.ppm", OutputRecord.fileName]))
    #expect(!attributes || folder.names().contains("a.ppm"))
  }

  @Test("Unknown files, and files that were changed since, are kept", arguments: [true, false])
  func others(attributes: Bool) throws {
    try Data("mine".utf8).write(to: folder.url.appending(path: "a.ppm"))
    #expect(throws: ReelError.self) { try write("x", by: "a", attributes: attributes) }
    #expect(try text() == "mine")
    try write("x", by: "a", overwrites: true, attributes: attributes)
    let handle = try FileHandle(forWritingTo: folder.url.appending(path: "a.ppm"))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data("mine".utf8))
    try handle.close()
    #expect(throws: ReelError.self) { try write("y", by: "a", attributes: attributes) }
    #expect(try text() == "xmine")
  }

  @Test("A process killed while writing a line, or before renaming its file, does no harm")
  func killed() throws {
    try write("one", by: "a", attributes: false)
    let record = folder.url.appending(path: OutputRecord.fileName)
    var bytes = try Data(contentsOf: record)
    // A line for a file of 99 bytes that was never renamed, and a line without its newline.
    let line = try #require(String(decoding: bytes, as: UTF8.self).split(separator: "\n").first)
    bytes.append(Data("\(line.replacing(" 3 ", with: " 99 "))\n123 4".utf8))
    try bytes.write(to: record)
    try write("two", by: "a", attributes: false)
    #expect(try text() == "two")
    try write("other", to: "b.ppm", by: "b", attributes: false)
    try write("others", to: "b.ppm", by: "b", attributes: false)
    #expect(try text("b.ppm") == "others")
  }

  @Test("If several sources write the same name at once, one gets it", arguments: [true, false])
  func race(attributes: Bool) async throws {
    let results = await withTaskGroup(of: String?.self) { group in
      for index in 0..<16 {
        group.addTask {
          // Each process has its own temporary name.
          let (record, partial) = (
            OutputRecord(directory: folder.url.path, overwrites: false, usesAttributes: attributes),
            folder.path("part-\(index)")
          )
          let text = "source \(index)"
          do {
            try Data(text.utf8).write(to: URL(filePath: partial))
            try record.place(
              "a.ppm", of: OutputRecord.Source(text), at: partial, byteCount: Int64(text.utf8.count)
            ) { () throws(ReelError) in
              if rename(partial, folder.path("a.ppm")) != 0 { throw ReelError(.internalFault, "no name") }
            }
          } catch { return nil }
          return text
        }
      }
      return await group.reduce(into: [String]()) { if let text = $1 { $0.append(text) } }
    }
    #expect(results.count == 1)
    #expect(try text() == results.first)
  }

  @Test("Without an owner, any file is replaced")
  func noOwner() throws {
    try write("first", by: "a")
    let file = try OutputFile(path: folder.path("a.ppm"))
    try file.write(Array("second".utf8))
    try file.commit()
    #expect(try text() == "second")
  }
}
