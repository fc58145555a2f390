import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelManifest

@Suite struct XMLReaderTests {
  private func reader(_ text: String, limits: ManifestLimits = ManifestLimits()) throws -> XMLReader {
    var reader = XMLReader(Array(text.utf8), limits: limits)
    try reader.root()
    return reader
  }

  /// Reads everything; the names with their depth.
  private func outline(_ text: String, limits: ManifestLimits = ManifestLimits()) throws -> [String] {
    var reader = try reader(text, limits: limits)
    var names = [reader.name]
    var depth = 1
    while depth > 0 {
      if let name = try reader.nextChild() {
        names.append(String(repeating: " ", count: depth) + name)
        depth += 1
      } else {
        depth -= 1
      }
    }
    return names
  }

  @Test func readsElementsAndSkipsTheRest() throws {
    let text = """
      <?xml version="1.0"?><!-- <a> --><!DOCTYPE r SYSTEM "r.dtd">
      <r><a/><!-- </r> --><b><c></c ></b><?pi <x>?><![CDATA[</r>]]><d
      /></r> trailing
      """
    #expect(try outline(text) == ["r", " a", " b", "  c", " d"])
  }

  @Test func prefixesNeedNotBeBound() throws {
    #expect(try outline("<m:MPD><x:y z:w='1'/></m:MPD>") == ["MPD", " y"])
    let reader = try reader("<a xlink:href='1' xsi:type='x' type='static'/>")
    #expect(reader.string("type") == "static")
    #expect(reader.string("href") == nil)
    #expect(reader.string(anyPrefix: "href") == "1")
  }

  @Test func attributesAreReadAsTheyAreWritten() throws {
    var reader = try reader(
      "<a b=\"1\"c='2'\n d = \" x \" e='&lt;&#65;&#x42;&amp;amp;' f='?a=1&b=2&amp;c' g='' b='9'/>")
    #expect(reader.string("b") == "1")
    #expect(reader.string("c") == "2")
    #expect(reader.string("d") == "x")
    #expect(reader.string("e") == "<AB&amp;")
    #expect(reader.string("f") == "?a=1&b=2&c")
    #expect(reader.string("g")?.isEmpty == true)
    #expect(reader.string("h") == nil)
    #expect(try reader.integer("b") == 1)
  }

  @Test func textOfAnElement() throws {
    var reader = try reader("<a> x&amp;<!-- no --><![CDATA[<y>&amp;]]><b>not this</b> z </a>")
    #expect(try reader.text() == "x&<y>&amp; z")
    var empty = try self.reader("<a/>")
    #expect(try empty.text().isEmpty)
  }

  @Test func otherEncodings() throws {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a b='ü'/>"
    for isBigEndian in [true, false] {
      let units = [0xFEFF] + Array(text.utf16)
      let bytes = units.flatMap { unit in
        isBigEndian ? [UInt8(unit >> 8), UInt8(unit & 0xFF)] : [UInt8(unit & 0xFF), UInt8(unit >> 8)]
      }
      var reader = XMLReader(bytes, limits: ManifestLimits())
      try reader.root()
      #expect(reader.string("b") == "ü")
    }
    #expect(try reader("\u{FEFF}<a/>").name == "a")
  }

  @Test(arguments: [
    ("<a>", 1, 4, "ends inside <a>"), ("<a>\n  <b></a>", 2, 6, "does not close what is open"),
    ("<a b></a>", 1, 4, "without a value"), ("<a b=1/>", 1, 4, "without quotes"),
    ("<a b='1", 1, 6, "not closed"),
    ("<a b='<'/>", 1, 6, "not closed"), ("<a", 1, 1, "is not closed"),
    ("<a / >", 1, 4, "not closed after '/'"),
    ("<a>\n< b/></a>", 2, 1, "begins no tag"), ("<a><!-- </a>", 1, 4, "comment is not closed"),
    ("<a><![CDATA[ </a>", 1, 4, "CDATA section is not closed"),
    ("<a><!ENTITY x 'y'></a>", 1, 4, "a declaration"),
    ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", 1, 1, "declares entities"),
    ("<!DOCTYPE a", 1, 1, "not closed"),
    ("<a></a", 1, 4, "is not closed"), ("<>", 1, 1, "begins no tag"),
  ])
  func whatIsNotXMLHasItsPlace(text: String, line: Int, column: Int, reason: String) {
    let error = manifestError { _ = try outline(text) }
    #expect(error?.place == .line(line, column: column))
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test func depthIsBounded() throws {
    let text = String(repeating: "<a>", count: 100_000)
    #expect(manifestError { _ = try outline(text) }?.reason == "elements nested more than 64 deep")
    var reader = try reader("<r>\(String(repeating: "<a>", count: 100_000))")
    #expect(manifestError { try reader.skip() } != nil)
  }

  @Test func attributesAreBounded() {
    let attributes = (0..<300).map { "a\($0)='1'" }.joined(separator: " ")
    #expect(
      manifestError { _ = try outline("<a \(attributes)/>") }?.reason.contains("256 attributes") == true)
  }

  @Test func anEntityBombIsRefusedAtOnce() {
    var text = "<!DOCTYPE lolz [<!ENTITY lol0 'lol'>"
    for level in 1...9 {
      text += "<!ENTITY lol\(level) '" + String(repeating: "&lol\(level - 1);", count: 10) + "'>"
    }
    let error = manifestError { _ = try outline(text + "]><MPD>&lol9;</MPD>") }
    #expect(error?.reason.contains("declares entities") == true)
  }
}
