package import ReelCore
package import ReelPlayback
internal import ReelFFmpeg
package import ReelReading

/// An output that writes frames, and optionally the audio of the same player, as one NUT stream: raw video
/// and 16-bit PCM with their times.
///
/// Each frame is written once, as decoded and upright, at its ``VideoFrame/outputTime``. Later frames that
/// differ from the first are converted as by ``Y4MOutput``. Audio is written at its
/// ``TimedAudio/outputTime``, as by ``WAVOutput``, but missing audio remains a gap in its times.
///
/// A stream with audio begins when the format of the audio is known. If there is none after two seconds of
/// frames, the audio is 48 kHz stereo.
package final class NUTOutput: FrameOutput {
  package let isExternal = true
  /// Writes the audio of the player; nil if the stream has none. Attach it to the same player.
  package let audio: (any AudioOutput)?
  private let stream: Locked<NUTStream>

  /// Creates an output that writes to a file, like ``Y4MOutput/init(path:)``.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  package convenience init(path: String, hasAudio: Bool) throws(ReelError) {
    self.init(try OutputFile(path: path), hasAudio: hasAudio)
  }

  private init(_ file: sending OutputFile, hasAudio: Bool) {
    let stream = Locked(NUTStream(file, hasAudio: hasAudio), rank: .transfer)
    self.stream = stream
    audio = hasAudio ? NUTAudio(stream) : nil
  }

  /// Creates an output that writes to the process's standard output, like ``Y4MOutput/standardOutput()``.
  package static func standardOutput(hasAudio: Bool) -> NUTOutput {
    NUTOutput(.standardOutput(), hasAudio: hasAudio)
  }

  /// Writes a frame at its output time. Of two frames at the same time, the first is written.
  ///
  /// Throws `ReelError`, and the same one in later calls, also those of ``audio``; the file is then removed:
  /// - `cannotWriteOutput` if writing fails.
  /// - `unsupported` if the frame is not planar YUV, or can't be converted to match the first one.
  package func show(_ frame: VideoFrame) throws {
    try stream.withLock { stream throws(ReelError) in try stream.show(frame) }
  }

  /// Ends the frames. The file ends, and gets its name, when its audio has ended too. Without any frame there
  /// is no file.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`.
  package func finish() throws {
    try stream.withLock { stream throws(ReelError) in try stream.finish(.frames) }
  }
}

/// The audio of a `NUTOutput`.
private final class NUTAudio: AudioOutput {
  private let stream: Locked<NUTStream>

  init(_ stream: Locked<NUTStream>) { self.stream = stream }

  func write(_ audio: TimedAudio) throws {
    try stream.withLock { stream throws(ReelError) in try stream.write(audio) }
  }

  func soundEnded() { stream.withLock { $0.soundEnded() } }

  func finish() throws {
    try stream.withLock { stream throws(ReelError) in try stream.finish(.audio) }
  }
}

/// The state of a `NUTOutput`.
private struct NUTStream {
  enum Part { case frames, audio }

  /// Nil after the file got its name, and after a failure.
  private var file: OutputFile?
  /// Nil before the header was written.
  private var muxer: NUTMuxer?
  private let images = UniformImages()
  private var sequence = AudioSequence()
  /// The frames and the samples before the header.
  private var frames: [VideoFrame] = []
  private var pieces: [AudioSequence.Piece] = []
  private var openParts: Set<Part>
  /// False if there is no audio, as far as is known.
  private var hasAudio: Bool
  private var failure: ReelError?

  /// The time that frames wait for the format of the audio, in output time.
  private static let patience = MediaTime(value: 2, timescale: 1)
  /// The maximum number of waiting frames.
  private static let frameLimit = 60

  init(_ file: OutputFile, hasAudio: Bool) {
    self.file = file
    self.hasAudio = hasAudio
    openParts = hasAudio ? [.frames, .audio] : [.frames]
  }

  mutating func show(_ frame: VideoFrame) throws(ReelError) {
    try attempt { stream throws(ReelError) in
      guard stream.openParts.contains(.frames) else {
        throw ReelError(.usage, "the output has ended and can't show frames")
      }
      guard stream.muxer == nil else { return try stream.write(frame) }
      stream.frames.append(frame)
      let waited = frame.outputTime - (stream.frames.first?.outputTime ?? .zero)
      guard
        !stream.hasAudio || stream.sequence.format != nil || waited >= Self.patience
          || stream.frames.count >= Self.frameLimit
      else { return }
      try stream.begin()
    }
  }

  mutating func write(_ audio: TimedAudio) throws(ReelError) {
    try attempt { stream throws(ReelError) in
      guard stream.openParts.contains(.audio) else { throw ReelError(.usage, "the output has been finished") }
      guard stream.hasAudio else { return }
      stream.pieces += try stream.sequence.place(audio.buffer, at: audio.outputTime)
      if stream.muxer == nil, !stream.frames.isEmpty { try stream.begin() } else { try stream.writePieces() }
    }
  }

  /// Records that the item's audio has ended. If there was none, the stream has no audio.
  mutating func soundEnded() {
    guard sequence.format == nil else { return }
    hasAudio = false
    // A failure is thrown with the next frame, or at the end.
    try? attempt { stream throws(ReelError) in
      if stream.muxer == nil, !stream.frames.isEmpty { try stream.begin() }
    }
  }

  mutating func finish(_ part: Part) throws(ReelError) {
    guard openParts.remove(part) != nil, openParts.isEmpty else { return }
    try attempt { stream throws(ReelError) in
      if stream.muxer == nil, !stream.frames.isEmpty { try stream.begin() }
      stream.pieces += try stream.sequence.endConversion()
      try stream.writePieces()
      guard let muxer = stream.muxer else { return }
      try muxer.finish()
      try stream.file?.commit()
    }
    (file, muxer) = (nil, nil)
  }

  // MARK: - Private

  /// Calls `body`, unless it has failed before. A file that can't be written is removed.
  private mutating func attempt(_ body: (inout NUTStream) throws(ReelError) -> Void) throws(ReelError) {
    if let failure { throw failure }
    do throws(ReelError) {
      try body(&self)
    } catch {
      if error.kind != .usage {
        failure = error
        (file, muxer, frames, pieces) = (nil, nil, [], [])
      }
      throw error
    }
  }

  /// Writes the header, and everything that arrived before it.
  private mutating func begin() throws(ReelError) {
    guard let first = frames.first, let file else { return }
    _ = try images.image(of: first)
    guard let format = images.format else { return }
    let rate = first.frameRate ?? first.constantRate
    muxer = try NUTMuxer(
      NUTMuxer.Video(format: format, timeBase: first.stream.timeBase, frameRate: rate),
      audio: hasAudio ? sequence.begin() : nil
    ) { bytes throws(ReelError) in try file.write(bytes) }
    for frame in frames { try write(frame) }
    frames = []
    try writePieces()
  }

  private func write(_ frame: VideoFrame) throws(ReelError) {
    try muxer?.write(images.image(of: frame), at: frame.outputTime)
  }

  private mutating func writePieces() throws(ReelError) {
    guard let muxer else { return }
    for piece in pieces { try muxer.write(piece.buffer, at: piece.position) }
    pieces = []
  }
}
