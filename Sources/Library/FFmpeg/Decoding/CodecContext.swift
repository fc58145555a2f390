internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// An open decoder of libavcodec.
///
/// Ownership: owns and frees the `AVCodecContext` and the `reel_codec` that `reel_codec_prepare` made for it. Frames
/// that it returned stay valid. A decoder that needs a new context replaces the whole object.
final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>
  private let codec: OpaquePointer

  /// Opens the decoder.
  ///
  /// Throws `ReelError.badMedia` for parameters that libavcodec rejects, whatever `configure` throws, and the error
  /// from `fault` if the context can't be opened.
  ///
  /// - Parameters:
  ///   - configure: Sets fields of the context before it is opened. The stream's parameters are already set.
  ///   - fault: Returns a specific error for a context that can't be opened, or nil to use libavcodec's error.
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
    // From here on `deinit` frees both, even if `init` throws.
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
