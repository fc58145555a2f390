import ReelCore
import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Templates for names", .hangLimit)
struct NameTemplateTests {
  private let values = NameTemplate.Values(
    index: 12, stem: "clip", hash: "0123456789abcdef", host: "cdn.example", format: "png")

  private func path(
    _ template: String, _ change: (inout NameTemplate.Values) -> Void = { _ in }, isMarked: Bool = false,
    number: Int? = nil
  ) throws -> String {
    var values = values
    change(&values)
    return try NameTemplate(parsing: template).path(values, time: 1.5, isMarked: isMarked, number: number)
  }

  @Test(
    "Fields",
    arguments: [
      ("{stem}-{hash}", "clip-0123456789abcdef.png"), ("{index}_{stem}", "000012_clip.png"),
      ("{host}/{stem}.{format}", "cdn.example/clip.png"), ("{stem}@{time}", "clip@1.500.png"),
      ("a/b/{format}/{stem}", "a/b/png/clip.png"), ("{{{stem}}}", "{clip}.png"),
      ("{stem}_{format}", "clip_png"),
      ("x.{format}", "x.png"), ("{stem}.jpg", "clip.jpg.png"),
    ])
  func fields(template: String, wanted: String) throws {
    #expect(try path(template) == wanted)
  }

  @Test("Numbers and hashes come before the extension")
  func marks() throws {
    #expect(try path("{stem}.{format}", isMarked: true) == "clip-0123456789abcdef.png")
    #expect(try path("{stem}", number: 7) == "clip-000007.png")
    #expect(try path("d/{stem}", isMarked: true, number: 1_234_567) == "d/clip-0123456789abcdef-1234567.png")
  }

  @Test(
    "What is refused",
    arguments: [
      ("{tiem}", "did you mean {time}"), ("{hsh}", "did you mean {hash}"), ("{Stem}", "did you mean {stem}"),
      ("{something}", "the fields are {index} {stem}"), ("{stem", "without its }"),
      ("stem}", "without its {"),
      ("../../x", "leave the output folder"), ("a/../{stem}", "leave the output folder"),
      ("./{stem}", "leave the output folder"), ("/{stem}", "relative to the output folder"),
      ("a//{stem}", "empty"), ("", "empty"), ("{stem}/", "empty"), ("{format}", "empty"),
      ("a\n{stem}", "control"),
      ("{time}/{stem}", "folder"),
    ])
  func refusals(template: String, words: String) {
    let error = #expect(throws: ReelError.self) { try NameTemplate(parsing: template) }
    #expect(error?.reason.contains(words) == true, "\(String(describing: error))")
  }

  @Test(
    "Stems that lead elsewhere or are reserved",
    arguments: [
      ("../../x", "_._.._x"), ("..", "_"), (".", "_"), ("", "_"), (".hidden", "_hidden"),
      ("a/b\\c:d", "a_b_c_d"),
      ("a\0b\nc\u{1b}", "a_b_c_"), ("CON", "_CON"), ("nul.x", "_nul.x"), ("COM1", "_COM1"), ("COMA", "COMA"),
      ("a. ", "a"), ("\u{202e}gnp", "_gnp"),
    ])
  func stems(stem: String, wanted: String) throws {
    #expect(try path("{stem}") { $0.stem = stem } == "\(wanted).png")
    // Neither does it in a folder's name.
    #expect(try path("{stem}/x") { $0.stem = stem } == "\(wanted)/x.png")
  }

  @Test("A name of 300 bytes is cut between characters, and gets the hash", arguments: ["x", "é", "語", "👨‍👩‍👧"])
  func longNames(character: String) throws {
    let stem = String(repeating: character, count: 300)
    let name = try path("{stem}.{format}", { $0.stem = stem }, number: 1)
    #expect(name.utf8.count <= NameTemplate.componentLimit + 11)
    #expect(name.hasSuffix("-0123456789abcdef-000001.png"))
    let kept = name.dropLast("-0123456789abcdef-000001.png".count)
    #expect(!kept.isEmpty && stem.hasPrefix(kept) && kept.allSatisfy { String($0) == character })
    // Sources that differ only behind the cut have different names.
    let other = try path("{stem}.{format}", { ($0.stem, $0.hash) = (stem + "x", "fedcba9876543210") })
    #expect(other != (try path("{stem}.{format}", { $0.stem = stem })))
  }

  @Test("Which templates name each source differently by themselves")
  func uniqueness() throws {
    for (template, isUnique) in [
      ("{stem}-{hash}", true), ("{index}", true), ("{stem}", false), ("{host}/{stem}-{time}", false),
    ] {
      #expect(try NameTemplate(parsing: template).isUnique == isUnique, "\(template)")
    }
  }

  @Test("Frames at the same time get numbers too")
  func times() throws {
    let names = BatchNames(
      template: try NameTemplate(parsing: "{stem}-{time}"), values: values, isMarked: false, output: "out",
      fansOut: true)
    #expect(names.folder == "out/01/23")
    var frames = FrameNames(names, hasSeveral: true)
    #expect(frames.first == nil)
    #expect(frames.next(number: 1, time: .zero) == "clip-0.000.png")
    #expect(frames.next(number: 2, time: .zero) == "clip-0.000-000002.png")
    #expect(frames.next(number: 3, time: MediaTime(seconds: 1)) == "clip-1.000.png")
  }
}
