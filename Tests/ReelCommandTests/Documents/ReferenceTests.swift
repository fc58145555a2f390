import Foundation
import ReelTestSupport
import Testing

@testable import ReelCommand

/// The committed reference is what the commands say now. `Scripts/reference` writes it.
@Suite("Reference", .hangLimit)
struct ReferenceTests {
  @Test("Docs/CommandLine.md has all commands and options")
  func commandLine() async throws {
    let document = Document("Docs/CommandLine.md")
    let text = try document.text()
    let written = try #require(text.range(of: ReferencePage.mark))
    let page = ReferencePage(tree: try CommandTree.read()).text()
    try compare(String(text[..<written.lowerBound]) + page, with: document.url)
  }

  @Test("The manual pages have all commands and options")
  func manual() async throws {
    let folder = try TemporaryFolder()
    try await Command.run("--generate-manual-pages", folder.path + "/man", status: 0)
    let commands = try CommandTree.read().commands
    let names = ["reel.1"] + commands.map { "reel-\($0.commandName).1" }
    #expect(folder.names("man") == names.sorted())
    let main = try folder.text("man/reel.1")
    for command in commands {
      #expect(main.contains(".It Xr reel-\(command.commandName) 1\n"))
      let page = try folder.text("man/reel-\(command.commandName).1")
      #expect(page.contains(".Sh DESCRIPTION\n"))
      #expect(page.contains(".Sh EXAMPLES\n"))
      for name in command.options.flatMap({ $0.names ?? [] }) {
        let text = name.text.dropFirst().replacing("-", with: "\\-")
        #expect(page.contains("Fl \"\(text)\""), "\(command.commandName) \(name.text)")
      }
    }
  }

  @Test("The completions have all commands", arguments: ["bash", "zsh", "fish"])
  func completions(shell: String) async throws {
    let result = try await Command.run("--generate-completion-script", shell, status: 0)
    for command in try CommandTree.read().commands {
      #expect(result.outputText.contains(command.commandName), "\(command.commandName)")
    }
  }

  private func compare(_ text: String, with url: URL) throws {
    if Document.isWriting {
      try text.write(to: url, atomically: true, encoding: .utf8)
    } else {
      let committed = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
      #expect(committed == text, "\(url.lastPathComponent) is out of date: run Scripts/reference")
    }
  }

  @Test("The version is one line")
  func version() async throws {
    let run = try await Command.run("--version", status: 0)
    #expect(run.outputLines.count == 1 && run.outputText.contains("."))
  }
}
