/// The quantization tables that libjpeg uses, so that a quality has the same meaning as in other programs.
enum JPEGTables {
  /// The example tables of ITU-T T.81, Annex K, for luma and chroma, row by row.
  private static let luma: [Int] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17,
    22,
    29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87,
    103,
    121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
  ]
  private static let chroma: [Int] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66,
    99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
  ]

  /// The tables for a quality from 1 to 100, by the formula of libjpeg (jcparam.c, jpeg_quality_scaling). FFmpeg keeps
  /// 8 for the constant term, whatever the table says.
  static func tables(quality: Int) -> (luma: [UInt16], chroma: [UInt16]) {
    let scale = quality < 50 ? 5000 / quality : 200 - 2 * quality
    func scaled(_ table: [Int]) -> [UInt16] {
      table.map { UInt16(min(max(($0 * scale + 50) / 100, 1), 255)) }
    }
    return (scaled(luma), scaled(chroma))
  }
}
