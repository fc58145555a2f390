import Foundation
import HTTPTypes
import ReelCore
import Testing

@Suite("Who gets credentials")
struct SourceHeadersTests {
  private static let basic = "Basic dXNlcjpwYXNz"

  private func fields(
    at url: String, of source: String?, _ fields: HTTPFields, hosts: Set<CredentialHost> = []
  ) throws -> HTTPFields {
    let source = try source.map { try #require(URL(string: $0)) }
    var headers = SourceHeaders(of: source, hosts: hosts)
    headers.add(fields, ownedBy: source)
    var request = FetchRequest(url: try #require(URL(string: url)), purpose: .segment)
    headers.apply(to: &request)
    return request.headers
  }

  @Test(
    "Names that are credentials, and names that are not",
    arguments: [
      ("Authorization", true), ("PROXY-authorization", true), ("cookie", true), ("X-Api-Key", true),
      ("apikey", true), ("api_key", true), ("X-Auth-Token", true), ("TOKEN", true), ("Client-Secret", true),
      ("User-Agent", false), ("Referer", false), ("X-Tokens", false), ("Key-Id", false), ("Accept", false),
    ])
  func names(name: String, isCredential: Bool) throws {
    let field = HTTPField(name: try #require(HTTPField.Name(name)), value: "x")
    #expect(field.isCredential == isCredential)
    #expect(HTTPField.secret(field.name, "x").isCredential)
    let other = try fields(at: "https://b/s.ts", of: "https://a/m.m3u8", HTTPFields([field]))
    #expect(other.contains(field.name) != isCredential)
  }

  @Test(
    "Scheme, host and port decide",
    arguments: [
      ("https://a.example/m", "https://a.example/s", true),
      ("https://a.example/m", "https://A.Example:443/s", true),
      ("http://a.example:80/m", "http://a.example/s", true),
      ("https://a.example/m", "https://a.example:8443/s", false),
      ("https://a.example/m", "http://a.example/s", false),
      ("https://a.example/m", "http://a.example:443/s", false),
      ("http://a.example/m", "https://a.example/s", false),
      ("https://a.example/m", "https://a.example./s", false),
      ("https://a.example/m", "https://b.a.example/s", false),
      ("https://a.example/m", "https://example/s", false),
      ("https://a.example/m", "https://a.example@b.example/s", false),
      ("https://a.example/m", "https://b.example/a.example", false),
      ("https://k.example/m", "https://\u{212a}.example/s", nil),
      ("file:///tmp/m.m3u8", "https://a.example/s", false), (nil, "https://a.example/s", false),
    ] as [(String?, String, Bool?)])
  func origins(source: String?, url: String, isSent: Bool?) throws {
    // A host with letters beyond ASCII may be no URL at all, or be mapped to another host.
    guard URL(string: url) != nil || isSent != nil else { return }
    let isSent = isSent ?? (URL(string: url)?.host() == "k.example")
    let fields = try fields(at: url, of: source, [.authorization: "Bearer x", .referer: "r"])
    #expect(fields.contains(.authorization) == isSent)
    #expect(fields[.referer] == "r")
  }

  @Test("Named hosts get credentials, by port if one is named, and never over http what belongs to https")
  func namedHosts() throws {
    let hosts: Set = [
      try CredentialHost(parsing: "CDN.example"), try CredentialHost(parsing: "[::1]:8080"),
      try CredentialHost(parsing: "keys.example:8443"),
    ]
    let credentials: HTTPFields = [.authorization: "Bearer x"]
    func isSent(_ url: String, of source: String? = "https://a/m") throws -> Bool {
      try fields(at: url, of: source, credentials, hosts: hosts).contains(.authorization)
    }
    #expect(try isSent("https://cdn.example/s") && isSent("https://cdn.example:99/s"))
    #expect(try isSent("https://[::1]:8080/s") && !isSent("https://[::1]/s"))
    #expect(try isSent("https://keys.example:8443/k") && !isSent("https://keys.example/k"))
    #expect(try !isSent("http://cdn.example/s") && isSent("http://cdn.example/s", of: "http://a/m"))
    #expect(try isSent("https://cdn.example/s", of: "file:///m") && !isSent("https://sub.cdn.example/s"))
  }

  @Test(
    "What is no host",
    arguments: ["", ":80", "a:", "a:0", "a:65536", "a/b", "http://a", "u@a", "a?b", "*.a", "a b"])
  func badHosts(text: String) {
    #expect(throws: ReelError.self) { try CredentialHost(parsing: text) }
  }

  @Test("User name and password of the source go to its server as a field, unless there is one")
  func userInformation() throws {
    let source = "https://user:pass@a/m.m3u8"
    #expect(try fields(at: "https://a/s.ts", of: source, [:])[.authorization] == Self.basic)
    #expect(try fields(at: "https://b/s.ts", of: source, [:])[.authorization] == nil)
    #expect(try fields(at: "https://user:pass@b/s.ts", of: source, [:])[.authorization] == nil)
    #expect(try fields(at: "https://user:pass@a/s.ts", of: "https://a/m", [:])[.authorization] == Self.basic)
    #expect(
      try fields(at: "https://a/s.ts", of: source, [.authorization: "Bearer x"])[.authorization] == "Bearer x"
    )
    let hosts: Set = [CredentialHost("b")]
    #expect(try fields(at: "https://b/s.ts", of: source, [:], hosts: hosts)[.authorization] == Self.basic)
  }

  @Test("Each hop of a redirect is decided anew")
  func hops() throws {
    let (a, b) = (try #require(URL(string: "https://a/1")), try #require(URL(string: "https://b/2")))
    let home = try #require(URL(string: "https://a/3"))
    var request = FetchRequest(url: a, headers: [.init("X-Kept")!: "1", .cookie: "c"], purpose: .segment)
    for _ in 0..<2 {
      #expect(request.fields(for: a)[.cookie] == "c")
      #expect(request.fields(for: b)[.cookie] == nil && request.withholdsCredentials(from: b))
      #expect(request.fields(for: b)[.init("X-Kept")!] == "1")
      #expect(request.fields(for: home)[.cookie] == "c" && !request.withholdsCredentials(from: home))
      // The same as a request of a source.
      var headers = SourceHeaders(of: a)
      headers.add(request.headers, ownedBy: a)
      request.headers = [:]
      headers.apply(to: &request)
    }
    // From another server to that of the source, and to one that is named.
    var headers = SourceHeaders(of: a, hosts: [CredentialHost("c")])
    headers.add([.cookie: "c"], ownedBy: a)
    var segment = FetchRequest(url: b, purpose: .segment)
    headers.apply(to: &segment)
    #expect(segment.fields(for: b)[.cookie] == nil && segment.fields(for: home)[.cookie] == "c")
    #expect(segment.fields(for: try #require(URL(string: "https://c/")))[.cookie] == "c")
    // A redirect can't bring a password along.
    let login = try #require(URL(string: "https://user:pass@b/4"))
    #expect(segment.fields(for: login)[.authorization] == nil)
  }

  @Test("Fields of different owners go to different servers")
  func owners() throws {
    let (feed, item) = (
      try #require(URL(string: "https://feed/")), try #require(URL(string: "https://item/v"))
    )
    var headers = SourceHeaders(of: item)
    headers.add([.authorization: "feed"], ownedBy: feed)
    headers.add([.cookie: "item"], ownedBy: item)
    var request = FetchRequest(url: item, purpose: .segment)
    headers.apply(to: &request)
    #expect(request.headers == [.cookie: "item"])
    #expect(request.fields(for: feed) == [.authorization: "feed"])
  }
}

@Suite("Text that is printed")
struct PrintedTextTests {
  @Test(
    "Passwords in URLs of any form are left out",
    arguments: [
      ("x \"//u:p@h/s.ts\"", "x \"//h/s.ts\""), ("//u@h", "//h"), ("a//b@c", "a//b@c"),
      ("http://u:p/w@h/x?y", "http://h/x?y"), ("http://u:p?w#@h/x", "http://h/x"),
      ("http://h:80/a@b", "http://h:80/a@b"), ("http://[::1]/a@b", "http://[::1]/a@b"),
      (#"{"u":"http:\/\/u:p@h\/a","v":"x@y"}"#, #"{"u":"http:\/\/h\/a","v":"x@y"}"#),
      ("'http://u:p'w@h/'", "'http://h/'"), ("http://u:p@h http://v:q@i", "http://h http://i"),
      ("http://ü:p@h/ä@", "http://h/ä@"), ("URI=//u:p@h", "URI=//h"),
      ("“//u:p@h/”", "“//h/”"), ("{//u:p@h}", "{//h}"), ("a.b//c@d", "a.b//c@d"),
      ("file:///a@b", "file:///a@b"),
    ])
  func userInformation(text: String, clean: String) { #expect(text.withoutUserInformation == clean) }

  @Test(
    "Passwords with characters that a URL must not have are left out, and other text stays",
    arguments: [
      ("http://u:S EC@h:80/x@y", "http://h:80/x@y"), ("http://u:S\"EC@h/x", "http://h/x"),
      ("http://u:S<EC>@h/x", "http://h/x"), ("http://u:S`EC@h/x", "http://h/x"),
      ("http://u:S\\EC@h/x", "http://h/x"), ("http://u:S^E|C{}@h/x", "http://h/x"),
      ("http://u:12 34@h/x", "http://h/x"), ("http://u:12\\34@h/x", "http://h/x"),
      ("http://u:12\"34@h/x", "http://h/x"), ("http://u v:S EC@h/x", "http://h/x"),
      ("http://u:S E@C X@h/x", "http://h/x"), ("//u:S EC@h/x", "//h/x"),
      ("/data/http://u:S EC@h/x", "/data/http://h/x"), ("http://u:S EC@h/x\nmail@x", "http://h/x\nmail@x"),
      (#"{"u":"http://u:S\"E C\\D@h/a","v":"x@y"}"#, #"{"u":"http://h/a","v":"x@y"}"#),
      (#"{"u":"http://name:odd","v":"x@y"}"#, #"{"u":"http://name:odd","v":"x@y"}"#),
      (
        #"{"u":"http://h:80/","v":["a@b","http://u:p q@h"]}"#,
        #"{"u":"http://h:80/","v":["a@b","http://h"]}"#
      ),
      ("cannot open \"http://u:S\"EC@h/x\", which is", "cannot open \"http://h/x\", which is"),
      ("http://h:8080: refused; ask a@b", "http://h:8080: refused; ask a@b"),
      ("http://h: refused; ask a@b", "http://h: refused; ask a@b"),
      ("http://h:8080 is for mail to a@b", "http://h:8080 is for mail to a@b"),
    ])
  func unusualPasswords(text: String, clean: String) { #expect(text.withoutUserInformation == clean) }

  @Test("Controls, and marks that reorder text, are escaped; lines and columns of text stay")
  func controls() {
    let hostile = "a\u{1b}]0;x\u{7}\r\u{8}\u{7f}\u{9b}2J\u{200e}\u{200f}\u{61c}\u{202e}\u{2066}\u{2028}\t\n"
    let escaped =
      #"a\u{1b}]0;x\u{7}\u{d}\u{8}\u{7f}\u{9b}2J\u{200e}\u{200f}\u{61c}\u{202e}\u{2066}\u{2028}"#
    #expect(hostile.printable == escaped + #"\u{9}\u{a}"#)
    #expect(hostile.printableText == escaped + "\t\n")
    #expect("\"\u{9b}\u{202e}\n\"".printableJSON == "\"\\u009b\\u202e\n\"")
    #expect("日本語 é 👩‍👩‍👧".printable == "日本語 é 👩‍👩‍👧")
  }
}
