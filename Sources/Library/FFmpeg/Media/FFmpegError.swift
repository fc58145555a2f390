internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// A call into FFmpeg that failed: which call, FFmpeg's own code and text, and the error line that it logged.
package struct FFmpegError: Error, Sendable, Hashable {
  /// The failing function, as `avformat_open_input`.
  package let call: String
  /// FFmpeg's negative code.
  package let code: Int32
  /// The last error line that the context logged, if any: it often says more than the code.
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

  /// The error as users of Reel get it.
  package func reelError(_ kind: ReelError.Kind = .badMedia) -> ReelError {
    let what = detail.map { "\($0) (\(call): \(message))" } ?? "\(message) (\(call))"
    return ReelError(kind, what)
  }
}
