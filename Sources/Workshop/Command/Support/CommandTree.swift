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

    /// The description with what only the parser knows: the default.
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

  /// The options that all commands share which read sources: those of `probe`.
  var sharedOptions: [Argument] {
    commands.first { $0.commandName == "probe" }?.options ?? []
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

  /// The options by the sections of the help text; those without a title first.
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

  /// The entries of a list in two columns; nil if the lines are none.
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
