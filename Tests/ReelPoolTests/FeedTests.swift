import ReelPool
import ReelSources
import Testing

@Suite("Feeds")
struct FeedTests {
  private static func feed(_ names: String...) throws -> Feed {
    Feed(name: "f", sources: try names.map { try MediaSource(argument: "/\($0)") })
  }

  @Test("Two entries of one source are two items")
  func twins() throws {
    let feed = try Self.feed("a", "b", "a")
    #expect(feed.items.map(\.id.description) == ["/a", "/b", "/a (2)"])
    #expect(Set(feed.items).count == 3)
  }

  @Test("Identities stay when others are removed, and are never given again")
  func removal() throws {
    var feed = try Self.feed("a", "b", "a")
    let ids = feed.items.map(\.id)
    #expect(feed.remove(ids[0])?.id == ids[0])
    #expect(feed.remove(ids[0]) == nil)
    #expect(feed.items.map(\.id) == [ids[1], ids[2]])
    #expect(feed.index(of: ids[2]) == 1)
    #expect(feed.index(of: ids[0]) == nil)
    let again = feed.append(try MediaSource(argument: "/a")) { $0.title = "again" }
    #expect(!ids.contains(again.id))
    #expect(feed.items.last == again)
    #expect(again.title == "again")
  }

  @Test("One source in two feeds has two identities")
  func feeds() throws {
    let source = try MediaSource(argument: "/a")
    let (one, two) = (Feed(name: "one", sources: [source]), Feed(name: "two", sources: [source]))
    #expect(one.items.first?.id != two.items.first?.id)
  }
}
