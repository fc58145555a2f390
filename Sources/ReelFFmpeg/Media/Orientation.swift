internal import CFFmpeg

/// How a frame has to be turned to stand upright: a display matrix (ISO/IEC 14496-12 §8.5.2) reduced to the eight
/// cases that leave pixels whole.
public struct Orientation: Sendable, Hashable {
  /// Clockwise, in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// True where the frame is mirrored left to right before it is turned.
  public let isMirrored: Bool

  /// Neither turned nor mirrored.
  public static let upright = Orientation(rotation: 0, isMirrored: false)

  public init(rotation: Int, isMirrored: Bool) {
    self.rotation = rotation
    self.isMirrored = isMirrored
  }

  /// True where width and height change places.
  public var swapsAxes: Bool { rotation == 90 || rotation == 270 }

  /// `matrix` is the nine 16.16/2.30 fixed-point numbers of a display matrix; an odd angle is taken to the nearest
  /// quarter.
  init(matrix: UnsafePointer<Int32>?) {
    guard let matrix else {
      self = .upright
      return
    }
    // The upper left 2x2 part [a b; c d]; a negative determinant mirrors.
    let (a, b, c, d) = (Double(matrix[0]), Double(matrix[1]), Double(matrix[3]), Double(matrix[4]))
    let mirrors = a * d - b * c < 0
    var copy = (0..<9).map { matrix[$0] }
    if mirrors { av_display_matrix_flip(&copy, 1, 0) }
    let angle = av_display_rotation_get(copy)
    guard angle.isFinite else {
      self = .upright
      return
    }
    // FFmpeg's angle is counter-clockwise.
    let quarters = Int((-angle / 90).rounded())
    let rotation = ((quarters % 4) + 4) % 4 * 90
    // What is left of the matrix is turned, then mirrored; to mirror first, turn the other way.
    self.init(rotation: mirrors ? (360 - rotation) % 360 : rotation, isMirrored: mirrors)
  }
}
