import ReelCore
import ReelPlayback

/// The names of the files of one source.
struct FrameNames: Sendable {
  /// The name of the first file; nil if it is known only with the frame.
  let first: String?
  /// By the number of the frame, counted from 1, and its time in seconds. `isTaken` tells that the name without a number
  /// is that of an earlier frame.
  private let name: @Sendable (_ number: Int, _ time: Double, _ isTaken: Bool) -> String
  /// The names so far, if times make them.
  private var taken: Set<String> = []
  private let usesTime: Bool

  /// `STEM-000001.png`, or `STEM.y4m`.
  init(stem: String, format: StillFileFormat) {
    let name: @Sendable (Int) -> String = { number in
      format.still?.fileName(stem: stem, number: number) ?? "\(stem).\(format.fileExtension)"
    }
    first = name(1)
    self.name = { number, _, _ in name(number) }
    usesTime = false
  }

  /// One file with this name.
  init(_ name: String) {
    first = name
    self.name = { _, _, _ in name }
    usesTime = false
  }

  /// - Parameters:
  ///   - first: The name of the first file; nil if it is known only with the frame.
  ///   - usesTime: Whether times make the names.
  ///   - name: The name of a frame's file, by its number, its time in seconds, and whether the name without a number is
  ///     that of an earlier frame.
  init(
    first: String?, usesTime: Bool,
    name: @escaping @Sendable (_ number: Int, _ time: Double, _ isTaken: Bool) -> String
  ) {
    self.first = first
    self.usesTime = usesTime
    self.name = name
  }

  /// The name of the next frame's file.
  mutating func next(number: Int, time: MediaTime) -> String {
    let plain = name(number, time.seconds, false)
    guard usesTime else { return plain }
    return taken.insert(plain).inserted ? plain : name(number, time.seconds, true)
  }
}
