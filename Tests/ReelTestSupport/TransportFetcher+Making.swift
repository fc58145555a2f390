package import Foundation
package import HTTPTypes
package import ReelCore
package import ReelTransport

/// A fetcher whose retries do not keep a test waiting, and whose time limits are the hang limit unless told.
package func makeFetcher(
  connectTimeout: Duration = HangLimit.duration, firstByteTimeout: Duration = HangLimit.duration,
  idleTimeout: Duration = HangLimit.duration, attempts: Int = 2, connectionsAhead: Int = 1,
  connections: TransportFetcher.Connections = .shared,
  configure: (inout TransportConfiguration) -> Void = { _ in }, admission: TransportFetcher.Admission? = nil
) -> TransportFetcher {
  let retries = RetryPolicy(attempts: attempts, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(4))
  var configuration = TransportConfiguration(
    connectTimeout: connectTimeout, firstByteTimeout: firstByteTimeout, idleTimeout: idleTimeout,
    retryPolicy: retries, connectionsAhead: connectionsAhead)
  configuration.drainTimeout = HangLimit.duration
  configure(&configuration)
  return TransportFetcher(
    configuration: configuration, connections: connections, admission: admission, recordRetryAfter: nil,
    logger: silentLogger)
}

extension TransportFetcher {
  /// The whole body.
  package func bytes(
    _ url: URL, range: ByteRange? = nil, headers: HTTPFields = [:], purpose: FetchPurpose = .segment
  ) async throws -> [UInt8] {
    let request = FetchRequest(url: url, range: range, headers: headers, purpose: purpose)
    return try await fetch(request).body.collect(upTo: 1 << 30)
  }
}
