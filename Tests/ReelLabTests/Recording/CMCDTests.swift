import Testing

@testable import ReelLab

@Suite("CMCD")
struct CMCDTests {
  private func query(_ text: String) -> CMCD? { CMCD(headers: [], query: text[...]) }

  @Test("Version 1 in a query")
  func queryOfVersion1() throws {
    let cmcd = try #require(
      query(
        "token=x&CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cot%3Dv%2Cpr%3D1.08%2Csid%3D%226e2fb550%22%2Csu%2C"
          + "nor%3D%22..%252F300kbps%252Fsegment35.m4v%253Fkey%253Dsecret%22"))
    #expect(cmcd.values["bl"] == .number(21_300))
    #expect(cmcd.values["br"] == .number(3_200))
    #expect(cmcd.values["bs"] == .flag(true))
    #expect(cmcd.values["su"] == .flag(true))
    #expect(cmcd.values["ot"] == .text("v"))
    #expect(cmcd.values["pr"] == .number(1.08))
    #expect(cmcd.values["sid"] == .text("6e2fb550"))
    #expect(cmcd.values["nor"] == .text("../300kbps/segment35.m4v"))
    #expect(cmcd.malformed == nil)
    #expect(cmcd.others == nil)
  }

  @Test("Header fields, in any letter case, rather than the query")
  func headers() throws {
    let cmcd = try #require(
      CMCD(
        headers: [
          ("CMCD-Object", "br=3200,ot=av"), ("cmcd-request", "bl=900"), ("Cookie", "br=1"),
        ], query: "CMCD=br%3D7"))
    #expect(cmcd.values == ["br": .number(3_200), "ot": .text("av"), "bl": .number(900)])
  }

  @Test("Version 2: lists with the types of objects, and ranges of the next objects")
  func version2() throws {
    let cmcd = try #require(
      CMCD(
        headers: [
          ("CMCD-Object", #"br=(3200;v 128;a),v=2,sta=s,bs=?0"#),
          ("CMCD-Request", #"nor=("s2.m4s?key=secret";r="0-99" "s3.m4s")"#),
        ], query: ""))
    #expect(
      cmcd.values["br"]
        == .list([.init(value: .number(3_200), types: ["v"]), .init(value: .number(128), types: ["a"])]))
    #expect(
      cmcd.values["nor"]
        == .list([.init(value: .text("s2.m4s"), range: "0-99"), .init(value: .text("s3.m4s"))]))
    #expect(cmcd.values["sta"] == .text("s"))
    #expect(cmcd.values["bs"] == .flag(false))
    #expect(cmcd.malformed == nil)
  }

  @Test("Keys of other organizations are named without their values")
  func others() throws {
    let cmcd = try #require(query("CMCD=com.example-user%3D%22bob%22%2Cbr%3D1%2Ch%3D%22host%22"))
    #expect(cmcd.values == ["br": .number(1)])
    #expect(cmcd.others == ["com.example-user", "h"])
  }

  @Test(
    "What is malformed is noted, and the rest is read",
    arguments: [
      ("br%3Dfast%2Cbl%3D100", ["bl"], "the value of br has another type"),
      ("bl%3D100%2C%3D3", ["bl"], "a key is missing"),
      ("bl%3D100%2Csid%3D%22abc", ["bl"], "the value of sid can't be read"),
      ("bl%3D100%2Cbr%3D(1%202", ["bl"], "the value of br can't be read"),
      ("bl%3D100%2Cbr%3D(%221%22)", ["bl"], "the value of br has another type"),
      ("bl%3D100%2Cbr%3D", ["bl"], "the value of br can't be read"),
      ("bl%3D100%20x", [], "the value of bl can't be read"),
      ("%ff", [], "the query is not percent-encoded UTF-8"),
      ("%zz", [], "the query is not percent-encoded UTF-8"),
      (String(repeating: "a", count: 5_000), [], "more than 4096 bytes"),
    ] as [(String, [String], String)])
  func malformed(text: String, keys: [String], reason: String) throws {
    let cmcd = try #require(query("CMCD=" + text))
    #expect(cmcd.values.keys.sorted() == keys)
    #expect(cmcd.malformed == reason)
  }

  @Test("Requests without CMCD")
  func absent() {
    #expect(query("") == nil)
    #expect(query("cmcd=br%3D1&x") == nil)
  }

  @Test("The names of a query, without values and without what has no name")
  func names() {
    #expect(QueryNames.all(in: "token=abc&sig%6eature=1&c2VjcmV0&a=") == ["token", "signature", "a"])
  }
}
