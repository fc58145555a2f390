import NIOCore
import NIOHTTP1
import ReelCore

/// Watches a client's connection, so that no work continues after a client has disconnected.
///
/// A client that only closes its side may still read, or may be gone. It gets its response, unless an origin
/// delivers nothing for 3 s: then nothing is sent that would show that the client is gone.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = Any

  private struct State {
    var isClosed = false
    /// The client sends nothing more.
    var isHalfClosed = false
    /// Cancels the work for the current request.
    var cancel: (@Sendable () -> Void)?
    /// The number of operations so far.
    var count = 0
  }

  /// How long a client that has closed its side waits for an origin.
  private static let patience = Duration.seconds(3)

  private let state = Locked(State())

  func handlerAdded(context: ChannelHandlerContext) {
    let pipeline = context.pipeline.syncOperations
    guard let decoder = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self) else {
      return
    }
    try? pipeline.addHandler(ConnectionClosing(), position: .after(decoder))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      let operation = state.withLock { state in
        state.isHalfClosed = true
        return state.cancel == nil ? nil : state.count
      }
      if let operation { cancelLater(operation) }
    }
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
    let (isClosed, isHalfClosed, count) = state.withLock { state in
      if !state.isClosed { state.cancel = { task.cancel() } }
      state.count += 1
      return (state.isClosed, state.isHalfClosed, state.count)
    }
    if isClosed { task.cancel() }
    if isHalfClosed { cancelLater(count) }
    defer { state.withLock { $0.cancel = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  // MARK: - Private

  /// Cancels an operation unless it ends in time.
  private func cancelLater(_ operation: Int) {
    Task {
      try? await Task.sleep(for: Self.patience)
      state.withLock { $0.count == operation ? $0.cancel : nil }?()
    }
  }
}
