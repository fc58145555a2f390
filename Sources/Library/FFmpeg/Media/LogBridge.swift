internal import CFFmpeg
internal import CFFmpegShims
internal import Logging
package import ReelCore
import Synchronization

/// Passes FFmpeg's log lines to swift-log, with the name of their source.
///
/// FFmpeg has one log callback per process, which is installed once. A number in the `opaque` of each context
/// identifies its `LogScope` here.
final class LogScope: Sendable {
  /// The number that contexts carry; never 0.
  let token: UInt

  private struct State {
    var lastError: String?
    var damage = DamageTracker()
    var allowsFrameNumberGaps = false
    var refusedSize: String?
    var hasReportedError = false
    var hasCorruptPacket = false
  }

  private let logger: Logger
  private let state = Locked(State())

  init(name: String, logger: Logger) {
    var logger = logger
    logger[metadataKey: "source"] = "\(name)"
    self.logger = logger
    token = LogRegistry.shared.nextToken()
    LogRegistry.shared.insert(self)
  }

  deinit { LogRegistry.shared.remove(token) }

  /// The last line at error level.
  var lastError: String? { state.withLock { $0.lastError } }

  /// Returns the last line at error level, and clears it.
  func takeLastError() -> String? { state.withLock { $0.lastError.take() } }

  /// Returns true if a demuxer has read a corrupt packet since the last call. A parser loses the packet's own
  /// mark.
  func takeCorruptPacket() -> Bool {
    state.withLock { state in
      defer { state.hasCorruptPacket = false }
      return state.hasCorruptPacket
    }
  }

  /// Returns false for an error line that only repeats that there is no frame.
  static func givesReason(_ line: String) -> Bool { line != noFrame }

  /// Throws `badMedia` with the last line if a call failed.
  func check(_ code: Int32, _ call: String) throws(ReelError) {
    if code < 0 { throw FFmpegError(call: call, code: code, detail: takeLastError()).reelError() }
  }

  /// Throws if a call failed because of the decoder, and not because of one packet.
  func checkDecoder(_ code: Int32, call: String) throws(ReelError) {
    guard code == reel_averror(ENOMEM) || code == reel_averror(ENOSYS) else { return }
    throw FFmpegError(call: call, code: code, detail: takeLastError()).reelError(
      code == reel_averror(ENOSYS) ? .unsupported : .internalFault)
  }

  /// True if a line at error level was logged since the beginning or the last `forgetReportedError()`.
  var hasReportedError: Bool { state.withLock { $0.hasReportedError } }

  func forgetReportedError() { state.withLock { $0.hasReportedError = false } }

  /// Accesses the record of damaged frames.
  func withDamage<Result>(_ body: (inout DamageTracker) -> Result) -> Result {
    state.withLock { body(&$0.damage) }
  }

  /// Sets whether H.264 frames may be missing by intent (`gaps_in_frame_num_value_allowed_flag`).
  func setAllowsFrameNumberGaps(_ allowed: Bool) { state.withLock { $0.allowsFrameNumberGaps = allowed } }

  /// The size of frames that the decoder rejected as too large, such as `65520x65520`.
  var refusedSize: String? { state.withLock { $0.refusedSize } }

  fileprivate func receive(_ text: String, frame: Int64, level: Int32) {
    let isGap = text.hasPrefix(Self.gapPhrase)
    let tellsDamage = isGap || level <= AV_LOG_ERROR && Self.damagePhrases.contains { text.contains($0) }
    state.withLock { state in
      if level <= AV_LOG_ERROR { state.hasReportedError = true }
      // libavformat/utils.c, ff_read_packet.
      if text.hasPrefix("Packet corrupt") { state.hasCorruptPacket = true }
      if tellsDamage, frame >= 0, !(isGap && state.allowsFrameNumberGaps) {
        state.damage.record(frame, isGap: isGap)
      }
      if text.hasPrefix("Picture size "), let size = text.split(separator: " ").dropFirst(2).first {
        state.refusedSize = String(size)
      }
      // Some lines arrive in pieces, of which only the first is informative.
      if level <= AV_LOG_ERROR, text.contains(" "), text.contains(where: \.isLetter),
        state.lastError == nil || !Self.echoes.contains(text)
      {
        state.lastError = text
      }
    }
    logger.log(level: Self.level(level), "\(text)")
  }

