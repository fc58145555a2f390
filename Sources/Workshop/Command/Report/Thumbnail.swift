import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool

/// A written still as an image in a page.
enum Thumbnail {
  /// The maximum size of a file that is included unchanged.
  static let byteLimit = 512 << 10
  /// The maximum size of a pixmap that is read and scaled down.
  private static let pixmapLimit = 64 << 20
  private static let box = PixelSize(width: 240, height: 320)

  enum Image {
    /// A file, and the subtype of its media type.
    case bytes([UInt8], type: String)
    /// The reason why there is none.
    case none(String)
  }

  /// Returns the image of a still that results refer to by a path.
  ///
  /// The path is relative to the folder in which the run was started. If there is no such file, it is
  /// searched below the folder of the results.
  static func image(path: String, folder: String) -> Image {
    guard let file = find(path, folder) else { return .none("the file does not exist") }
    do throws(ReelError) {
      let bytes = try LocalText.bytes(path: file, limit: pixmapLimit, isRegular: true)
      if let kind = kind(of: bytes) {
        guard bytes.count <= byteLimit else {
          return .none("\(ByteSize(byteCount: bytes.count)): not included")
        }
        return .bytes(bytes, type: kind)
      }
      guard let image = pixmap(bytes) else { return .none("not a supported image") }
      return .bytes(try PNGEncoder.encode(image.fitted(into: box)), type: "png")
    } catch {
      return .none("can't be read, is too large, or is not a regular file")
    }
  }

  // MARK: - Private

  private static func find(_ path: String, _ folder: String) -> String? {
    if FileManager.default.isReadableFile(atPath: path) { return path }
    let parts = path.split(separator: "/")
    for start in parts.indices where !parts[start...].contains("..") {
      let candidate = (folder as NSString).appendingPathComponent(parts[start...].joined(separator: "/"))
      if FileManager.default.isReadableFile(atPath: candidate) { return candidate }
    }
    return nil
  }

  /// Returns the subtype of its media type; nil for a format that browsers do not show.
  private static func kind(of bytes: [UInt8]) -> String? {
    if bytes.starts(with: [0xff, 0xd8, 0xff]) { return "jpeg" }
    if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]) { return "png" }
    if bytes.starts(with: Array("RIFF".utf8)), bytes.dropFirst(8).starts(with: Array("WEBP".utf8)) {
      return "webp"
    }
    if bytes.dropFirst(4).starts(with: Array("ftypavif".utf8)) { return "avif" }
    return nil
  }

  /// Reads a binary pixmap (P6) as written by Reel.
  private static func pixmap(_ bytes: [UInt8]) -> RGBImage? {
    let head = bytes.prefix(32).split(separator: 0x0a, maxSplits: 3, omittingEmptySubsequences: false)
    guard head.count == 4, head[0].elementsEqual("P6".utf8), head[2].elementsEqual("255".utf8) else {
      return nil
    }
    let numbers = head[1].split(separator: 0x20).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    guard numbers.count == 2, (1...16384).contains(numbers[0]), (1...16384).contains(numbers[1]) else {
      return nil
    }
    let start = head[0].count + head[1].count + head[2].count + 3
    guard bytes.count - start == numbers[0] * numbers[1] * 3 else { return nil }
    return RGBImage(size: PixelSize(width: numbers[0], height: numbers[1]), pixels: Array(bytes[start...]))
  }
}

extension RGBImage {
  /// Returns the image reduced by a whole factor, so that it fits into a box; each pixel is the mean of those
  /// that it covers.
  fileprivate func fitted(into box: PixelSize) -> RGBImage {
    let factor = max((size.width + box.width - 1) / box.width, (size.height + box.height - 1) / box.height)
    let (width, height) = (size.width / max(factor, 1), size.height / max(factor, 1))
    guard factor > 1, width > 0, height > 0 else { return self }
    var smaller = [UInt8](repeating: 0, count: width * height * 3)
    for y in 0..<height {
      for x in 0..<width {
        var sums = (0, 0, 0)
        for row in y * factor..<(y + 1) * factor {
          for column in x * factor..<(x + 1) * factor {
            let place = (row * size.width + column) * 3
            sums.0 += Int(pixels[place])
            sums.1 += Int(pixels[place + 1])
            sums.2 += Int(pixels[place + 2])
          }
        }
        let (place, count) = ((y * width + x) * 3, factor * factor)
        smaller[place] = UInt8(sums.0 / count)
        smaller[place + 1] = UInt8(sums.1 / count)
        smaller[place + 2] = UInt8(sums.2 / count)
      }
    }
    return RGBImage(size: PixelSize(width: width, height: height), pixels: smaller)
  }
}
