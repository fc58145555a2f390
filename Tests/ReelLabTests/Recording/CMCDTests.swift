import Foundation
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

  private static let session = "6e2fb550-c457-11e9-bb97-0800200c9a66"

  /// An example of CTA-5004 §6.
  struct Example: CustomTestStringConvertible, Sendable {
    let number: Int
    let values: [String: CMCD.Value]
    let parameter: String
    let fields: [String]

    var testDescription: String { "#\(number)" }
  }

  @Test(
    "The examples of the specification are written",
    arguments: [
      Example(
        number: 2,
        values: [
          "br": .number(3200), "bs": .flag(true), "d": .number(4004), "mtp": .number(25_432),
          "ot": .text("v"), "rtp": .number(15_000), "sid": .text(session), "tb": .number(6000),
        ],
        parameter: "CMCD=br%3D3200%2Cbs%2Cd%3D4004%2Cmtp%3D25400%2Cot%3Dv%2Crtp%3D15000%2C"
          + "sid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Ctb%3D6000",
        fields: [
          "CMCD-Object: br=3200,d=4004,ot=v,tb=6000", "CMCD-Request: mtp=25400",
          #"CMCD-Session: sid="6e2fb550-c457-11e9-bb97-0800200c9a66""#, "CMCD-Status: bs,rtp=15000",
        ]),
      Example(
        number: 4, values: ["bs": .flag(true), "su": .flag(true)], parameter: "CMCD=bs%2Csu",
        fields: ["CMCD-Request: su", "CMCD-Status: bs"]),
      Example(
        number: 6, values: ["nor": .text("../300kbps/segment35.m4v"), "sid": .text(session)],
        parameter: "CMCD=nor%3D%22..%252F300kbps%252Fsegment35.m4v%22%2C"
          + "sid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22",
        fields: [
          #"CMCD-Request: nor="..%2F300kbps%2Fsegment35.m4v""#,
          #"CMCD-Session: sid="6e2fb550-c457-11e9-bb97-0800200c9a66""#,
        ]),
      Example(
        number: 7, values: ["nrr": .text("12323-48763"), "sid": .text(session)],
        parameter: "CMCD=nrr%3D%2212323-48763%22%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22",
        fields: [
          #"CMCD-Request: nrr="12323-48763""#, #"CMCD-Session: sid="6e2fb550-c457-11e9-bb97-0800200c9a66""#,
        ]),
      Example(
        number: 9,
        values: [
          "bl": .number(21_300), "br": .number(3200), "bs": .flag(true),
          "cid": .text("faec5fc2-ac30-11ea-bb37-0242ac130002"), "d": .number(4004), "dl": .number(18_500),
          "mtp": .number(48_100), "nor": .text("../300kbps/track.m4v"), "nrr": .text("12323-48763"),
          "ot": .text("v"), "pr": .number(1.08), "rtp": .number(12_000), "sf": .text("d"),
          "sid": .text(session), "st": .text("v"), "su": .flag(true), "tb": .number(6000), "v": .number(1),
        ],
        parameter: "CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Ccid%3D%22faec5fc2-ac30-11ea-bb37-0242ac130002%22%2C"
          + "d%3D4004%2Cdl%3D18500%2Cmtp%3D48100%2Cnor%3D%22..%252F300kbps%252Ftrack.m4v%22%2C"
          + "nrr%3D%2212323-48763%22%2Cot%3Dv%2Cpr%3D1.08%2Crtp%3D12000%2Csf%3Dd%2C"
          + "sid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000",
        fields: [
          "CMCD-Object: br=3200,d=4004,ot=v,tb=6000",
          #"CMCD-Request: bl=21300,dl=18500,mtp=48100,nor="..%2F300kbps%2Ftrack.m4v",nrr="12323-48763",su"#,
          #"CMCD-Session: cid="faec5fc2-ac30-11ea-bb37-0242ac130002",pr=1.08,sf=d,"#
            + #"sid="6e2fb550-c457-11e9-bb97-0800200c9a66",st=v"#,
          "CMCD-Status: bs,rtp=12000",
        ]),
    ])
  func examples(example: Example) throws {
    let cmcd = CMCD(example.values)
    let fields = cmcd.headerFields
    #expect(cmcd.queryParameter == example.parameter)
    #expect(fields.map { "\($0.name): \($0.value)" } == example.fields)
    // Both read as the same.
    let read = try #require(cmcd.queryParameter.flatMap(query))
    #expect(read.malformed == nil)
    #expect(CMCD(headers: fields, query: "") == read)
    #expect(Set(read.values.keys) == Set(example.values.keys).subtracting(["v"]))
  }

  @Test("Numbers are rounded as their keys demand, and what goes without saying is not sent")
  func rounding() {
    let values: [String: CMCD.Value] = [
      "bl": .number(1349.9), "dl": .number(1350), "mtp": .number(49), "br": .number(399.6),
      "d": .number(2002.4), "pr": .number(1), "v": .number(1), "bs": .flag(false),
      "com.example-x": .number(1),
    ]
    #expect(CMCD(values).queryParameter == "CMCD=bl%3D1300%2Cbr%3D400%2Cd%3D2002%2Cdl%3D1400%2Cmtp%3D0")
    #expect(CMCD(["pr": .number(0.9249), "su": .flag(false)]).headerFields.map(\.value) == ["pr=0.92"])
    #expect(CMCD(["pr": .number(1), "su": .flag(false)]).queryParameter == nil)
    #expect(CMCD(["v": .number(1)]).headerFields.isEmpty)
    #expect(CMCD(["mtp": .number(.infinity)]).queryParameter == nil)
  }

  @Test("Quotes and backslashes of a string are escaped, and what a field can't have is left out")
  func escaping() throws {
    let text = #"a "b" \c, d=e"#
    let cmcd = CMCD(["cid": .text(text + "\r\n\u{e9}")])
    #expect(cmcd.headerFields.map(\.value) == [#"cid="a \"b\" \\c, d=e""#])
    #expect(CMCD(headers: cmcd.headerFields, query: "")?.values == ["cid": .text(text)])
    #expect(cmcd.queryParameter.flatMap(query)?.values == ["cid": .text(text)])
    let long = CMCD(["sid": .text(String(repeating: "s", count: 100))])
    #expect(long.headerFields.first?.value == "sid=\"\(String(repeating: "s", count: 64))\"")
  }

  @Test(
    "The path of the next object",
    arguments: [
      ("http://a/v/1/s1.mp4", "http://a/v/1/s2.mp4", "s2.mp4"),
      ("http://a/v/1/s1.mp4?t=x", "http://a/v/2/s2.mp4?t=secret", "../2/s2.mp4"),
      ("http://a/s1.mp4", "http://a/v/s%202.mp4", "v/s%202.mp4"),
      ("http://a/v/1/s1.mp4", "http://a/s2.mp4", "../../s2.mp4"),
      ("http://a/v/s1.mp4", "http://b/v/s2.mp4", nil), ("http://a/v/s1.mp4", "https://a/v/s2.mp4", nil),
      ("http://a/v/s1.mp4", "http://a:80/v/s2.mp4", "s2.mp4"),
    ] as [(String, String, String?)])
  func path(of request: String, next: String, expected: String?) throws {
    let (request, next) = (try #require(URL(string: request)), try #require(URL(string: next)))
    #expect(CMCD.path(of: next, from: request) == expected)
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
