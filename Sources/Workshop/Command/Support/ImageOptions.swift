import ArgumentParser
import ReelCore
import ReelFFmpeg
import ReelPool

/// Readers of option values that describe frames.
enum ImageOptions {
  /// `320x180`.
  static func size(_ text: String) throws -> PixelSize {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let width = parts[0], let height = parts[1], (1...16384).contains(width),
      (1...16384).contains(height)
    else { throw ValidationError("'\(text)' is not a size: width and height from 1 to 16384, as 320x180") }
    return PixelSize(width: width, height: height)
  }

  /// `720` or `720p`.
  static func lines(_ text: String) throws -> Int {
    let digits = text.lowercased().hasSuffix("p") ? text.dropLast() : text[...]
    guard let lines = Int(digits), lines > 0 else {
      throw ValidationError("'\(text)' is not a number of lines: write 720 or 720p")
    }
    return lines
  }

  /// `320x180`, `320` or `720p`.
  static func stillSize(_ text: String) throws -> SizeLimit {
    if text.lowercased().contains("x") { return .box(try size(text)) }
    let isShortSide = text.lowercased().hasSuffix("p")
    guard let length = Int(isShortSide ? text.dropLast() : text[...]), (1...16384).contains(length) else {
      throw ValidationError(
        "'\(text)' is not a size: write it as 320x180, 320 or 720p, with numbers from 1 to 16384")
    }
    return isShortSide ? .shortSide(length) : .width(length)
  }

  /// `30kB`.
  static func byteCount(_ text: String) throws -> Int {
    let count: Int
    do { count = try ByteSize(parsing: text).byteCount } catch { throw ValidationError(error.description) }
    guard count > 0 else { throw ValidationError("'\(text)' is not a size above 0") }
    return count
  }

  /// `fit`, `fill` or `stretch`.
  static func gravity(_ text: String) throws -> VideoGravity {
    guard let gravity = VideoGravity(rawValue: text) else {
      throw ValidationError("'\(text)' is not a gravity: use fit, fill or stretch")
    }
    return gravity
  }
}
