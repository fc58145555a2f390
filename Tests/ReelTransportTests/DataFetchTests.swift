import Foundation
import ReelCore
import ReelTransport
import Testing

@Suite("data: URLs") struct DataFetchTests {
  private let fetcher = TransportFetcher()

  @Test(arguments: [
    ("data:text/plain;base64,aGVsbG8=", "hello", "text/plain"),
    ("data:video/mp4;base64,aGVsbG8", "hello", "video/mp4"),
    ("data:,a%20b%2Cc", "a b,c", "text/plain;charset=US-ASCII"),
    ("data:application/octet-stream,", "", "application/octet-stream"),
  ])
  func givesWhatTheyHold(text: String, content: String, type: String) async throws {
    let url = try #require(URL(string: text))
    let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .initialization))
    #expect(response.contentType == type)
    #expect(response.resourceByteCount == Int64(content.utf8.count))
    #expect(try await response.body.collect(upTo: 100) == Array(content.utf8))
  }

  @Test func givesARange() async throws {
    let url = try #require(URL(string: "data:,0123456789"))
    let response = try await fetcher.fetch(
      FetchRequest(url: url, range: ByteRange(offset: 3, length: 4), purpose: .segment))
    #expect(response.bodyOffset == 3)
    #expect(try await response.body.collect(upTo: 100) == Array("3456".utf8))
  }

  @Test(arguments: ["data:;base64,a", "data:;base64,a*bc", "data:nothing"])
  func refusesWhatIsNone(text: String) async throws {
    let url = try #require(URL(string: text))
    let error = await #expect(throws: ReelError.self) {
      try await fetcher.fetch(FetchRequest(url: url, purpose: .segment))
    }
    #expect(error?.kind == .badMedia)
  }
}
