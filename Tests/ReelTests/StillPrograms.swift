import Foundation
import Reel
import ReelStills

// The programs of Docs/Thumbnails.md, word for word.

/// Writes a good frame of a source as JPEG, at most 640 pixels wide and high.
func writePoster(of url: URL, to file: URL) async throws {
  let poster = try await PosterExtractor().poster(of: url, maximumSize: .init(width: 640, height: 640))
  try poster.jpeg(quality: 0.8).write(to: file)
}

/// Writes a frame of a source for every ten seconds as PNG, named after its time.
func writeStoryboard(of url: URL, to folder: URL) async throws {
  let board = try await StoryboardExtractor().storyboard(of: url, every: .seconds(10))
  for frame in board.frames {
    try frame.png().write(to: folder.appending(path: "\(frame.time.seconds).png"))
  }
}

/// Writes one PNG of 20 frames of a source, in five columns and four rows.
func writeSheet(of url: URL, to file: URL) async throws {
  let board = try await StoryboardExtractor().storyboard(
    of: url, count: 20, maximumSize: .init(width: 160, height: 160))
  try board.sheets(columns: 5, rows: 4).first?.png().write(to: file)
}
