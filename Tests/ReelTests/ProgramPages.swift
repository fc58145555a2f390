import Foundation
import Testing

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
