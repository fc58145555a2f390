import ArgumentParser
import Foundation

/// The commands and options with their help texts, as `reel --experimental-dump-help` prints them.
struct CommandTree: Decodable {
  struct Node: Decodable {
    var commandName: String
    var abstract: String?
    var discussion: String?
    var arguments: [Argument]?
    var subcommands: [Node]?
  }

  struct Argument: Decodable, Equatable {
    struct Name: Decodable, Equatable {
      var kind: String
      var name: String

      var text: String { (kind == "long" ? "--" : "-") + name }
    }

    var kind: String
    var sectionTitle: String?
    var isRepeating: Bool
    var names: [Name]?
    var valueName: String?
    var defaultValue: String?
    var abstract: String?

    /// The description with the default, which only the parser knows.
    var meaning: String {
      let text = abstract ?? ""
      guard kind != "flag", let defaultValue, !text.contains("Default:") else { return text }
      return text + " (default: \(defaultValue))"
    }
  }

  var command: Node

  static func read() throws -> CommandTree {
    try JSONDecoder().decode(CommandTree.self, from: Data(Reel._dumpHelp().utf8))
  }

  /// The commands, without `help`, in the order of the help text.
  var commands: [Node] { (command.subcommands ?? []).filter { $0.commandName != "help" } }

  /// The options that all commands share which read sources: those that `probe` and `serve` have both.
  var sharedOptions: [Argument] {
    func options(_ name: String) -> [Argument] { commands.first { $0.commandName == name }?.options ?? [] }
    return options("probe").filter(options("serve").contains)
  }
}

extension CommandTree.Node {
  var positionals: [CommandTree.Argument] { (arguments ?? []).filter { $0.kind == "positional" } }

  /// The options; a flag and its opposite are one.
  var options: [CommandTree.Argument] {
    var options: [CommandTree.Argument] = []
    for argument in arguments ?? [] where argument.kind != "positional" {
      if let last = options.last?.names, let names = argument.names, last.count == 1, names.count == 1,
        names[0].name == "no-" + last[0].name
      {
        options[options.count - 1].names = last + names
      } else {
        options.append(argument)
      }
    }
    return options
  }

  /// Returns the options by the sections of the help text; those without a title first.
  func sections(without shared: [CommandTree.Argument]) -> [(title: String?, options: [CommandTree.Argument])]
  {
    let own = options.filter { !shared.contains($0) }
    var titles: [String?] = []
    for option in own where !titles.contains(option.sectionTitle) { titles.append(option.sectionTitle) }
    return (titles.filter { $0 == nil } + titles.filter { $0 != nil }).map { title in
      (title, own.filter { $0.sectionTitle == title })
    }
  }

  /// The blocks of the discussion, without the examples.
  var discussionBlocks: [HelpBlock] { Array(allBlocks.prefix { !$0.beginsExamples }) }

  /// The lines of the examples at the end of the discussion: commands, each after a line that describes it.
  var exampleLines: [String] {
    guard let begin = allBlocks.firstIndex(where: \.beginsExamples), begin + 1 < allBlocks.count,
      case .literal(let lines) = allBlocks[begin + 1]
    else { return [] }
    return lines
  }

  private var allBlocks: [HelpBlock] { HelpBlock.blocks(of: discussion ?? "") }
}

/// A part of a help text.
enum HelpBlock: Equatable {
  case paragraph(String)
  /// Lines with two leading spaces in two columns.
  case list([HelpEntry])
  /// Other lines with two leading spaces, without them.
  case literal([String])

  var beginsExamples: Bool { self == .paragraph("Examples:") }

  /// Splits a help text.
  static func blocks(of text: String) -> [HelpBlock] {
    var blocks: [HelpBlock] = []
    var indented: [String] = []
    func finish() {
      guard !indented.isEmpty else { return }
      blocks.append(HelpEntry.entries(of: indented).map { .list($0) } ?? .literal(indented))
      indented = []
    }
    for line in text.components(separatedBy: "\n") {
      if line.hasPrefix("  ") {
        indented.append(String(line.dropFirst(2)))
      } else {
        finish()
        if !line.isEmpty { blocks.append(.paragraph(line)) }
      }
    }
    finish()
    return blocks
  }
}

struct HelpEntry: Equatable {
  var name: String
  var meaning: String

  /// Returns the entries of a list in two columns; nil if the lines are not a list.
  static func entries(of lines: [String]) -> [HelpEntry]? {
    var entries: [HelpEntry] = []
    for line in lines {
      if line.hasPrefix("    ") {
        guard !entries.isEmpty else { return nil }
        entries[entries.count - 1].meaning += " " + line.trimmingCharacters(in: .whitespaces)
      } else if let gap = line.firstRange(of: "  "), gap.lowerBound > line.startIndex {
        entries.append(
          HelpEntry(
            name: String(line[..<gap.lowerBound]),
            meaning: line[gap.upperBound...].trimmingCharacters(in: .whitespaces)))
      } else {
        return nil
      }
    }
    return entries
  }
}

/// Manual pages in mdoc, generated from the help texts.
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
    try ResultFile("\(folder)/reel.1").complete(with: pages.main())
    for command in pages.tree.commands {
      try ResultFile("\(folder)/reel-\(command.commandName).1").complete(with: pages.page(of: command))
    }
  }

  // MARK: - Private

  /// Returns the page of the tool itself.
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

  /// Returns the text with each sentence on a line of its own, as mdoc requires.
  private func text(_ text: String) -> [String] {
    text.replacing(#/([.;:]) (?=[A-Z0-9-])/#) { "\($0.output.1)\n" }.components(separatedBy: "\n").map(
      Self.line)
  }

  private static func line(_ text: String) -> String {
    let escaped = escaped(text)
    return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
  }

  /// Returns the text with minus signs that can be copied.
  private static func escaped(_ text: some StringProtocol) -> String {
    String(text).replacing("\\", with: "\\e").replacing("-", with: "\\-")
  }

  /// Returns an argument of a macro.
  private static func argument(_ text: String) -> String {
    let escaped = escaped(text).replacing("\"", with: "\"\"")
    return "\"\(escaped)\""
  }
}
