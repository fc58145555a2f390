internal import Foundation
package import ReelFFmpeg

/// The format of an image file. The raw value is the file's extension.
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
  /// Binary portable pixmap (P6), 8-bit RGB.
  case ppm
  /// PNG (ISO/IEC 15948), 8-bit RGB.
  case png

  package var still: StillFormat {
    switch self {
    case .ppm: .ppm
    case .png: .png
    }
  }
}

extension StillFormat {
  /// The name of a series' file: `STEM-000001.png`.
  package func fileName(stem: String, number: Int) -> String {
    "\(stem)-\(String(format: "%06d", number)).\(fileExtension)"
  }
}
