import Foundation
import ReelTestSupport
import Testing

@testable import ReelCommand

/// The commands of the documents are run, and what they print is compared with what the documents show.
///
/// With `REEL_WRITE_DOCUMENTS=1`, which `Scripts/reference` sets, the output in the documents is replaced instead.
@Suite("Documents", .hangLimit)
struct DocumentTests {
  @Test("README.md has fewer than 150 lines")
  func length() throws {
    #expect(try Document("README.md").lines().count < 150)
  }

  @Test("Every command in a document runs, and prints what stands there", arguments: Document.guides)
  func examples(path: String) async throws {
    let document = Document(path)
    let scene = try DocumentScene()
    if try document.text().contains("http://127.0.0.1:8080/") {
      try await scene.serve("reel serve Fixtures --port 8080")
    }
    var outputs: [(lines: Range<Int>, output: [String])] = []
    for example in try document.examples() {
      let command = example.command
      if command.hasPrefix("cat ") { continue }
      if command.hasPrefix("reel serve ") {
        try await scene.serve(command)
        continue
      }
      let result = try await scene.run(DocumentScene.filled(command))
      #expect(result.status == example.status, "\(command): \(result.errorText)")
      let printed = scene.documented(result.outputText + result.errorText).split(
        separator: "\n", omittingEmptySubsequences: false
      ).map(String.init)
      let output = Array(printed.reversed().drop { $0.isEmpty }.reversed())
      guard !example.output.isEmpty, DocumentScene.isDeterministic(command) else { continue }
      if Document.isWriting {
        // Lines that differ only in their order or in hashes stay as they are.
        let isSame =
          DocumentScene.comparable(output, of: command)
          == DocumentScene.comparable(example.output, of: command)
        outputs.append((example.outputLines, isSame ? example.output : output))
      } else {
        #expect(
          DocumentScene.comparable(output, of: command)
            == DocumentScene.comparable(example.output, of: command),
          "\(command) now prints:\n\(output.joined(separator: "\n"))")
      }
    }
    try await scene.stop()
    if Document.isWriting, !outputs.isEmpty { try document.write(outputs) }
  }

  @Test("Every command in README.md's table runs")
  func table() async throws {
    let commands = try Document("README.md").tableCommands()
    #expect(commands.count > 10)
    let scene = try DocumentScene()
    for command in commands { try await runs(command, in: scene) }
    try await scene.stop()
  }

  @Test("The help of every command has two or three examples, which run and fit a terminal")
  func helpExamples() async throws {
    let tree = try CommandTree.read()
    let scene = try DocumentScene()
    for node in [tree.command] + tree.commands {
      let examples = node.exampleLines.filter { !$0.hasPrefix("#") }
      #expect((2...3).contains(examples.count), "\(node.commandName): \(examples)")
      #expect(node.exampleLines.count == examples.count * 2, "\(node.commandName)")
      for example in examples {
        #expect(example.count <= 78, "\(example)")
        try await runs(example, in: scene)
      }
    }
    try await scene.stop()
  }

  private func runs(_ command: String, in scene: DocumentScene) async throws {
    let command = DocumentScene.filled(command)
    guard !command.hasPrefix("reel serve ") else { return try await scene.serve(command) }
    let result = try await scene.run(command)
    // The list names a file that is missing.
    #expect(result.status == (command.contains("list.txt") ? 1 : 0), "\(command): \(result.errorText)")
  }

  @Test("The scripts that README.md names can be run")
  func scripts() throws {
    let text = try Document("README.md").text()
    let names = text.matches(of: #/\bScripts/[a-z-]+/#).map { String($0.output) }
    #expect(names.count >= 4)
    for name in names {
      let path = Document.root.appending(path: name).path
      #expect(FileManager.default.isExecutableFile(atPath: path), "\(name)")
    }
  }

  @Test("Options in the documents exist", arguments: Document.guides)
  func options(path: String) async throws {
    let tree = try CommandTree.read()
    let known = Set(
      ([tree.command] + tree.commands).flatMap { $0.arguments ?? [] }.flatMap { $0.names ?? [] }.map(\.text))
    let text = try Document(path).text()
    let used = text.matches(of: #/(?:^|[\s`(])(--[a-z][a-z0-9-]*)/#.anchorsMatchLineEndings())
      .map { String($0.output.1) }
    for option in Set(used).subtracting(known).sorted() { Issue.record("\(path): \(option)") }
  }

  @Test("Links between documents lead to files and headings that exist")
  func links() throws {
    for document in try Document.all() {
      for match in try document.text().matches(of: #/\]\(([^)\s]+)\)/#) {
        let target = String(match.output.1)
        guard !target.contains("://") else { continue }
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(
          String.init)
        let file =
          parts[0].isEmpty
          ? document.url : document.url.deletingLastPathComponent().appending(path: parts[0]).standardized
        #expect(FileManager.default.fileExists(atPath: file.path), "\(document.path): \(target)")
        guard parts.count > 1, let text = try? String(contentsOf: file, encoding: .utf8) else { continue }
        #expect(Self.anchors(in: text).contains(parts[1]), "\(document.path): \(target)")
      }
    }
  }

  @Test("Swift code in the documents is that of the tests, which have its imports")
  func swiftCode() throws {
    let tried = try SwiftCode.tried().values
    for document in try Document.all() {
      for block in SwiftCode.blocks(in: try document.text()) {
        #expect(
          tried.contains { $0.imports.isSuperset(of: block.imports) && $0.lines.contains(block.lines) },
          "\(document.path): \(block.lines.prefix(80))")
      }
    }
  }

  @Test("Programs with a comment in Tests/ReelTests stand in the documents, with their imports")
  func programs() throws {
    let blocks = try Document.all().flatMap { SwiftCode.blocks(in: try $0.text()) }
    var count = 0
    for (file, code) in try SwiftCode.tried() where !file.hasSuffix("Tests.swift") {
      for program in code.parts where program.hasPrefix("///") {
        count += 1
        #expect(
          blocks.contains { $0.imports == code.imports && $0.lines.contains(program) },
          "\(file): \(program.prefix(80))")
      }
    }
    #expect(count >= 18)
  }

  /// The anchors that GitHub makes of headings.
  private static func anchors(in text: String) -> Set<String> {
    Set(
      text.split(separator: "\n").filter { $0.hasPrefix("#") }.map { line in
        String(
          line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased().compactMap { character in
            if character == " " { return "-" }
            return character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
          })
      })
  }
}

