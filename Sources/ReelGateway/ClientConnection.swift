import NIOCore
import ReelCore

/// Watches a client's connection, so that no work continues after a client has disconnected.
///
/// A client that closes its side counts as disconnected, as with most servers: no player closes it and still
/// reads.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = Any

  private struct State {
    var isClosed = false
    /// Cancels the work for the current request.
    var cancel: (@Sendable () -> Void)?
  }

  private let state = Locked(State())

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    let cancel = state.withLock { state in
      state.isClosed = true
      let cancel = state.cancel
      state.cancel = nil
      return cancel
    }
    cancel?()
    context.fireChannelInactive()
  }

  /// Runs `operation`, and cancels it when the connection closes. One at a time: requests of a connection are answered
  /// one after the other.
  func whileOpen<Result: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task(operation: operation)
    let isClosed = state.withLock { state in
      if !state.isClosed { state.cancel = { task.cancel() } }
      return state.isClosed
    }
    if isClosed { task.cancel() }
    defer { state.withLock { $0.cancel = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }
}
