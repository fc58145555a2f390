import ArgumentParser
import Foundation
import ReelLab
import ReelModels
import ReelSimulation

/// What shells offer for the values of options that several commands have.
extension CompletionKind {
  /// A profile, or a file or folder of recordings.
  static var links: CompletionKind {
    let profiles = LinkSpec.profiles.map(\.name)
    // fish completes paths itself, and calls closures only for a line that is being edited.
    if CompletionShell.requesting == .fish {
      return shellCommand(
        "printf '%s\\n' \(profiles.joined(separator: " ")); __fish_complete_path (commandline -ct)")
    }
    return custom { _, _, prefix in profiles + paths(beginningWith: prefix) }
  }

  static let players = list(["reel"] + PlayerModel.shippedNames)
  static let devices = list(DeviceModel.builtIn.map(\.name))

  /// Policies whose form has an argument are offered up to the colon.
  static var policies: CompletionKind {
    let names = PreloadPolicies.forms.map { $0.form.prefix { !$0.isUppercase } }.map(String.init)
    // zsh takes what follows a plain colon for a description.
    return list(CompletionShell.requesting == .zsh ? names.map { $0.replacing(":", with: "\\:") } : names)
  }

  // MARK: - Private

  private static func paths(beginningWith prefix: String) -> [String] {
    let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
    return names.filter { !$0.hasPrefix(".") }.sorted().map { folder + $0 }
  }
}
