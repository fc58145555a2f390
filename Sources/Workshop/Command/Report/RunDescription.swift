import ArgumentParser
import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelReplay

/// What was run, and how to run it again.
struct RunDescription: Sendable {
  var version = Version.text
  var ffmpeg = "\(FFmpegVersion.release): \(FFmpegVersion.libraries.joined(separator: ", "))"
  /// The command line, without secrets and without the options that name files to write.
  var commandLine: String

  /// Options that name a file to write, and others that do not change the results.
  static let outputOptions: Set<String> = [
    "--report", "--trace", "--csv", "--junit", "--y4m", "--wav", "-o", "--output", "--results", "--jobs",
  ]

  /// - Parameter arguments: Without the name of the program.
  init(arguments: [String]) {
    commandLine = Redaction.commandLine(arguments, outputs: Self.outputOptions)
  }

  /// - Parameter rows: More facts, for instance the settings of a walk.
  func html(_ rows: [(name: String, value: String)] = []) -> String {
    let rows = [("reel", version), ("FFmpeg", ffmpeg)] + rows
    let list = rows.map { name, value in
      "<dt>\(Markup.escape(name))</dt><dd>\(Markup.escape(Redaction.clean(value)))</dd>"
    }
    return "<dl class=\"run\">\(list.joined())</dl>"
      + "<pre class=\"wrap\">\(Markup.escape(commandLine))</pre>"
  }
}

extension WalkSettings {
  /// The settings as facts.
  var facts: [(name: String, value: String)] {
    var facts = [
      ("feed", "\(feed), \(itemCount.counted("item"))"), ("dwell", dwell), ("seed", "\(seed)"),
      ("link", link ?? "not modelled"),
    ]
    if let shares, shares != .usual { facts.append(("swipes", shares.description)) }
    if firstRung != .adapted { facts.append(("first rung", firstRung.rawValue)) }
    if let device { facts.append(("device", device)) }
    let cost = decodeCost.map { ", \(DurationText.readable($0)) per frame" } ?? ""
    facts.append(("time", isVirtual ? "simulated\(cost)" : "real"))
    return facts.map { (name: $0.0, value: $0.1) }
  }
}
