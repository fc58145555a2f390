internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// Converts audio to another sample rate and other channels, with swresample and its own mixing matrix.
///
/// Resampling holds samples back: `drain()` returns them at the end. Confined to one thread at a time.
///
/// Ownership: owns the swresample context.
package final class PCMConverter {
  package let source: PCMFormat
  package let target: PCMFormat
  private var context: OpaquePointer?

  /// Throws `ReelError.unsupported` for formats that swresample can't convert.
  package init(from source: PCMFormat, to target: PCMFormat) throws(ReelError) {
    self.source = source
    self.target = target
    let rates = (Int32(clamping: source.sampleRate), Int32(clamping: target.sampleRate))
    var made: OpaquePointer?
    let code = source.withLayout { sourceLayout in
      target.withLayout { targetLayout in
        let code = swr_alloc_set_opts2(
          &made, &targetLayout, AV_SAMPLE_FMT_FLT, rates.1, &sourceLayout, AV_SAMPLE_FMT_FLT, rates.0, 0, nil)
        return code < 0 ? code : swr_init(made)
      }
    }
    guard code >= 0 else {
      swr_free(&made)
      throw ReelError(
        .unsupported,
        "audio with \(source.channelCount) channels at \(source.sampleRate) Hz can't be converted to"
          + " \(target.channelCount) channels at \(target.sampleRate) Hz")
    }
    context = made
  }

  deinit { swr_free(&context) }

  /// The number of samples held back, at the target's rate.
  package var delayFrameCount: Int { Int(swr_get_delay(context, Int64(target.sampleRate))) }

  /// Returns the samples that follow the previous result, after the input of `buffer`, which has the source's
  /// format. The result has no time.
  package func convert(_ buffer: PCMBuffer) throws(ReelError) -> PCMBuffer {
    guard buffer.sampleRate == source.sampleRate, buffer.channelCount == source.channelCount else {
      throw ReelError(.internalFault, "samples of another format than the converter's")
    }
    guard buffer.frameCount > 0 else { return PCMBuffer(format: target, samples: []) }
    return try run(buffer.samples, frameCount: buffer.frameCount)
  }

  /// Returns the samples held back. The converter accepts no more samples after that.
  package func drain() throws(ReelError) -> PCMBuffer { try run(nil, frameCount: 0) }

  // MARK: - Private

  /// Converts interleaved samples; without input, returns those held back.
  private func run(_ input: [Float]?, frameCount: Int) throws(ReelError) -> PCMBuffer {
    guard let count = Int32(exactly: frameCount) else {
      throw ReelError(.unsupported, "a buffer of \(frameCount) samples is too long")
    }
    // At least one sample, so that there is an address even without samples.
    let capacity = max(1, swr_get_out_samples(context, count))
    var converted: Int32 = 0
    let samples = [Float](unsafeUninitializedCapacity: Int(capacity) * target.channelCount) {
      buffer, filled in
      buffer.withMemoryRebound(to: UInt8.self) { output in
        if let input {
          input.withUnsafeBytes { bytes in
            converted = reel_resample_interleaved(
              context, output.baseAddress, capacity, bytes.bindMemory(to: UInt8.self).baseAddress, count)
          }
        } else {
          converted = reel_resample_interleaved(context, output.baseAddress, capacity, nil, 0)
        }
      }
      filled = max(0, Int(converted)) * target.channelCount
    }
    try FFmpegError.check(converted, "swr_convert")
    return PCMBuffer(format: target, samples: samples)
  }
}
