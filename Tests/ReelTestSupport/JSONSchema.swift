public import Foundation

/// A validator for the part of JSON Schema (2020-12) that the schemas in `Docs/schemas` use.
///
/// A keyword that it does not know is an error, so that no rule is passed over.
public struct JSONSchema {
  /// What is wrong with a schema or a value, and where.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  private let root: [String: Any]

  /// Reads a schema.
  public init(contentsOf url: URL) throws {
    guard let root = try JSONSerialization.jsonObject(with: try Data(contentsOf: url)) as? [String: Any]
    else {
      throw Failure(description: "\(url.lastPathComponent) is no schema")
    }
    self.root = root
  }

  /// Checks a value as `JSONSerialization` gives it. Throws the first failure.
  public func check(_ value: Any) throws { try check(value, root, at: "$") }

  // MARK: - Private

  private static let annotations: Set<String> = ["$schema", "$defs", "title", "description"]

  private func check(_ value: Any, _ schema: [String: Any], at path: String) throws {
    func failure(_ text: String) -> Failure { Failure(description: "\(path): \(text)") }
    for (keyword, rule) in schema.sorted(by: { $0.key < $1.key }) where !Self.annotations.contains(keyword) {
      switch (keyword, rule) {
      case ("$ref", let reference as String):
        try check(value, try definition(reference), at: path)
      case ("anyOf", let schemas as [[String: Any]]):
        let failures = schemas.compactMap { schema -> String? in
          do {
            try check(value, schema, at: path)
            return nil
          } catch {
            return "\(error)"
          }
        }
        if failures.count == schemas.count { throw failure("none of: \(failures.joined(separator: "; "))") }
      case ("type", let name as String):
        guard Self.types(of: value).contains(name) else { throw failure("no \(name)") }
      case ("type", let names as [String]):
        guard !Self.types(of: value).isDisjoint(with: names) else { throw failure("none of \(names)") }
      case ("enum", let values as [String]):
        guard let text = value as? String, values.contains(text) else {
          throw failure("\(value) is none of \(values)")
        }
      case ("const", let expected):
        guard (value as? NSObject) == (expected as? NSObject) else { throw failure("not \(expected)") }
      case ("required", let names as [String]):
        let missing = names.filter { (value as? [String: Any])?[$0] == nil }
        guard missing.isEmpty else { throw failure("without \(missing)") }
      case ("properties", let properties as [String: [String: Any]]):
        for (name, member) in value as? [String: Any] ?? [:] {
          if let schema = properties[name] { try check(member, schema, at: "\(path).\(name)") }
        }
      case ("additionalProperties", let rule):
        let known = schema["properties"] as? [String: Any] ?? [:]
        for (name, member) in value as? [String: Any] ?? [:] where known[name] == nil {
          guard let schema = rule as? [String: Any] else { throw failure("\(name) is not in the schema") }
          try check(member, schema, at: "\(path).\(name)")
        }
      case ("items", let schema as [String: Any]):
        for (index, element) in (value as? [Any] ?? []).enumerated() {
          try check(element, schema, at: "\(path)[\(index)]")
        }
      default:
        throw failure("the schema has a rule that is not known: \(keyword)")
      }
    }
  }

  private func definition(_ reference: String) throws -> [String: Any] {
    let definitions = root["$defs"] as? [String: Any] ?? [:]
    guard reference.hasPrefix("#/$defs/"),
      let schema = definitions[String(reference.dropFirst(8))] as? [String: Any]
    else { throw Failure(description: "no definition \(reference)") }
    return schema
  }

  private static func types(of value: Any) -> Set<String> {
    switch value {
    case is NSNull: return ["null"]
    case is String: return ["string"]
    case is [Any]: return ["array"]
    case is [String: Any]: return ["object"]
    case let number as NSNumber:
      // Booleans are numbers too, stored as a character.
      if String(cString: number.objCType) == "c" { return ["boolean"] }
      return number.doubleValue.rounded() == number.doubleValue ? ["integer", "number"] : ["number"]
    default: return []
    }
  }
}
