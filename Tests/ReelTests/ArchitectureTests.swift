import Foundation
import ReelTestSupport
import Testing

/// Docs/Design/Architecture.md lists names that the library does not know.
@Suite("Architecture", .hangLimit) struct ArchitectureTests {
  private static let root = Fixtures.folder.deletingLastPathComponent()

  private static func page() throws -> String {
    try String(contentsOf: root.appending(path: "Docs/Design/Architecture.md"), encoding: .utf8)
  }

  /// The names in the line of the page that begins with `Names:`.
  private static func names() throws -> [String] {
    let lines = try page().components(separatedBy: "\n")
    let line = try #require(lines.first(where: { $0.hasPrefix("Names:") }))
    let pieces = line.components(separatedBy: "`")
    return stride(from: 1, to: pieces.count, by: 2).map { pieces[$0] }
  }

  /// The identifiers and other words of a file.
  private static func words(of file: URL) throws -> Set<String> {
    let text = try String(contentsOf: file, encoding: .utf8)
    let separators = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "_")).inverted
    return Set(text.components(separatedBy: separators))
  }

  @Test("The page has at most 250 lines")
  func length() throws {
    #expect(try Self.page().components(separatedBy: "\n").count <= 251)
  }

  @Test("Only the modules that the page names import the transport")
  func transport() throws {
    let line = try #require(
      try Self.page().components(separatedBy: "\n").first { $0.contains("know `ReelTransport`") })
    let before = line.components(separatedBy: "know `ReelTransport`")[0].components(separatedBy: "`")
    let named = Set(stride(from: 1, to: before.count, by: 2).map { before[$0] })
    let folder = Self.root.appending(path: "Sources")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
      $0.hasSuffix(".swift") && !$0.hasPrefix("Library/Transport/")
    }
    let importing = try files.filter {
      let text = try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
      return text.contains("import ReelTransport\n")
    }
    let modules = Set(
      importing.map { $0.split(separator: "/")[1] }.map { $0 == "Reel" ? "Reel" : "Reel\($0)" })
    #expect(modules == named)
  }

  @Test("No file of the library names a tool or the workshop")
  func library() throws {
    let names = try Self.names()
    #expect(names.count >= 20)
    let folder = Self.root.appending(path: "Sources/Library")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
      $0.hasSuffix(".swift")
    }
    #expect(files.count > 100)
    var found: [String] = []
    for file in files.sorted() {
      let words = try Self.words(of: folder.appending(path: file))
      found += names.filter { words.contains($0) }.map { "\(file): \($0)" }
    }
    #expect(found.isEmpty, "\(found)")
  }
}
