import Foundation
import ReelTestSupport
import Testing

/// A Markdown page of the repository, with the commands that it shows.
struct Document: CustomTestStringConvertible {
  /// A command after `$ ` in an indented block, with the lines of output that follow it.
  struct Example {
    var command: String
    /// The lines of output, without the indent, and their range in the document.
    var output: [String] = []
    var outputLines: Range<Int>
    /// The exit code that a following `$ echo $?` shows.
    var status: Int32 = 0
  }

  /// The folder of the repository.
  static let root = Fixtures.folder.deletingLastPathComponent()
  /// True where the documents are to be rewritten from what the commands print.
  static let isWriting = ProcessInfo.processInfo.environment["REEL_WRITE_DOCUMENTS"] == "1"

  /// The README and the guides; not the pages about the project itself.
  static let guides =
    ["README.md"]
    + [
      "Caching", "Checking", "CommandLine", "Feeds", "Formats", "Lists", "Manifests", "Playing", "Pool",
      "Thumbnails", "Viewers",
    ].map { "Docs/\($0).md" }

  let path: String
  var testDescription: String { path }

  init(_ path: String) { self.path = path }

  /// All Markdown pages of the root, of `Docs` and of `Docs/Design`.
  static func all() throws -> [Document] {
    try ["", "Docs/", "Docs/Design/"].flatMap { folder in
      let names = try FileManager.default.contentsOfDirectory(atPath: root.path + "/" + folder)
      return names.sorted().filter { $0.hasSuffix(".md") }.map { Document(folder + $0) }
    }
  }

  var url: URL { Self.root.appending(path: path) }

  func text() throws -> String { try String(contentsOf: url, encoding: .utf8) }

  func lines() throws -> [String] { try text().components(separatedBy: "\n") }

  /// The examples in the document's order.
  func examples() throws -> [Example] {
    let lines = try lines()
    var examples: [Example] = []
    var isFenced = false
    var index = 0
    while index < lines.count {
      let line = lines[index]
      index += 1
      if line.hasPrefix("```") { isFenced.toggle() }
      guard !isFenced, line.hasPrefix("    $ ") else { continue }
      let command = String(line.dropFirst(6))
      let start = index
      while let end = endOfOutput(lines, after: index) { index = end }
      let output = lines[start..<index].map { String($0.dropFirst(4)) }
      if command == "echo $?", !examples.isEmpty {
        examples[examples.count - 1].status = Int32(output.first ?? "") ?? -1
      } else {
        examples.append(Example(command: command, output: output, outputLines: start..<index))
      }
    }
    return examples
  }

  /// The commands in the cells of the table of the README.
  func tableCommands() throws -> [String] {
    try lines().compactMap { line in
      guard line.hasPrefix("| "), line.hasSuffix("` |"), let start = line.range(of: " | `reel ") else {
        return nil
      }
      return "reel " + line[start.upperBound...].dropLast(3)
    }
  }

  /// The files that the documents show with `$ cat NAME`.
  static func files() throws -> [(name: String, text: String)] {
    try guides.flatMap { try Document($0).examples() }.compactMap { example in
      guard example.command.hasPrefix("cat ") else { return nil }
      return (String(example.command.dropFirst(4)), example.output.joined(separator: "\n") + "\n")
    }
  }

  /// Replaces the output of examples.
  func write(_ outputs: [(lines: Range<Int>, output: [String])]) throws {
    var lines = try lines()
    for (range, output) in outputs.sorted(by: { $0.lines.lowerBound > $1.lines.lowerBound }) {
      lines.replaceSubrange(range, with: output.map { $0.isEmpty ? "" : "    " + $0 })
    }
    try lines.joined(separator: "\n").write(to: url, atomically: true, encoding: .utf8)
  }

  // MARK: - Private

  /// The index after the next line of output; nil if there is none. A blank line belongs to the output if more follows.
  private func endOfOutput(_ lines: [String], after index: Int) -> Int? {
    func isOutput(_ index: Int) -> Bool {
      lines.indices.contains(index) && lines[index].hasPrefix("    ") && !lines[index].hasPrefix("    $ ")
    }
    if isOutput(index) { return index + 1 }
    if lines.indices.contains(index), lines[index].isEmpty, isOutput(index + 1) { return index + 2 }
    return nil
  }
}

extension JSONSchema {
  /// Checks lines of JSON by a schema of `Docs/schemas`.
  static func check(_ lines: [some StringProtocol], _ name: String) throws {
    let schema = try JSONSchema(contentsOf: Document.root.appending(path: "Docs/schemas/\(name)"))
    for line in lines {
      do {
        try schema.check(try JSONSerialization.jsonObject(with: Data(line.utf8)))
      } catch {
        Issue.record("\(name): \(error)\n\(line.prefix(2_000))")
      }
    }
  }
}
