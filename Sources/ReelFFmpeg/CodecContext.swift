internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// An open decoder of libavcodec.
///
/// Ownership: it owns the `AVCodecContext` and what `reel_codec_prepare` keeps beside it, and frees both. Frames that are
/// still held stay as they are. A decoder that needs a fresh context replaces the whole value.
final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>
  private let codec: OpaquePointer

  /// Opens the decoder.
  ///
  /// Throws `ReelError.badMedia` for parameters that libavcodec refuses, what `configure` throws, and what `fault` gives
  /// for a context that can't be opened.
  ///
  /// - Parameters:
  ///   - configure: Sets the context's fields before it is opened; the stream's parameters are set by then.
  ///   - fault: A better explanation of a context that can't be opened; nil for libavcodec's own.
  init(
    _ implementation: UnsafePointer<AVCodec>, parameters: CodecParameters, scope: LogScope,
    configure: (UnsafeMutablePointer<AVCodecContext>) throws(ReelError) -> Void,
    fault: (UnsafeMutablePointer<AVCodecContext>) -> ReelError? = { _ in nil }
  ) throws(ReelError) {
    guard let context = avcodec_alloc_context3(implementation) else {
      throw ReelError(.internalFault, "out of memory")
    }
    guard let prepared = reel_codec_prepare(context, scope.token) else {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
      throw ReelError(.internalFault, "out of memory")
    }
    // From here on `deinit` frees both, also where this throws.
    pointer = context
    codec = prepared
    guard avcodec_parameters_to_context(context, parameters.pointer) >= 0 else {
      throw ReelError(.badMedia, "codec parameters can't be used")
    }
    try configure(context)
    let code = avcodec_open2(context, implementation, nil)
    guard code >= 0 else {
      throw fault(context)
        ?? FFmpegError(call: "avcodec_open2", code: code, detail: scope.takeLastError()).reelError()
    }
  }

  deinit {
    var context: UnsafeMutablePointer<AVCodecContext>? = pointer
    avcodec_free_context(&context)
    reel_codec_release(codec)
  }
}
