/// A resource that generates its responses on request, such as a live stream.
public protocol DynamicResource: Sendable {
  /// Returns the current response for `path`, or nil if the path does not belong to the resource.
  ///
  /// The origin calls this once for each GET and HEAD request, on its event loop: a slow call delays all other answers.
  ///
  /// - Parameter path: The percent-decoded path with its leading slash, without the query.
  func response(at path: String) -> Origin.Response?
}
