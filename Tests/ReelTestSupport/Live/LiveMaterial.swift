package import Foundation
package import ReelCore
package import ReelManifest

/// A small on-demand presentation in local files, whose segments a live simulation plays over and over.
///
/// One pass of the loop lasts as long as the first track (`duration`). Other tracks are cut or stretched to it: what
/// begins behind the end of the pass is left out, and the last segment is said to last to the end of it, whatever
/// its samples do. So no track runs away from another, however long the simulation runs.
package struct LiveMaterial: Sendable {
  /// One rung or rendition.
  package struct Track: Sendable {
    package var group: Group
    /// DASH: the Representation's @id. HLS: the path of its playlist below the folder of the material.
    package var id: String
    /// What the manifest says of it.
    package var rung: Rung
    /// Never empty, in order, from the beginning of the pass to its end.
    package var segments: [Segment]
    /// The pieces that `Segment.initialization` counts.
    package var initializations: [Piece]
    /// DASH: the media time at which the pass begins.
    var mediaStart: MediaTime?
  }

  /// What tracks that show the same have in common.
  package struct Group: Sendable, Hashable {
    /// Its place among the groups, from 0 on.
    package var index: Int
    package var kind: String
    package var language: String?
  }

  /// One segment.
  package struct Segment: Sendable {
    package var piece: Piece
    /// From the beginning of the pass.
    package var start: MediaTime
    package var duration: MediaTime
    /// Its place in `Track.initializations`.
    package var initialization: Int?
    /// How many discontinuities of the material there are before it, in the same pass.
    package var discontinuity: Int
  }

  /// Bytes of a local file.
  package struct Piece: Sendable, Hashable {
    package var file: URL
    /// Nil for the whole file.
    package var range: ByteRange?

    /// The bytes. Throws `noSuchFile` where they can't be read.
    package func read() throws(ReelError) -> [UInt8] {
      let path = file.path(percentEncoded: false)
      do {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        guard let range else { return Array(try handle.readToEnd() ?? Data()) }
        try handle.seek(toOffset: UInt64(max(range.offset, 0)))
        guard let length = range.length else { return Array(try handle.readToEnd() ?? Data()) }
        return Array(try handle.read(upToCount: Int(clamping: length)) ?? Data())
      } catch {
        throw ReelError(.noSuchFile, "the segment can't be read", at: path)
      }
    }
  }

  package var format: ManifestFormat
  /// At least one, the one that gives the length of the pass first.
  package var tracks: [Track]
  /// How long one pass lasts.
  package var duration: MediaTime
  /// HLS: the multivariant playlist and its name; nil where the material is one media playlist.
  var multivariant: (name: String, bytes: [UInt8])?
}

extension MediaTime {
  /// How often `length`, which is above zero, goes into this time, rounded down.
  func quotient(by length: MediaTime) -> Int64 {
    let dividend = Int128(value) * Int128(length.timescale)
    let divisor = Int128(max(length.value, 1)) * Int128(timescale)
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    return Int64(clamping: remainder < 0 ? quotient - 1 : quotient)
  }

  /// Seconds with `digits` digits behind the point, 9 at the most, rounded down.
  func decimal(_ digits: Int, trimmed: Bool = false) -> String {
    let scale = (0..<digits).reduce(Int32(1)) { scale, _ in scale * 10 }
    let ticks = ticks(timescale: scale)
    let magnitude = ticks.magnitude
    var fraction = String(magnitude % UInt64(scale))
    fraction = String(repeating: "0", count: max(0, digits - fraction.count)) + fraction
    if trimmed { while fraction.last == "0" { fraction.removeLast() } }
    return (ticks < 0 ? "-" : "") + "\(magnitude / UInt64(scale))" + (fraction.isEmpty ? "" : ".\(fraction)")
  }
}
