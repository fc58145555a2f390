import ArgumentParser
import ReelCore
import ReelFFmpeg

/// Readers of option values that describe frames.
enum ImageOptions {
  /// `320x180`.
  static func size(_ text: String) throws -> PixelSize {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let width = parts[0], let height = parts[1], (1...16384).contains(width),
      (1...16384).contains(height)
    else { throw ValidationError("'\(text)' is no size: width and height from 1 to 16384, as 320x180") }
    return PixelSize(width: width, height: height)
  }

  /// `fit`, `fill` or `stretch`.
  static func gravity(_ text: String) throws -> VideoGravity {
    guard let gravity = VideoGravity(rawValue: text) else {
      throw ValidationError("'\(text)' is no gravity: fit, fill or stretch")
    }
    return gravity
  }
}
