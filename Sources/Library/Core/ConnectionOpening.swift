public import Foundation

/// Opens connections in advance, which saves the first request the round trips of connecting.
public protocol ConnectionOpening: Sendable {
  /// Opens a connection to the host of `url` unless one is idle. Returns at once and does not report failures.
  func openConnection(to url: URL)
}
