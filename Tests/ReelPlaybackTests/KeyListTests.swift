import Foundation
import ReelCore
import ReelSources
import Testing

@Suite struct KeyListTests {
  private let id = "31323334353637383930313233343536"
  private let key = "32333435363738393031323334353637"

  private func found(_ list: KeyList, _ id: String?) async throws -> String? {
    let request = KeyRequest(id: id.flatMap { KeyID($0) }, scheme: "cenc")
    return try await list.key(for: request).map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  @Test(arguments: [
    "31323334353637383930313233343536:32333435363738393031323334353637",
    "31323334-3536-3738-3930-313233343536:32333435363738393031323334353637",
    "MTIzNDU2Nzg5MDEyMzQ1Ng:MjM0NTY3ODkwMTIzNDU2Nw", "MTIzNDU2Nzg5MDEyMzQ1Ng==:MjM0NTY3ODkwMTIzNDU2Nw==",
  ])
  func `A key with its id`(text: String) async throws {
    var list = KeyList()
    try list.add(parsing: text)
    #expect(list.count == 1)
    #expect(try await found(list, id) == "2345678901234567")
    #expect(try await found(list, "00000000000000000000000000000000") == nil)
    // The only key also serves media that names neither a key id nor a URL.
    #expect(try await found(list, nil) == "2345678901234567")
    let request = KeyRequest(id: nil, scheme: "SAMPLE-AES", keyURL: URL(string: "https://a.test/key"))
    #expect(try await list.key(for: request) == nil)
    let held = try #require(KeyID(id))
    #expect(list.holdsKey(for: held))
  }

  @Test func `A key alone`() async throws {
    var list = KeyList()
    try list.add(parsing: key)
    #expect(try await found(list, nil) == "2345678901234567")
    #expect(try await found(list, id) == "2345678901234567")
    // Once other keys have ids, it serves only media that names no key id.
    try list.add(parsing: "6b65792d69642d6f662d616e6f746865:616e6f74686572206b65792c20796573")
    #expect(try await found(list, id) == nil)
    #expect(try await found(list, nil) == "2345678901234567")
    #expect(try await found(list, "6b65792d69642d6f662d616e6f746865") == "another key, yes")
  }

  @Test func `A file of lines`() async throws {
    var list = KeyList()
    let text = "# keys\r\n\r\n  \(id):\(key)  # the first\n\n616e6f74686572206b65792c20796573\n"
    try list.add(file: Array(text.utf8))
    #expect(list.count == 2)
    #expect(try await found(list, id) == "2345678901234567")
    #expect(try await found(list, nil) == "another key, yes")
  }

  @Test func `A file with a byte order mark`() throws {
    var list = KeyList()
    try list.add(file: [0xef, 0xbb, 0xbf] + Array("\(id):\(key)\n".utf8))
    #expect(list.count == 1)
  }

  @Test func `A Clear Key license`() async throws {
    var list = KeyList()
    let text = """
       {"keys":[{"kty":"oct","kid":"MTIzNDU2Nzg5MDEyMzQ1Ng","k":"MjM0NTY3ODkwMTIzNDU2Nw"},
       {"kty":"RSA","kid":"x","k":"y"},{"kid":"a2V5LWlkLW9mLWFub3RoZQ","k":"YW5vdGhlciBrZXksIHllcw"}],"type":"temporary"}
      """
    try list.add(file: Array(text.utf8))
    #expect(list.count == 2)
    #expect(try await found(list, id) == "2345678901234567")
    #expect(try await found(list, "6b65792d69642d6f662d616e6f746865") == "another key, yes")
  }

  @Test(arguments: [
    "", "x", "secretsecretsecretsecretsecret!!", "1:2", "31323334353637383930313233343536:",
    ":32333435363738393031323334353637", "31323334353637383930313233343536:3233343536373839303132333435363",
    "a:b:c", "31323334353637383930313233343536:3233343536373839303132333435363z",
  ])
  func `What is no key is refused, and not repeated`(text: String) {
    var list = KeyList()
    let error = #expect(throws: ReelError.self) { try list.add(parsing: text) }
    #expect(error?.kind == .usage)
    if text.count > 3 { #expect(error?.description.contains(text) == false) }
    #expect(list.count == 0)
  }

  @Test(arguments: [
    ("\nsecret-that-is-none", "line 2"), (#"{"keys":[{"kid":"secret","k":"secret"}]}"#, "key 1"),
    (#"{"keys":"secret"}"#, "Clear Key"), (#"{"secret"#, "Clear Key"), ("", "no key"),
    ("# secret\n", "no key"),
    (#"{"keys":[]}"#, "no key"),
  ])
  func `A file that is none says where`(text: String, words: String) {
    var list = KeyList()
    let error = #expect(throws: ReelError.self) { try list.add(file: Array(text.utf8)) }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    #expect(error?.description.contains("secret") == false)
  }

  @Test func `No text of a key has its bytes`() throws {
    var list = KeyList()
    try list.add(parsing: "\(id):\(key)")
    let made = try #require(ContentKey(key))
    var dumped = ""
    dump((made, list, [made: list.count]), to: &dumped)
    for text in ["\(made)", String(reflecting: made), "\(list)", String(reflecting: list), dumped] {
      #expect(!text.contains("3233") && !text.contains("50, 51, 52"), "\(text)")
    }
  }
}
