import Foundation
public import Testing

/// The object that a text is in JSON.
public func jsonObject(
  _ text: some StringProtocol, sourceLocation: SourceLocation = #_sourceLocation
) throws -> [String: Any] {
  try #require(
    try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)",
    sourceLocation: sourceLocation)
}
