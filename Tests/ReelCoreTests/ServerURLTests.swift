import Foundation
import ReelCore
import Testing

@Suite("Addresses of servers")
struct ServerURLTests {
  @Test(
    "Hosts by name, by address, and those that stand for all",
    arguments: [
      ("localhost", "http://localhost:80/a"), ("192.0.2.1", "http://192.0.2.1:80/a"),
      ("0.0.0.0", "http://127.0.0.1:80/a"), ("::", "http://127.0.0.1:80/a"), ("", "http://127.0.0.1:80/a"),
      ("::1", "http://[::1]:80/a"),
    ])
  func hosts(host: String, text: String) {
    #expect(URL.server(host: host, port: 80, path: "a")?.absoluteString == text)
  }
}