  // MARK: - Private

  /// FFmpeg flags a concealed frame of H.264 on the frame itself, but only logs a missing reference
  /// (`hevc_refs.c`, `h264_refs.c`).
  private static let damagePhrases = [
    "Could not find ref with POC", "Missing reference picture", "reference picture missing during reorder",
    "Error constructing the frame RPS", "error while decoding MB",
    "mismatching checksum", "cu_qp_delta", "Error parsing NAL unit", "First slice in a frame missing",
    "Zero refs in the frame RPS", "Overlapping slice", "Two slices reporting being the first",
    // MPEG and H.263, which also flag concealed frames, and MJPEG.
    " damaged at ", "mjpeg_decode_dc: bad vlc", "error count: ",
  ]

  /// From `h264dec.c`.
  private static let noFrame = "no frame!"

  /// Lines that follow the one with the reason (`h264dec.c`).
  private static let echoes = [noFrame, "decode_slice_header error"]

  /// From `h264_slice.c`, at debug level.
  private static let gapPhrase = "Frame num gap"

  /// FFmpeg's errors describe the media, and Reel reports them in its own words. Therefore, their log lines
  /// have a lower level.
  private static func level(_ level: Int32) -> Logger.Level {
    switch level {
    case ...AV_LOG_WARNING: .debug
    default: .trace
    }
  }
}

/// The live scopes, by token.
private final class LogRegistry: Sendable {
  static let shared = LogRegistry()

  private struct WeakScope {
    weak var scope: LogScope?
  }

  private let scopes = Locked<[UInt: WeakScope]>([:])
  private let lastToken = Atomic<UInt>(0)

  private init() {
    reel_log_install(
      { token, frame, level, text in
        guard let text, let scope = LogRegistry.shared.scope(token) else { return }
        scope.receive(String(cString: text), frame: frame, level: level)
      }, AV_LOG_WARNING)
  }

  func nextToken() -> UInt { lastToken.add(1, ordering: .relaxed).newValue }

  func insert(_ scope: LogScope) { scopes.withLock { $0[scope.token] = WeakScope(scope: scope) } }

  func remove(_ token: UInt) { scopes.withLock { _ = $0.removeValue(forKey: token) } }

  private func scope(_ token: UInt) -> LogScope? { scopes.withLock { $0[token]?.scope } }
}

/// A failed call into FFmpeg: the function, FFmpeg's code and text, and the error line that it logged.
package struct FFmpegError: Error, Sendable, Hashable {
  /// The failing function, such as `avformat_open_input`.
  package let call: String
  /// FFmpeg's negative code.
  package let code: Int32
  /// The last error line that the context logged, if any: it is often more specific than the code.
  package let detail: String?

  package init(call: String, code: Int32, detail: String? = nil) {
    self.call = call
    self.code = code
    self.detail = detail
  }

  /// FFmpeg's text for the code.
  package var message: String {
    var buffer = [CChar](repeating: 0, count: 128)
    av_strerror(code, &buffer, buffer.count)
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Throws `internalFault` if a call failed.
  static func check(_ code: Int32, _ call: String) throws(ReelError) {
    if code < 0 { throw FFmpegError(call: call, code: code).reelError(.internalFault) }
  }

  /// Returns the error for users of Reel.
  package func reelError(_ kind: ReelError.Kind = .badMedia) -> ReelError {
    let what = detail.map { "\($0) (\(call): \(message))" } ?? "\(message) (\(call))"
    var error = ReelError(kind, what)
    error.ffmpegCode = code
    return error
  }
}