/// Swift code of a file or of a document, its lines without their indent: in a test, a program is in a function.
private struct SwiftCode {
  let imports: Set<String>
  /// What is between two empty lines, without imports.
  let parts: [String]
  var lines: String { parts.joined(separator: "\n") }

  init(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
    imports = Set(lines.filter { $0.hasPrefix("import ") })
    parts = lines.filter { !$0.hasPrefix("import ") }.split(separator: "").map { $0.joined(separator: "\n") }
  }

  static func blocks(in document: String) -> [SwiftCode] {
    document.components(separatedBy: "```swift\n").dropFirst()
      .compactMap { $0.components(separatedBy: "```").first.map(SwiftCode.init) }
  }

  /// The files of tests that have programs of documents, by path.
  static func tried() throws -> [String: SwiftCode] {
    let tests = Document.root.appending(path: "Tests")
    let programs = try FileManager.default.subpathsOfDirectory(
      atPath: tests.appending(path: "ReelTests").path
    )
    .filter { $0.hasSuffix(".swift") }.map { "ReelTests/\($0)" }
    let files =
      programs + [
        "ReelPlaybackTests/LibraryExampleTests.swift", "ReelPoolTests/PoolExampleTests.swift",
        "ReelPoolTests/TestingExampleTests.swift",
      ]
    return try Dictionary(
      uniqueKeysWithValues: files.map {
        ($0, SwiftCode(try String(contentsOf: tests.appending(path: $0), encoding: .utf8)))
      })
  }
}
