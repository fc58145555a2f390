import Foundation
import ReelTestSupport
import Testing

/// The committed reference is what the commands say now. `Scripts/reference` writes it.
@Suite("Reference", .hangLimit)
struct ReferenceTests {
  @Test("Docs/CommandLine.md has all commands and options")
  func commandLine() async throws {
    let document = Document("Docs/CommandLine.md")
    let text = try document.text()
    let written = try #require(text.range(of: ReferencePage.mark))
    let page = ReferencePage(tree: try await CommandTree.read()).text()
    try compare(String(text[..<written.lowerBound]) + page, with: document.url)
  }

  @Test("The manual pages have all commands and options")
  func manual() async throws {
    let tree = try await CommandTree.read()
    let version = try await Command.run("--version").outputText.trimmingCharacters(
      in: .whitespacesAndNewlines)
    let manual = ManualPage(tree: tree, version: "Reel \(version)")
    let folder = Document.root.appending(path: "Packaging/man")
    try compare(manual.main(), with: folder.appending(path: "reel.1"))
    for command in tree.commands {
      try compare(
        manual.page(of: command), with: folder.appending(path: "reel-\(command.commandName).1"))
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.count == tree.commands.count + 1, "\(names)")
  }

  @Test(
    "The completions are those of the commands",
    arguments: [("bash", "reel.bash"), ("zsh", "_reel"), ("fish", "reel.fish")])
  func completions(shell: String, name: String) async throws {
    let result = try await Command.run("--generate-completion-script", shell)
    #expect(result.status == 0, "\(result.errorText)")
    try compare(result.outputText, with: Document.root.appending(path: "Packaging/completions/\(name)"))
  }

  private func compare(_ text: String, with url: URL) throws {
    if Document.isWriting {
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: url, atomically: true, encoding: .utf8)
    } else {
      let committed = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
      #expect(committed == text, "\(url.lastPathComponent) is out of date: run Scripts/reference")
    }
  }
}
