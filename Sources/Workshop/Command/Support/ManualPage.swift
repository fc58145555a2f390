import Foundation

/// Manual pages in mdoc, made from the help texts.
struct ManualPage {
  private let tree: CommandTree
  private let date: Date

  /// Writes `reel.1` and a page for each command into a folder: `reel --generate-manual-pages FOLDER`.
  ///
  /// The date of the pages is today, or SOURCE_DATE_EPOCH, which makes builds reproducible.
  static func writeAll(to folder: String) throws {
    let epoch = ProcessInfo.processInfo.environment["SOURCE_DATE_EPOCH"].flatMap { Double($0) }
    let pages = ManualPage(
      tree: try CommandTree.read(), date: epoch.map { Date(timeIntervalSince1970: $0) } ?? Date())
    try OutputFolder.make(folder)
    try ResultFile("\(folder)/reel.1").write(pages.main())
    for command in pages.tree.commands {
      try ResultFile("\(folder)/reel-\(command.commandName).1").write(pages.page(of: command))
    }
  }

  // MARK: - Private

  /// The page of the tool itself.
  private func main() -> String {
    var lines = head("reel", tree.command.abstract)
    lines += [".Sh SYNOPSIS", ".Nm reel", ".Ar command", ".Op Ar options"]
    lines += [".Sh DESCRIPTION"] + blocks(tree.command.discussionBlocks)
    lines += [".Sh COMMANDS", ".Bl -tag -width Ds"]
    for command in tree.commands {
      lines += [".It Xr reel-\(command.commandName) 1"] + text(command.abstract ?? "")
    }
    lines += [".El"] + options(tree.command.options, title: "OPTIONS") + examples(of: tree.command)
    return page(lines)
  }

  /// The page of a command.
  private func page(of command: CommandTree.Node) -> String {
    var lines = head("reel-\(command.commandName)", command.abstract)
    lines += [".Sh SYNOPSIS", ".Nm reel", ".Cm \(command.commandName)", ".Op Ar options"]
    for argument in command.positionals {
      let name = argument.valueName ?? "value"
      lines.append(argument.isRepeating ? ".Op Ar \(name) ..." : ".Ar \(name)")
    }
    lines += [".Sh DESCRIPTION"] + blocks(command.discussionBlocks)
    lines += options(command.positionals, title: "ARGUMENTS")
    let sections = command.sections(without: tree.sharedOptions)
    for section in sections {
      lines += options(section.options, title: (section.title ?? "Options").uppercased())
    }
    lines += options(
      command.options.filter { tree.sharedOptions.contains($0) },
      title: sections.isEmpty ? "OPTIONS" : "SHARED OPTIONS")
    lines += [".Sh EXIT STATUS", "See", ".Xr reel 1 ."] + examples(of: command)
    lines += [".Sh SEE ALSO", ".Xr reel 1"]
    return page(lines)
  }

  private func head(_ name: String, _ abstract: String?) -> [String] {
    var abstract = abstract ?? ""
    if abstract.hasSuffix(".") { abstract.removeLast() }
    let day = Date.FormatStyle(locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt)
      .month(.wide).day().year()
    return [
      ".Dd \(date.formatted(day))", ".Dt \(name.uppercased()) 1", ".Os Reel \(Version.text)",
      ".Sh NAME", ".Nm \(name)",
      ".Nd \(Self.escaped(abstract.prefix(1).lowercased() + abstract.dropFirst()))",
    ]
  }

  private func page(_ lines: [String]) -> String { lines.joined(separator: "\n") + "\n" }

  private func examples(of command: CommandTree.Node) -> [String] {
    [".Sh EXAMPLES", ".Bd -literal"] + command.exampleLines.map(Self.line) + [".Ed"]
  }

  private func blocks(_ blocks: [HelpBlock]) -> [String] {
    var lines: [String] = []
    for block in blocks {
      switch block {
      case .paragraph(let paragraph):
        if !lines.isEmpty { lines.append(".Pp") }
        lines += text(paragraph)
      case .list(let entries):
        lines.append(".Bl -tag -width Ds -compact")
        for entry in entries { lines += [".It \(Self.argument(entry.name))"] + text(entry.meaning) }
        lines.append(".El")
      case .literal(let literal):
        lines += [".Bd -literal -offset indent"] + literal.map(Self.line) + [".Ed"]
      }
    }
    return lines
  }

  private func options(_ options: [CommandTree.Argument], title: String) -> [String] {
    guard !options.isEmpty else { return [] }
    var lines = [".Sh \(title)", ".Bl -tag -width Ds"]
    for option in options {
      let value = option.valueName.map(Self.argument) ?? ""
      if option.kind == "positional" {
        lines.append(".It Ar \(value)\(option.isRepeating ? " ..." : "")")
      } else {
        let names = (option.names ?? []).map { "Fl \(Self.argument(String($0.text.dropFirst())))" }
        lines.append(
          ".It \(names.joined(separator: " , "))\(option.kind == "option" ? " Ar \(value)" : "")")
      }
      lines += text(option.meaning)
    }
    return lines + [".El"]
  }

  /// Text with each sentence on a line of its own, as mdoc wants it.
  private func text(_ text: String) -> [String] {
    text.replacing(#/([.;:]) (?=[A-Z0-9-])/#) { "\($0.output.1)\n" }.components(separatedBy: "\n").map(
      Self.line)
  }

  private static func line(_ text: String) -> String {
    let escaped = escaped(text)
    return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
  }

  /// Text in which each minus can be copied.
  private static func escaped(_ text: some StringProtocol) -> String {
    String(text).replacing("\\", with: "\\e").replacing("-", with: "\\-")
  }

  /// An argument of a macro.
  private static func argument(_ text: String) -> String {
    let escaped = escaped(text).replacing("\"", with: "\"\"")
    return "\"\(escaped)\""
  }
}
