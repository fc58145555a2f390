import Measuring
import ReelTransport

try await measure { options in
  let time = Duration.seconds(options.timeout)
  var configuration = TransportConfiguration(
    connectTimeout: time, firstByteTimeout: time, idleTimeout: time, retryPolicy: .never,
    connectionsAhead: options.ahead)
  if let path = options.authorities { configuration.trust = .authorities(path: path) }
  return TransportFetcher(configuration: configuration)
}
