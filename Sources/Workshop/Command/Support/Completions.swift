import ArgumentParser
import Foundation
import ReelCheck
import ReelLab
import ReelSimulation

/// What shells offer for the values of options that several commands have.
extension CompletionKind {
  /// A profile, or a file or folder of recordings.
  static let links = custom { _, _, prefix in
    LinkSpec.profiles.map(\.name) + paths(beginningWith: prefix)
  }

  static let devices = list(DeviceModel.builtIn.map(\.name))

  /// Policies whose form has an argument are offered up to the colon.
  static let policies = list(
    PreloadPolicies.forms.map { $0.form.prefix { !$0.isUppercase } }.map(String.init))

  static let findings = list(FindingID.allCases.map(\.rawValue))

  // MARK: - Private

  private static func paths(beginningWith prefix: String) -> [String] {
    let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.isEmpty ? "." : folder)) ?? []
    return names.filter { !$0.hasPrefix(".") }.sorted().map { folder + $0 }
  }
}
