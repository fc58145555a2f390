@testable import ReelCommand

/// The options of all commands as Markdown, which `Scripts/docs` appends to `Docs/CommandLine.md`.
struct ReferencePage {
  let tree: CommandTree

  func text() -> String {
    var lines: [String] = []
    for command in tree.commands {
      lines += ["## reel \(command.commandName)", "", Self.prose(command.abstract ?? ""), ""]
      lines += ["    \(command.usage)", ""]
      for block in HelpBlock.blocks(of: command.discussion ?? "") {
        switch block {
        case .paragraph(RunOptions.discussion): break
        case .paragraph(let text): lines += [Self.prose(text), ""]
        case .list(let entries):
          lines += ["| | |", "|---|---|"]
          lines += entries.map { "| `\(Self.cell($0.name))` | \(Self.cell(Self.prose($0.meaning))) |" } + [""]
        case .literal(let literal): lines += literal.map { "    " + $0 } + [""]
        }
      }
      var sections = command.sections(without: tree.sharedOptions)
      if sections.first?.title != nil || sections.isEmpty { sections.insert((nil, []), at: 0) }
      for (title, options) in sections where title != "Lists" {
        if let title { lines += ["**\(title)**", ""] }
        lines += table(title == nil ? command.positionals + options : options)
      }
      let lists = sections.contains { $0.title == "Lists" } ? " and those of [lists](#lists)" : ""
      if command.options.contains(where: { $0.names?.first?.name == "bandwidth" }) {
        lines += ["And the [shared options](#shared-options)\(lists).", ""]
      }
    }
    lines += ["## Lists", "", Self.prose(RunOptions.discussion), ""] + table(listOptions)
    lines += ["## Shared options", ""] + table(tree.sharedOptions)
    return lines.joined(separator: "\n")
  }

  // MARK: - Private

  /// The options of list mode, as `frames` has them.
  private var listOptions: [CommandTree.Argument] {
    tree.commands.first { $0.commandName == "frames" }?.options.filter { $0.sectionTitle == "Lists" } ?? []
  }

  private func table(_ options: [CommandTree.Argument]) -> [String] {
    guard !options.isEmpty else { return [] }
    return ["| option | meaning |", "|---|---|"]
      + options.map { "| `\(Self.cell($0.term))` | \(Self.cell(Self.prose($0.meaning))) |" } + [""]
  }

  /// Help text as Markdown: options become code, and `<` and `*` are not markup.
  private static func prose(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("<", with: "\\<").replacing("*", with: "\\*")
      .replacing("_", with: "\\_").replacing("[", with: "\\[")
      .replacing(#/(^|[\s('])(--[a-z0-9][a-z0-9-]*)/#) { "\($0.output.1)`\($0.output.2)`" }
  }

  private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}

extension CommandTree.Argument {
  /// The names and the value, as in `-o, --output <dir>`.
  fileprivate var term: String {
    if kind == "positional" { return valueText + (isRepeating ? "..." : "") }
    return (names ?? []).map(\.text).joined(separator: ", ") + (kind == "option" ? " " + valueText : "")
  }

  fileprivate var valueText: String { "<\(valueName ?? "value")>" }
}

extension CommandTree.Node {
  /// The line of usage, as in `reel frames [<options>] [<sources> ...]`.
  fileprivate var usage: String {
    (["reel", commandName, "[<options>]"]
      + positionals.map { $0.isRepeating ? "[\($0.valueText) ...]" : $0.valueText }).joined(separator: " ")
  }
}
