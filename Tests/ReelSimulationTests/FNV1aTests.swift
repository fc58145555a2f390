import ReelSimulation
import Testing

@Suite("FNV-1a")
struct FNV1aTests {
  @Test("The values of draft-eastlake-fnv, appendix C")
  func values() {
    #expect(FNV1a().value == 0xcbf2_9ce4_8422_2325)
    var hash = FNV1a()
    hash.combine("a".utf8)
    #expect(hash.value == 0xaf63_dc4c_8601_ec8c)
    var whole = FNV1a()
    whole.combine("foobar".utf8)
    #expect(whole.value == 0x8594_4171_f739_67e8)
    var pieces = FNV1a()
    pieces.combine("foo".utf8)
    pieces.combine("bar".utf8)
    #expect(pieces == whole)
    var text = FNV1a()
    text.combine("foobar")
    whole.combine(word: 0)
    #expect(text == whole)
  }
}
