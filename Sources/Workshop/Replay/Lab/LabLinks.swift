internal import Foundation
internal import ReelCore
internal import ReelPool

/// Collects the links of a lab, and names them.
struct LabLinks {
  private struct Item {
    var link: LabInputs.LinkInput
    /// The argument of this link as the configuration would write it.
    let longName: String
    /// The folder of the recording as the configuration would write it, with the options; nil without one.
    let folder: String?
    let field: JSONField
  }

  private var items: [Item] = []

  /// Reads the recordings of an argument.
  mutating func add(
    _ entry: LabConfiguration.Entry<String>, of configuration: LabConfiguration
  ) throws(ReelError) {
    let argument = try LinkArgument(parsing: entry.value, resolve: configuration.origin.resolved)
    let head = String(entry.value.dropLast(argument.suffix.count))
    for link in try argument.links() {
      var (longName, folder, group) = (entry.value, String?.none, link.name)
      if argument.isFolder {
        let base = head.hasSuffix("/") ? String(head.dropLast()) : head
        let inner = link.name.split(separator: "/").dropLast().joined(separator: "/")
        longName = "\(base)/\(link.name)\(argument.suffix)"
        folder = (inner.isEmpty ? base : "\(base)/\(inner)") + argument.suffix
        group = inner.isEmpty ? Self.lastName(configuration.origin.resolved(head)) : inner
      } else if !argument.isConstant, let slash = head.lastIndex(of: "/") {
        folder = String(head[..<slash]) + argument.suffix
        group = Self.lastName(configuration.origin.resolved(String(head[..<slash])))
      }
      var spec = link.spec
      if configuration.modelsTCP { spec.modelsTCP = true }
      if configuration.modelsTLS { spec.modelsTLS = true }
      if configuration.modelsDNS { spec.modelsDNS = true }
      items.append(
        Item(
          link: LabInputs.LinkInput(name: link.name, group: group, text: link.text, spec: spec),
          longName: longName, folder: folder, field: entry.field))
    }
  }

  /// The links under names that differ: that of the recording, or its whole argument where several have one name. Groups
  /// of different folders or options also get different names.
  func named(_ failures: inout [ReelError]) -> [LabInputs.LinkInput] {
    var (countsByName, foldersByGroup): ([String: Int], [String: Set<String?>]) = ([:], [:])
    for item in items {
      countsByName[item.link.name, default: 0] += 1
      foldersByGroup[item.link.group, default: []].insert(item.folder)
    }
    var known: Set<String> = []
    var links: [LabInputs.LinkInput] = []
    for item in items {
      var link = item.link
      if countsByName[link.name] ?? 0 > 1 { link.name = item.longName }
      if item.folder == nil {
        link.group = link.name
      } else if let folder = item.folder, foldersByGroup[link.group]?.count ?? 0 > 1 {
        link.group = folder
      }
      if !known.insert(link.name).inserted {
        failures.append(item.field.failure("the link \"\(link.name)\" appears twice"))
      }
      links.append(link)
    }
    return links
  }

  // MARK: - Private

  private static func lastName(_ path: String) -> String {
    URL(fileURLWithPath: path).standardized.lastPathComponent
  }
}
