import NIOCore
import ReelCore

/// Watches over a client's connection, so that nothing goes on for a client that has left.
///
/// One that ends its side is taken for gone, as most servers do: no player does that and still listens.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = Any

  private struct State {
    var isClosed = false
    /// What goes on for the present request.
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
