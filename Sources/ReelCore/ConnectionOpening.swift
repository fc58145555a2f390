public import Foundation

/// Opens connections before there is a request for them, so that the first request saves the round trips.
public protocol ConnectionOpening: Sendable {
  /// Opens a connection to the host of `url`, where there is none that is free. Returns at once; a failure is nobody's.
  func openConnection(to url: URL)
}
