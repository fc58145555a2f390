/// Answers of an `Origin` that are made when they are asked for, as those of a live stream are.
public protocol DynamicResource: Sendable {
  /// The answer to a request of `path` at this moment; nil where the resource has nothing to do with the path.
  ///
  /// Called once for each request, GET and HEAD alike, on the origin's event loop: what takes long holds up its other
  /// answers.
  ///
  /// - Parameter path: Decoded, with its first slash and without the query.
  func response(at path: String) -> Origin.Response?
}
