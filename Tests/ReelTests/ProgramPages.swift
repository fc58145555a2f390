import Foundation
import Testing

/// Runs `body` with a folder, and removes the folder.
func withFolder(_ body: (URL) async throws -> Void) async throws {
  let folder = FileManager.default.temporaryDirectory.appending(path: "reel-first-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try await body(folder)
}

/// Expects that a page has the programs of a file of this folder, word for word: `count` of them or more, each with a doc
/// comment.
func expectPrograms(of file: String, in page: String, count: Int) throws {
  let folder = URL(filePath: #filePath).deletingLastPathComponent()
  let root = folder.deletingLastPathComponent().deletingLastPathComponent()
  let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
  let code = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
  let programs = code.components(separatedBy: "\n\n").filter { $0.hasPrefix("///") }
  #expect(programs.count >= count)
  for program in programs {
    #expect(text.contains(program.trimmingCharacters(in: .newlines)), "\(program)")
  }
}
