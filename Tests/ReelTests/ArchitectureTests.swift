import Foundation
import ReelTestSupport
import Testing

/// What the pages in Docs/Design say of modules and folders.
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

  /// The identifiers and other words of a text.
  private static func words(in text: String) -> Set<String> {
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
      let words = Self.words(in: try String(contentsOf: folder.appending(path: file), encoding: .utf8))
      found += names.filter { words.contains($0) }.map { "\(file): \($0)" }
    }
    #expect(found.isEmpty, "\(found)")
  }

  @Test("The gateway's product needs no FFmpeg")
  func gateway() throws {
    let package = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8)
    func names(in list: Substring) -> [String] {
      list.matches(of: /"(\w+)"/).map { String($0.1) }
    }
    var modules: [String: (folder: String, dependencies: [String])] = [:]
    for module in package.matches(of: /module\(\s*"(\w+)", in: "(\w+)",\s*\[([^\]]*)\]/) {
      modules["Reel\(module.1)"] = ("\(module.2)/\(module.1)", names(in: module.3))
    }
    let product = try #require(
      package.firstMatch(of: /\.library\(name: "ReelGateway", targets: \[([^\]]*)\]/))
    var reached = Set(names(in: product.1))
    var rest = Array(reached)
    while let name = rest.popLast() {
      for dependency in modules[name]?.dependencies ?? [] where reached.insert(dependency).inserted {
        rest.append(dependency)
      }
    }
    #expect(reached.isSuperset(of: ["ReelGateway", "ReelSources", "ReelManifest", "ReelCore"]))
    #expect(!reached.contains { $0.contains("FFmpeg") })
    for name in reached.sorted() {
      guard let module = modules[name] else { continue }
      let folder = Self.root.appending(path: "Sources/\(module.folder)")
      for file in try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      where file.hasSuffix(".swift") {
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        let imports = text.matches(of: /(?m)^[a-z@]*\s*import (\w+)/).map { $0.1 }
        #expect(!imports.contains { $0.contains("FFmpeg") }, "\(name)/\(file)")
      }
    }
  }

  @Test("A command names only types of its own folder, of Lists and of Shared; Lists those of Shared")
  func commands() throws {
    let root = Self.root.appending(path: "Sources/Workshop/Command")
    var folders: [String: String] = [:]
    var files: [(path: String, folder: String, words: Set<String>)] = []
    for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) {
      let parts = path.split(separator: "/").map(String.init)
      guard path.hasSuffix(".swift"), parts.count == 2 else { continue }
      let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
      let lines = text.components(separatedBy: "\n").filter { line in !line.contains(/^ *\/\//) }
      for line in lines {
        guard let type = line.firstMatch(of: /^(?:final )?(?:struct|class|enum|protocol|typealias) (\w+)/)
        else { continue }
        folders[String(type.output.1)] = parts[0]
      }
      files.append((path, parts[0], Self.words(in: lines.joined(separator: "\n"))))
    }
    #expect(folders.count > 100)
    var found: [String] = []
    for file in files {
      let known = file.folder == "Shared" ? ["Shared"] : ["Shared", "Lists", file.folder]
      found += file.words.filter { word in folders[word].map { !known.contains($0) } ?? false }
        .map { "\(file.path): \($0)" }
    }
    #expect(found.isEmpty, "\(found.sorted())")
  }
}
