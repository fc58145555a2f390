import Hummingbird
import NIOCore

/// A request with the connection that it came over.
struct GatewayContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }

  /// Runs `operation`, and cancels it if the client disconnects.
  ///
  /// Throws what it throws; `CancellationError` if the client has already disconnected.
  func whileConnected<Result: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let connection = try await channel.pipeline.handler(type: ClientConnection.self).get()
    return try await connection.whileOpen(operation)
  }
}
