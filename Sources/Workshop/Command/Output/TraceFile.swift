import ReelCore
import ReelPlayback

/// The file that `--trace` writes: under a temporary name until it is whole.
final class TraceFile: Sendable {
  private struct State: ~Copyable {
    let file: OutputFile
    var buffer: [UInt8] = []
    var failure: ReelError?
  }

  private let state: Locked<State>

  private static let bufferByteCount = 64 << 10

  /// Nobody else may use `file`.
  init(_ file: sending OutputFile) { state = Locked(State(file: file), rank: .writer) }

  func write(_ line: String) {
    state.withLock { state in
      guard state.failure == nil else { return }
      state.buffer += Array(line.utf8)
      state.buffer.append(UInt8(ascii: "\n"))
      if state.buffer.count >= Self.bufferByteCount { Self.flush(&state) }
    }
  }

  /// Throws `ReelError.cannotWriteOutput` for what could not be written.
  func commit() throws(ReelError) {
    let failure = state.withLock { state -> ReelError? in
      Self.flush(&state)
      guard state.failure == nil else { return state.failure }
      do throws(ReelError) { try state.file.commit() } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  private static func flush(_ state: inout State) {
    do throws(ReelError) { try state.file.write(state.buffer) } catch { state.failure = error }
    state.buffer.removeAll(keepingCapacity: true)
  }
}
