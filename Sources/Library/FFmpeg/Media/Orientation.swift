internal import CFFmpeg

/// How a stored frame is mirrored and turned to be upright: a display matrix (ISO/IEC 14496-12 §8.5.2), reduced to
/// quarter turns.
public struct Orientation: Sendable, Hashable {
  /// The clockwise rotation in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// True if the frame is mirrored left to right before it is turned.
  public let isMirrored: Bool

  /// The orientation that neither turns nor mirrors.
  public static let upright = Orientation(rotation: 0, isMirrored: false)

  /// Creates an orientation. `rotation` must be 0, 90, 180 or 270.
  public init(rotation: Int, isMirrored: Bool) {
    self.rotation = rotation
    self.isMirrored = isMirrored
  }

  /// True for a rotation of 90 or 270 degrees, which exchanges width and height.
  public var swapsAxes: Bool { rotation == 90 || rotation == 270 }

  /// Reads the nine fixed-point numbers (16.16 and 2.30) of a display matrix. Angles are rounded to the nearest quarter
  /// turn.
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
    // The remaining matrix rotates before it mirrors. To mirror first, rotate the other way.
    self.init(rotation: mirrors ? (360 - rotation) % 360 : rotation, isMirrored: mirrors)
  }
}
