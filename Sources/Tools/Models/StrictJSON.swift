internal import Foundation
package import ReelCore

/// Reads and writes JSON that people write too. Its fields are in snake_case, an unknown one is an error, and each error has
/// the coding path of its value, such as `dwells[1].dwell`.
enum StrictJSON {
  /// Throws `ReelError` of kind `badManifest`.
  static func decode<Value: Codable>(_: Value.Type, from data: Data) throws(ReelError) -> Value {
    do {
      let decoder = JSONDecoder()
      decoder.keyDecodingStrategy = .convertFromSnakeCase
      let value = try decoder.decode(Value.self, from: data)
      let known = try JSONSerialization.jsonObject(with: encoder.encode(value))
      if let field = unknownField(in: try JSONSerialization.jsonObject(with: data), beside: known, at: "") {
        throw ReelError(.badManifest, "\(field.prefix(Self.shownCount)): unknown field")
      }
      return value
    } catch let error as DecodingError {
      throw ReelError(error)
    } catch {
      throw error as? ReelError ?? ReelError(.badManifest, "\(error)")
    }
  }

  /// Returns indented JSON with sorted keys.
  static func text(_ value: some Encodable) throws(ReelError) -> String {
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw ReelError(.internalFault, "\(error)")
    }
  }

  /// The numbers, words and truth values in a value, with their paths, in order.
  static func values(in value: some Encodable) throws(ReelError) -> [(path: String, value: Any)] {
    do {
      return values(in: try JSONSerialization.jsonObject(with: encoder.encode(value)), at: "")
    } catch {
      throw ReelError(.internalFault, "\(error)")
    }
  }

  // MARK: - Private

  /// The characters of a name in a file that an error shows.
  static let shownCount = 100

  private static func values(in json: Any, at path: String) -> [(path: String, value: Any)] {
    if let object = json as? [String: Any] {
      return object.sorted { $0.key < $1.key }.flatMap { name, value in
        values(in: value, at: path.isEmpty ? name : "\(path).\(name)")
      }
    }
    guard let list = json as? [Any], !list.isEmpty else { return [(path, json)] }
    return list.enumerated().flatMap { index, value in values(in: value, at: "\(path)[\(index)]") }
  }

  private static var encoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  /// The path of the first field that a decoded value does not have when it is encoded again.
  private static func unknownField(in found: Any, beside known: Any, at path: String) -> String? {
    if let found = found as? [String: Any], let known = known as? [String: Any] {
      for (name, value) in found.sorted(by: { $0.key < $1.key }) where !(value is NSNull) {
        let place = path.isEmpty ? name : "\(path).\(name)"
        guard let other = known[name] else { return place }
        if let field = unknownField(in: value, beside: other, at: place) { return field }
      }
    } else if let found = found as? [Any], let known = known as? [Any] {
      for (index, (value, other)) in zip(found, known).enumerated() {
        if let field = unknownField(in: value, beside: other, at: "\(path)[\(index)]") { return field }
      }
    }
    return nil
  }
}

/// A value that is one of a few words.
protocol Choice: RawRepresentable<String>, CaseIterable, Codable, Sendable, Hashable {}

extension Choice {
  package init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let value = Self(rawValue: text) else {
      let words = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath,
          debugDescription: "must be one of \(words), not \"\(text.prefix(StrictJSON.shownCount))\""))
    }
    self = value
  }
}

extension [any CodingKey] {
  /// `dwells[1].dwell`, in snake_case.
  package var text: String {
    reduce(into: "") { text, key in
      let name = key.stringValue.reduce(into: "") {
        $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1)
      }
      text += key.intValue.map { "[\($0)]" } ?? (text.isEmpty ? "" : ".") + name
    }
  }
}

extension ReelError {
  /// The error of a value in a file that a person wrote, with its coding path.
  package init(_ error: DecodingError) {
    func words(_ type: Any.Type) -> String {
      switch type {
      case is Bool.Type: "true or false"
      case is String.Type: "a string"
      case is any FixedWidthInteger.Type: "a whole number"
      case is any BinaryFloatingPoint.Type: "a number"
      case is any ExpressibleByArrayLiteral.Type: "an array"
      default: "an object"
      }
    }
    let (path, reason): ([any CodingKey], String) =
      switch error {
      case .typeMismatch(let type, let context), .valueNotFound(let type, let context):
        (context.codingPath, "must be \(words(type))")
      case .keyNotFound(let key, let context): (context.codingPath + [key], "the field is missing")
      case .dataCorrupted(let context) where context.debugDescription.hasPrefix("Cannot initialize "):
        // Swift's own words for the name of a case that does not exist.
        (context.codingPath, "an unknown value")
      case .dataCorrupted(let context):
        (
          context.codingPath,
          (context.underlyingError as NSError?)?.userInfo[NSDebugDescriptionErrorKey] as? String
            ?? context.debugDescription
        )
      @unknown default: ([], "\(error)")
      }
    self.init(.badManifest, path.isEmpty ? reason : "\(path.text): \(reason)")
  }
}
