internal import ReelCore

/// The fields of an object of JSON. Durations are in milliseconds, to the microsecond; what is nil is left out.
package struct JSONFields: Encodable, Sendable, ExpressibleByDictionaryLiteral {
  struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
  }

  private let fields: [(name: String, value: (any Encodable & Sendable)?)]

  package init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) {
    fields = elements.map { (name: $0, value: $1) }
  }

  package func encode(to encoder: any Encoder) throws {
    var object = encoder.container(keyedBy: Name.self)
    for (name, value) in fields {
      guard let value else { continue }
      if let duration = value as? Duration {
        try object.encode(duration.milliseconds, forKey: Name(name))
      } else {
        try object.encode(value, forKey: Name(name))
      }
    }
  }
}

extension Encoder {
  /// Writes the fields into the object of this encoder, which may have others already.
  package func encode(_ fields: JSONFields) throws { try fields.encode(to: self) }
}
