import Foundation
import ReelTestSupport
import Testing

@testable import ReelCommand

/// The reference page, the manual pages and the completions have what the commands say.
///
/// With `REEL_REFERENCE_PAGE`, which `Scripts/docs` sets, the reference page is written to that file.
@Suite("Reference", .hangLimit)
struct ReferenceTests {
  @Test("The reference page has all commands and options")
  func page() throws {
    let tree = try CommandTree.read()
    let page = ReferencePage(tree: tree).text()
    for command in tree.commands {
      #expect(page.contains("## reel \(command.commandName)\n"))
      for name in command.options.flatMap({ $0.names ?? [] }) {
        #expect(page.contains(name.text), "\(command.commandName) \(name.text)")
      }
    }
    if let path = ProcessInfo.processInfo.environment["REEL_REFERENCE_PAGE"] {
      try page.write(toFile: path, atomically: true, encoding: .utf8)
    }
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

  @Test(
    "Bash completes files, and the values of options",
    arguments: [
      ("frames my", ["my clip.mp4"]), ("check -- my", ["my clip.mp4"]), ("play a.mp4 sub", ["sub"]),
      ("feed my", ["my clip.mp4"]), ("poster my -o su", ["sub"]), ("frames --input my", ["my clip.mp4"]),
      ("poster --format a", ["avif"]), ("frames --gravity fi", ["fit", "fill"]),
      ("feed x --preload ada", ["adaptive"]), ("feed x --link lt", ["lte"]),
      ("check x --link my", ["my clip.mp4"]),
      ("check --explain bla", ["black"]), ("check x --fail-on nev", ["never"]),
      ("feed x --assert hit.r", ["hit.ratio"]), ("check x --device h", ["high"]),
      ("memory x --stage b", ["buffered"]), ("memory --sta", ["--stage"]),
      ("sto", ["storyboard"]), ("cache su", ["sub"]), ("viewers my", ["my clip.mp4"]),
      ("viewers x --assert rebuff", ["rebuffering"]), ("viewers x --player hls", ["hls.js"]),
    ])
  func bash(line: String, offered: [String]) async throws {
    let folder = try TemporaryFolder()
    try folder.write("", to: "my clip.mp4")
    try folder.write("", to: "sub/other.mp4")
    let script = """
      "$@" >completion.bash && PATH="${1%/*}:$PATH" exec bash -c '
      source ./completion.bash
      COMP_LINE="reel \(line)"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=($COMP_LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      _reel reel "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf "%s\\n" "${COMPREPLY[@]}"'
      """
    let result = try await Command.run(
      ["--generate-completion-script", "bash"], directory: folder.path, shell: script, status: 0)
    #expect(result.outputLines.sorted() == offered.sorted(), "\(result.errorText)")
  }

  private static let fishPath = ["/usr/bin/fish", "/usr/local/bin/fish", "/opt/homebrew/bin/fish"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  @Test(
    "fish completes files, and the values of options", .enabled(if: fishPath != nil, "no fish here"),
    arguments: [
      ("frames my", ["my clip.mp4"]), ("play a.mp4 su", ["sub/"]), ("frames --input my", ["my clip.mp4"]),
      ("poster --format a", ["avif"]), ("feed x --preload ah", ["ahead:"]), ("feed x --link lt", ["lte"]),
      ("check x --link my", ["my clip.mp4"]), ("check x --fail-on w", ["warning"]),
      ("check --explain bla", ["black"]), ("sto", ["storyboard"]),
    ])
  func fish(line: String, offered: [String]) async throws {
    let folder = try TemporaryFolder()
    try folder.write("", to: "my clip.mp4")
    try folder.write("", to: "sub/other.mp4")
    let script = """
      "$@" >completion.fish && PATH="${1%/*}:$PATH" HOME="$PWD" exec "\(try #require(Self.fishPath))" --no-config -c '
      source ./completion.fish; complete -C "reel \(line)" | string replace -r "\\t.*" ""; true'
      """
    let result = try await Command.run(
      ["--generate-completion-script", "fish"], directory: folder.path, shell: script, status: 0)
    #expect(result.outputLines == offered, "\(result.errorText)")
  }

  @Test("zsh takes a colon in a value for a part of it")
  func zsh() async throws {
    let result = try await Command.run("--generate-completion-script", "zsh", status: 0)
    #expect(result.outputText.contains(#"'ahead\:'"#))
  }

  @Test("The version is one line")
  func version() async throws {
    let run = try await Command.run("--version", status: 0)
    #expect(run.outputLines.count == 1 && run.outputText.contains("."))
  }
}
