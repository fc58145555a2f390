/// A file format for one image.
package enum StillFormat: String, Sendable, Hashable, CaseIterable {
  /// Baseline JPEG (ITU-T T.81) in a JFIF file: full-range Y'CbCr by the BT.601 matrix.
  case jpeg
  /// PNG (ISO/IEC 15948), 8 or 16 bits per component.
  case png
  /// Lossy WebP (RFC 9649).
  case webp
  /// AVIF: one AV1 intra frame, with its color properties in a `colr` box.
  case avif
  /// Binary portable pixmap (P6), 8 bits per component.
  case ppm

  /// The extension of file names.
  package var fileExtension: String { self == .jpeg ? "jpg" : rawValue }

  /// The quality that is used by default, from 1 to 100; nil for formats that lose nothing.
  package var defaultQuality: Int? {
    switch self {
    case .jpeg: 85
    case .webp: 80
    case .avif: 60
    case .png, .ppm: nil
    }
  }

  /// True if files of this format can state the colors of HDR and have enough bits for them.
  package var canHoldHDR: Bool { self == .png || self == .avif }
}
