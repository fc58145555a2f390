internal import ReelCore
public import ReelFFmpeg
public import ReelReading
internal import ReelSources

/// Waiting for a player, and reading its frames and audio in a loop.
extension Player {
  /// The frame on show, and then each frame when it is due.
  ///
  /// Each read makes a sequence of its own. A slow reader gets only the newest frame, and delays nothing. The sequence
  /// ends when an item was played to its end or the player stops. It throws the error of an item that fails, and
  /// `CancellationError` if the task that reads is cancelled. The player lives as long as the sequence.
  public var frames: AsyncThrowingStream<VideoFrame, any Error> {
    let (frames, continuation) = AsyncThrowingStream.makeStream(
      of: VideoFrame.self, bufferingPolicy: .bufferingNewest(1))
    let output = CallbackOutput(onFinish: { continuation.finish() }, onFrame: { continuation.yield($0) })
    let ending = ending { continuation.finish(throwing: $0) }
    continuation.onTermination = { _ in
      // A cancelled stream would end as if all was read.
      continuation.finish(throwing: CancellationError())
      ending.cancel()
      // Not in this call, which must not wait for locks: the task that reads may be locked.
      Task { try? self.detach(output) }
    }
    do { try attach(output) } catch { continuation.finish(throwing: error) }
    return frames
  }

  /// The audio that is due, with the player's volume applied.
  ///
  /// Each read makes a sequence of its own, which ends like ``frames``, but throws nothing. A reader that falls
  /// behind loses the oldest of its samples; at a rate of `.infinity`, attach an ``AudioOutput`` instead.
  ///
  /// - Parameters:
  ///   - sampleRate: The number of samples per second and channel.
  ///   - channels: The number of channels; audio with others is mixed.
  public func audio(sampleRate: Int, channels: Int) -> AsyncStream<PCMBuffer> {
    let (buffers, continuation) = AsyncStream.makeStream(
      of: PCMBuffer.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
    let output = StreamedAudio(
      to: PCMFormat(sampleRate: sampleRate, channelCount: channels), continuation)
    let ending = ending { _ in output.finish() }
    continuation.onTermination = { _ in
      ending.cancel()
      Task { try? self.detach(output) }
    }
    attach(output)
    return buffers
  }

  /// Waits until the first frame of the item is decoded and on show.
  ///
  /// Throws the error with which the item failed; `ReelError` of kind `usage` if the player has no item, or `superseded` if
  /// it stops or gets another one; or `CancellationError` if the task is cancelled.
  public func ready() async throws {
    let item = try item()
    try await wait(for: item, observing: { item.status.observe($0) }) { status in
      if case .failed(let error) = status { throw error }
      return status == .readyToPlay
    }
  }

  /// Plays the item, and waits until it was played to its end. With ``ActionAtItemEnd/loop``, it has none.
  ///
  /// Segments that are missing, or that a server refuses, are skipped; ``PlayerItem/errorLog`` lists them.
  ///
  /// If the task is cancelled, the player pauses. Throws like ``ready()``.
  public func playToEnd() async throws {
    let item = try item()
    func begin(_ receive: @escaping @Sendable (PlayerEvent) -> Void) throws -> @Sendable () -> Void {
      let end = item.eventChannel.observe(receive)
      if case .failed(let error) = item.status.value { throw error }
      play()
      return end
    }
    do {
      try await wait(for: item, observing: begin) { event in
        if case .failed(let error) = event { throw error }
        if case .playedToEnd = event { return true }
        return false
      }
    } catch {
      if Task.isCancelled { pause() }
      throw error
    }
  }

  // MARK: - Private

  /// The number of buffers that wait for a reader of audio: some seconds.
  private static let bufferLimit = 256

  private func item() throws -> PlayerItem {
    guard let item = currentItem.value else { throw core.state.read { $0.noItem } }
    return item
  }

  /// Calls `end` when an item was played to its end, or with its error.
  private func ending(_ end: @escaping @Sendable ((any Error)?) -> Void) -> Task<Void, Never> {
    let events = core.events.newEvents
    let error = core.state.read { $0.refusal }
    if case .failed(let error) = currentItem.value?.status.value {
      end(error)
    } else if let error {
      end(error)
    }
    return Task {
      for await event in events {
        switch event {
        case .playedToEnd: return end(nil)
        case .failed(let error): return end(error)
        default: continue
        }
      }
    }
  }

  /// Receives values until `isEnd` returns true or throws, or the player no longer has the item. Values and items come
  /// through one stream, so that the item is not left before what happened to it.
  ///
  /// - Parameter observe: Begins to observe the values; returns what ends that.
  private func wait<Value: Sendable>(
    for item: PlayerItem,
    observing observe: (@escaping @Sendable (Value) -> Void) throws -> @Sendable () -> Void,
    until isEnd: (Value) throws -> Bool
  ) async throws {
    let (values, continuation) = AsyncStream.makeStream(of: Value?.self)
    // The observer does not hold the item, because it is released under the lock of the property.
    let endItems = currentItem.observe { [identity = ObjectIdentifier(item)] current in
      if current.map({ ObjectIdentifier($0) }) != identity { continuation.yield(nil) }
    }
    defer { endItems() }
    let endValues = try observe { continuation.yield($0) }
    defer { endValues() }
    for await value in values {
      guard let value else { break }
      if try isEnd(value) { return }
    }
    try Task.checkCancellation()
    throw ReelError(.superseded, "the player has left the item", at: item.source.name)
  }
}

/// An output that passes audio to a stream, in the format of its reader.
private final class StreamedAudio: AudioOutput {
  private let target: PCMFormat
  private let continuation: AsyncStream<PCMBuffer>.Continuation
  /// The converter, once there are samples to convert.
  private let converter = Locked<PCMConverter?>(nil, rank: .transfer)

  init(to target: PCMFormat, _ continuation: AsyncStream<PCMBuffer>.Continuation) {
    self.target = target
    self.continuation = continuation
  }

  func write(_ audio: TimedAudio) throws {
    let buffers = try converter.withLock { converter in
      var buffers: [PCMBuffer] = []
      if let old = converter, old.source != audio.buffer.format {
        buffers.append(try old.drain())
        converter = nil
      }
      let current = try converter ?? PCMConverter(from: audio.buffer.format, to: target)
      converter = current
      buffers.append(try current.convert(audio.buffer))
      return buffers
    }
    for buffer in buffers where buffer.frameCount > 0 { continuation.yield(buffer) }
  }

  func soundEnded() {
    let rest = converter.withLock { converter in
      defer { converter = nil }
      return try? converter?.drain()
    }
    if let rest, rest.frameCount > 0 { continuation.yield(rest) }
  }

  func finish() {
    soundEnded()
    continuation.finish()
  }
}
